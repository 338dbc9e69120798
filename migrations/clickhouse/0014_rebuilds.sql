-- Rebuilding roll-ups from raw rows (`server/src/store/rebuild.rs`).
--
-- * `rollup_holds`: while a rebuild replaces a month of a roll-up, no server adds to that month. A row is a claim by one rebuild, and ends
--   by itself unless it is renewed. The claim without a table and with month 0 is the lock: one rebuild runs at a time.
-- * `rollup_rebuilds`: what was rebuilt, so that an interrupted rebuild continues. The row without a table says that the run is complete.

CREATE TABLE IF NOT EXISTS rollup_holds
(
    target              LowCardinality(String),
    month               UInt32,
    holder              UUID,
    expires_at          DateTime64(3, 'UTC'),
    changed_at          DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(changed_at)
ORDER BY (target, month, holder)
TTL toDateTime(expires_at) + INTERVAL 1 DAY
SETTINGS fsync_after_insert = 1;

CREATE TABLE IF NOT EXISTS rollup_rebuilds
(
    run                 String,
    target              LowCardinality(String),
    month               UInt32,
    hours               UInt32,
    rows                UInt64,
    finished_at         DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY (run, finished_at)
TTL toDateTime(finished_at) + INTERVAL 90 DAY;
