-- A merge of `outcomes` kept the oldest mark of a log, because `SummingMergeTree(count)` takes every other column from any of the rows. Without
-- a list of columns the table adds up `count` as before, and keeps the newest mark. The new table takes the place of the old one in one step.
CREATE OR REPLACE TABLE outcomes
(
    hour                DateTime('UTC'),
    project             LowCardinality(String),
    signal              LowCardinality(String),
    outcome             LowCardinality(String),
    reason              LowCardinality(String),
    count               Int64,
    source              SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = SummingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, hour, signal, outcome, reason)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    default_compression_codec = 'ZSTD(1)'
AS SELECT hour, project, signal, outcome, reason, count, source FROM outcomes;
