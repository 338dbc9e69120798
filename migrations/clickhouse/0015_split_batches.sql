-- Batches of which ClickHouse has halves. A device cuts a batch that is too large, so it sends the halves instead of the whole batch. A whole
-- batch that arrives all the same is then a duplicate. The server inserts here before it inserts a half into `batches`.
CREATE TABLE IF NOT EXISTS split_batches
(
    project             LowCardinality(String),
    batch_id            UUID,
    received_at         DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(received_at)
ORDER BY (project, toUInt128(batch_id))
TTL toDateTime(received_at) + INTERVAL 8 DAY
SETTINGS
    index_granularity = 1024,
    ttl_only_drop_parts = 1,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    default_compression_codec = 'ZSTD(1)';
