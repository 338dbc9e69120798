-- Which rows may be gone because a table kept rows for fewer days once. A rebuild of a roll-up must not go back further: raw rows of that time
-- are not complete. A row is written when a table begins to keep rows for longer.
CREATE TABLE IF NOT EXISTS dropped_rows
(
    target              LowCardinality(String),
    before              DateTime('UTC'),
    changed_at          DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY (target, changed_at)
SETTINGS
    fsync_after_insert = 1,
    fsync_part_directory = 1;
