-- Two thousand stacks of 24 frames.
INSERT INTO stacks (project, stack_hash, received_at, `frames.class`, `frames.module`, `frames.function`, `frames.file`, `frames.build_id`, `frames.line`, `frames.offset`)
SELECT 'default', 1 + number, now64(6),
    arrayMap(frame -> concat('com.example.', if(frame < 8, 'lib', 'shop'), '.Class', toString(cityHash64(number % (30 + (24 - frame) * 40), frame) % 400)), range(24)),
    arrayMap(frame -> '', range(24)), arrayMap(frame -> concat('method', toString(frame)), range(24)),
    arrayMap(frame -> '', range(24)), arrayMap(frame -> '', range(24)), arrayMap(frame -> toUInt32(frame), range(24)), arrayMap(frame -> toUInt64(0), range(24))
FROM numbers(2000)
