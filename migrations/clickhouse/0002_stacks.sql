-- Stacks: each distinct one once, and its class under each version of the rules.
--
-- Rows that say the same again merge away; readers take any one of them by `stack_hash`.

-- Frames, innermost first.
CREATE TABLE IF NOT EXISTS stacks
(
    project             LowCardinality(String),
    stack_hash          UInt64,
    received_at         DateTime64(6, 'UTC'),
    `frames.class`      Array(LowCardinality(String)),
    `frames.module`     Array(LowCardinality(String)),
    `frames.function`   Array(LowCardinality(String)),
    `frames.file`       Array(LowCardinality(String)),
    `frames.build_id`   Array(LowCardinality(String)),
    `frames.line`       Array(UInt32),
    `frames.offset`     Array(UInt64)
)
ENGINE = ReplacingMergeTree(received_at)
ORDER BY (project, stack_hash)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    default_compression_codec = 'ZSTD(1)';

-- Stack → group. Changing the rules writes rows here and touches no event.
CREATE TABLE IF NOT EXISTS stack_classes
(
    project             LowCardinality(String),
    rules_version       UInt32,
    stack_hash          UInt64,
    group_id            UInt64,
    category            LowCardinality(String),
    culprit             String,
    owner               LowCardinality(String),
    title               String,
    not_a_cause         Bool,
    classified_at       DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(classified_at)
ORDER BY (project, rules_version, stack_hash)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    default_compression_codec = 'ZSTD(1)';
