-- What arrived, and what became of it.

-- One row a batch. A batch id is remembered for 8 days: a retry within 7 is stored once. Ordered by the id as a number, so
-- that ids made close in time (UUID v7) are neighbours and a look-up reads little.
CREATE TABLE IF NOT EXISTS batches
(
    project             LowCardinality(String),
    app_id              LowCardinality(String),
    install_id          UUID,
    session_id          UUID,
    received_at         DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    batch_id            UUID,
    sent_at             DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    skew_us             Int64,
    app_version         LowCardinality(String),
    sdk_name            LowCardinality(String),
    sdk_version         LowCardinality(String),
    config_revision     UInt64,
    accepted            UInt64,
    rejected            UInt64,
    wire_bytes          UInt64
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (project, toUInt128(batch_id))
TTL toDateTime(received_at) + INTERVAL 8 DAY
SETTINGS
    index_granularity = 1024,
    ttl_only_drop_parts = 1,
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    default_compression_codec = 'ZSTD(1)';

-- What became of every event, by hour: stored, rejected, duplicate or dead_letter, and why. Signal `batch`: whole requests.
CREATE TABLE IF NOT EXISTS outcomes
(
    hour                DateTime('UTC'),
    project             LowCardinality(String),
    signal              LowCardinality(String),
    outcome             LowCardinality(String),
    reason              LowCardinality(String),
    count               Int64
)
ENGINE = SummingMergeTree(count)
PARTITION BY toYYYYMM(hour)
ORDER BY (project, hour, signal, outcome, reason)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    default_compression_codec = 'ZSTD(1)';
