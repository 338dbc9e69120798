-- In two hundred groups.
INSERT INTO stack_classes (project, rules_version, stack_hash, group_id, category, culprit, owner, title, not_a_cause, classified_at)
SELECT 'default', 0, 1 + number, 1000 + number % 200, ['database on main thread', 'JSON on main thread', 'layout inflation', ''][number % 4 + 1],
    concat('com.example.shop.Class', toString(number % 200), '.method'), concat('team ', toString(number % 5)),
    concat('work in Class', toString(number % 200), '.method'), number % 200 = 0, now64(6)
FROM numbers(2000)
