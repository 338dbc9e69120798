-- The column of a frame in a script, from 1; 0 if unknown.
ALTER TABLE stacks ADD COLUMN IF NOT EXISTS `frames.column` Array(UInt32) AFTER `frames.line`;

-- Stacks whose frames need symbol files: their functions and lines, once a file has told them.
--
-- A stack that needs no file has no row. Of several rows, the latest counts. `stacks` keeps what devices reported.
CREATE TABLE IF NOT EXISTS stacks_symbolicated
(
    project             LowCardinality(String),
    stack_hash          UInt64,
    symbolicated_at     DateTime64(6, 'UTC'),
    -- Innermost first. Empty while no file has a name for any frame.
    `frames.class`      Array(LowCardinality(String)),
    `frames.module`     Array(LowCardinality(String)),
    `frames.function`   Array(LowCardinality(String)),
    `frames.file`       Array(LowCardinality(String)),
    `frames.build_id`   Array(LowCardinality(String)),
    `frames.line`       Array(UInt32),
    `frames.column`     Array(UInt32),
    `frames.offset`     Array(UInt64),
    -- How the location follows from the reported frame: 0 reported as it is, 1 called, 2 inlined, 3 ambiguous.
    `frames.origin`     Array(UInt8),
    -- The ids of the builds whose symbols the frames need; those of them without a file; and those whose file has none of the frames.
    ids                 Array(LowCardinality(String)),
    missing             Array(LowCardinality(String)),
    mismatched          Array(LowCardinality(String))
)
ENGINE = ReplacingMergeTree(symbolicated_at)
ORDER BY (project, stack_hash)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    default_compression_codec = 'ZSTD(1)';

-- The groups that stacks belonged to before symbols or rules moved them, so that old links and open incidents find the new group.
CREATE TABLE IF NOT EXISTS former_groups
(
    project             LowCardinality(String),
    group_id            UInt64,
    stack_hash          UInt64,
    left_at             DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(left_at)
ORDER BY (project, group_id, stack_hash)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    default_compression_codec = 'ZSTD(1)';
