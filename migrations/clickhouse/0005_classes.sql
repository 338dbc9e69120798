-- Which rules made a class, and the class that counts.

-- `rules_version` is the revision the project's rules were saved as (0: none were). `rules_hash` is of everything that decides:
-- the text, the built-in rules, the classifier. Under one revision the later row replaces the earlier.
ALTER TABLE stack_classes ADD COLUMN IF NOT EXISTS rules_hash UInt64 DEFAULT 0 AFTER rules_version;

-- The reading rule: of a stack's classes the one of the highest revision counts, and of that the latest. So a stack has exactly one
-- class at any time: the old one until it is rewritten, then the new one.
CREATE VIEW IF NOT EXISTS stack_class_current AS
SELECT
    project,
    stack_hash,
    latest.1 AS rules_version,
    latest.2 AS group_id,
    latest.3 AS category,
    latest.4 AS culprit,
    latest.5 AS owner,
    latest.6 AS title,
    latest.7 AS not_a_cause,
    latest.8 AS classified_at
FROM
(
    SELECT
        project,
        stack_hash,
        argMax(
            (rules_version, group_id, category, culprit, owner, title, not_a_cause, classified_at),
            (rules_version, classified_at)
        ) AS latest
    FROM stack_classes
    GROUP BY project, stack_hash
);
