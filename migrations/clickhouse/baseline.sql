-- The schema that all migrations make together. `make baseline` writes this file from them.

CREATE TABLE IF NOT EXISTS app_starts
(
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `install_id` UUID,
    `session_id` UUID,
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `app_version` LowCardinality(String),
    `build` UInt64,
    `channel` LowCardinality(String),
    `mode` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_model` LowCardinality(String),
    `device_manufacturer` LowCardinality(String),
    `device_class` LowCardinality(String),
    `locale` LowCardinality(String),
    `user_id` String,
    `config_revision` UInt64,
    `refresh_hz` UInt16,
    `page` LowCardinality(String),
    `network` LowCardinality(String),
    `kind` LowCardinality(String),
    `start` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `duration_ms` UInt32 CODEC(T64, ZSTD(1)),
    `sample_rate` Float64 DEFAULT 1,
    `phases.name` Array(LowCardinality(String)),
    `phases.duration_ms` Array(UInt32),
    `fold` UInt64 CODEC(Delta(8), ZSTD(1)),
    `range_id` UInt128 CODEC(ZSTD(1)),
    INDEX session session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX fold fold TYPE minmax GRANULARITY 1,
    INDEX range_id range_id TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, start)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, merge_selector_base = 60, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS app_starts_daily
(
    `project` LowCardinality(String),
    `kind` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64) DEFAULT count,
    `sum_ms` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `durations_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, kind, day, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS app_starts_hourly
(
    `project` LowCardinality(String),
    `kind` LowCardinality(String),
    `hour` DateTime('UTC'),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64) DEFAULT count,
    `sum_ms` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `durations_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, kind, hour, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS batches
(
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `install_id` UUID,
    `session_id` UUID,
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `batch_id` UUID,
    `sent_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `skew_us` Int64,
    `app_version` LowCardinality(String),
    `build` UInt64,
    `channel` LowCardinality(String),
    `mode` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_model` LowCardinality(String),
    `device_manufacturer` LowCardinality(String),
    `device_class` LowCardinality(String),
    `locale` LowCardinality(String),
    `user_id` String,
    `sdk_name` LowCardinality(String),
    `sdk_version` LowCardinality(String),
    `config_revision` UInt64,
    `accepted` UInt64,
    `rejected` UInt64,
    `wire_bytes` UInt64,
    `range_id` UInt128 CODEC(ZSTD(1)),
    INDEX range_id range_id TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toDate(received_at)
ORDER BY (project, toUInt128(batch_id))
TTL toDateTime(received_at) + toIntervalDay(8)
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, default_compression_codec = 'ZSTD(1)', merge_selector_base = 60;

CREATE TABLE IF NOT EXISTS dropped_rows
(
    `target` LowCardinality(String),
    `project` LowCardinality(String),
    `before` DateTime('UTC'),
    `changed_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY (target, changed_at)
SETTINGS fsync_after_insert = 1, fsync_part_directory = 1, index_granularity = 8192;

CREATE TABLE IF NOT EXISTS former_groups
(
    `project` LowCardinality(String),
    `group_id` UInt64,
    `stack_hash` UInt64,
    `left_at` DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(left_at)
ORDER BY (project, group_id, stack_hash)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS frame_windows
(
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `install_id` UUID,
    `session_id` UUID,
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `app_version` LowCardinality(String),
    `build` UInt64,
    `channel` LowCardinality(String),
    `mode` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_model` LowCardinality(String),
    `device_manufacturer` LowCardinality(String),
    `device_class` LowCardinality(String),
    `locale` LowCardinality(String),
    `user_id` String,
    `config_revision` UInt64,
    `refresh_hz` UInt16,
    `page` LowCardinality(String),
    `network` LowCardinality(String),
    `uptime_ms` UInt64 CODEC(T64, ZSTD(1)),
    `start` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `duration_ms` UInt32 CODEC(T64, ZSTD(1)),
    `frames_drawn` UInt32 CODEC(T64, ZSTD(1)),
    `frames_dropped` UInt32 CODEC(T64, ZSTD(1)),
    `slow_frames` UInt32 CODEC(T64, ZSTD(1)),
    `frozen_frames` UInt32 CODEC(T64, ZSTD(1)),
    `longest_drop` UInt32 CODEC(T64, ZSTD(1)),
    `jank_ms` UInt32 CODEC(T64, ZSTD(1)),
    `delay_ms` UInt32 CODEC(T64, ZSTD(1)),
    `frame_time_hist` Map(UInt32, UInt32),
    `sample_rate` Float64,
    `fold` UInt64 CODEC(Delta(8), ZSTD(1)),
    `range_id` UInt128 CODEC(ZSTD(1)),
    INDEX session session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX fold fold TYPE minmax GRANULARITY 1,
    INDEX range_id range_id TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, start)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, merge_selector_base = 60, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS frame_windows_daily
(
    `project` LowCardinality(String),
    `page` LowCardinality(String),
    `refresh_hz` UInt16,
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `duration_ms` SimpleAggregateFunction(sum, Float64),
    `frames_drawn` SimpleAggregateFunction(sum, Float64),
    `frames_dropped` SimpleAggregateFunction(sum, Float64),
    `slow_frames` SimpleAggregateFunction(sum, Float64),
    `frozen_frames` SimpleAggregateFunction(sum, Float64),
    `jank_ms` SimpleAggregateFunction(sum, Float64),
    `delay_ms` SimpleAggregateFunction(sum, Float64),
    `longest_drop` SimpleAggregateFunction(max, UInt32),
    `late` SimpleAggregateFunction(sum, Float64),
    `frame_times_ms` SimpleAggregateFunction(sumMap, Map(UInt32, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `sessions` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, page, day, refresh_hz, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS frame_windows_hourly
(
    `project` LowCardinality(String),
    `page` LowCardinality(String),
    `refresh_hz` UInt16,
    `hour` DateTime('UTC'),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `duration_ms` SimpleAggregateFunction(sum, Float64),
    `frames_drawn` SimpleAggregateFunction(sum, Float64),
    `frames_dropped` SimpleAggregateFunction(sum, Float64),
    `slow_frames` SimpleAggregateFunction(sum, Float64),
    `frozen_frames` SimpleAggregateFunction(sum, Float64),
    `jank_ms` SimpleAggregateFunction(sum, Float64),
    `delay_ms` SimpleAggregateFunction(sum, Float64),
    `longest_drop` SimpleAggregateFunction(max, UInt32),
    `late` SimpleAggregateFunction(sum, Float64),
    `frame_times_ms` SimpleAggregateFunction(sumMap, Map(UInt32, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `sessions` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, page, hour, refresh_hz, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS function_names
(
    `project` LowCardinality(String),
    `name` String,
    `stack_hash` UInt64,
    `symbolicated_at` DateTime64(6, 'UTC'),
    `class` String,
    `function` String,
    `file` String
)
ENGINE = ReplacingMergeTree(symbolicated_at)
ORDER BY (project, name)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS janks
(
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `install_id` UUID,
    `session_id` UUID,
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `app_version` LowCardinality(String),
    `build` UInt64,
    `channel` LowCardinality(String),
    `mode` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_model` LowCardinality(String),
    `device_manufacturer` LowCardinality(String),
    `device_class` LowCardinality(String),
    `locale` LowCardinality(String),
    `user_id` String,
    `config_revision` UInt64,
    `refresh_hz` UInt16,
    `page` LowCardinality(String),
    `network` LowCardinality(String),
    `uptime_ms` UInt64 CODEC(T64, ZSTD(1)),
    `kind` LowCardinality(String),
    `start` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `duration_ms` UInt32 CODEC(T64, ZSTD(1)),
    `ended` LowCardinality(String) DEFAULT 'finished',
    `thread` LowCardinality(String),
    `foreground` Bool,
    `strategy_threshold_ms` UInt32,
    `strategy_count` UInt32,
    `strategy_period_ms` UInt32,
    `stack_hash` UInt64,
    `stack_missing` String,
    `samples.offset_ms` Array(UInt32),
    `samples.stack_hash` Array(UInt64),
    `run_log.time` Array(DateTime64(6, 'UTC')),
    `run_log.message` Array(String),
    `sample_rate` Float64,
    `fold` UInt64 CODEC(Delta(8), ZSTD(1)),
    `range_id` UInt128 CODEC(ZSTD(1)),
    INDEX session session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX fold fold TYPE minmax GRANULARITY 1,
    INDEX range_id range_id TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, start)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, merge_selector_base = 60, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS janks_daily
(
    `project` LowCardinality(String),
    `stack_hash` UInt64,
    `kind` LowCardinality(String),
    `page` LowCardinality(String),
    `foreground` Bool,
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum_ms` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `durations_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `sessions` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, day, stack_hash, kind, page, foreground, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS janks_hourly
(
    `project` LowCardinality(String),
    `kind` LowCardinality(String),
    `page` LowCardinality(String),
    `hour` DateTime('UTC'),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum_ms` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `durations_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `sessions` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, kind, hour, page, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS metrics
(
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `install_id` UUID,
    `session_id` UUID,
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `app_version` LowCardinality(String),
    `build` UInt64,
    `channel` LowCardinality(String),
    `mode` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_model` LowCardinality(String),
    `device_manufacturer` LowCardinality(String),
    `device_class` LowCardinality(String),
    `locale` LowCardinality(String),
    `user_id` String,
    `config_revision` UInt64,
    `refresh_hz` UInt16,
    `page` LowCardinality(String),
    `network` LowCardinality(String),
    `uptime_ms` UInt64 CODEC(T64, ZSTD(1)),
    `name` LowCardinality(String),
    `time` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `value` Float64 CODEC(Gorilla(8), ZSTD(1)),
    `min` Float64 CODEC(Gorilla(8), ZSTD(1)),
    `max` Float64 CODEC(Gorilla(8), ZSTD(1)),
    `count` UInt64 CODEC(T64, ZSTD(1)),
    `attributes` Map(LowCardinality(String), String),
    `sample_rate` Float64,
    `fold` UInt64 CODEC(Delta(8), ZSTD(1)),
    `range_id` UInt128 CODEC(ZSTD(1)),
    INDEX session session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX fold fold TYPE minmax GRANULARITY 1,
    INDEX range_id range_id TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(time)
ORDER BY (project, toStartOfHour(time), received_at, session_id, name, time)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, merge_selector_base = 60, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS metrics_daily
(
    `project` LowCardinality(String),
    `name` LowCardinality(String),
    `page` LowCardinality(String),
    `uptime` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum` SimpleAggregateFunction(sum, Float64),
    `min` SimpleAggregateFunction(min, Float64),
    `max` SimpleAggregateFunction(max, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `values` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, name, day, page, uptime, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS metrics_hourly
(
    `project` LowCardinality(String),
    `name` LowCardinality(String),
    `page` LowCardinality(String),
    `uptime` LowCardinality(String),
    `hour` DateTime('UTC'),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum` SimpleAggregateFunction(sum, Float64),
    `min` SimpleAggregateFunction(min, Float64),
    `max` SimpleAggregateFunction(max, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `values` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, name, hour, page, uptime, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS outcomes
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `signal` LowCardinality(String),
    `outcome` LowCardinality(String),
    `reason` LowCardinality(String),
    `count` Int64,
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = SummingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, hour, signal, outcome, reason)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS page_loads
(
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `install_id` UUID,
    `session_id` UUID,
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `app_version` LowCardinality(String),
    `build` UInt64,
    `channel` LowCardinality(String),
    `mode` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_model` LowCardinality(String),
    `device_manufacturer` LowCardinality(String),
    `device_class` LowCardinality(String),
    `locale` LowCardinality(String),
    `user_id` String,
    `config_revision` UInt64,
    `refresh_hz` UInt16,
    `page` LowCardinality(String),
    `network` LowCardinality(String),
    `uptime_ms` UInt64 CODEC(T64, ZSTD(1)),
    `start` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `t1_ms` Nullable(UInt32),
    `t2_ms` Nullable(UInt32),
    `t3_ms` Nullable(UInt32),
    `total_ms` UInt32 CODEC(T64, ZSTD(1)),
    `launch` LowCardinality(String),
    `outcome` LowCardinality(String),
    `requests.path` Array(LowCardinality(String)),
    `requests.offset_ms` Array(Int32),
    `requests.duration_ms` Array(UInt32),
    `requests.status` Array(UInt16),
    `sample_rate` Float64,
    `fold` UInt64 CODEC(Delta(8), ZSTD(1)),
    `range_id` UInt128 CODEC(ZSTD(1)),
    INDEX session session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX fold fold TYPE minmax GRANULARITY 1,
    INDEX range_id range_id TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, start)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, merge_selector_base = 60, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS page_loads_daily
(
    `project` LowCardinality(String),
    `page` LowCardinality(String),
    `launch` LowCardinality(String),
    `outcome` LowCardinality(String),
    `network` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum_ms` SimpleAggregateFunction(sum, Float64),
    `completed` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `t1_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `t2_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `t3_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `totals_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, page, day, launch, outcome, network, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS page_loads_hourly
(
    `project` LowCardinality(String),
    `page` LowCardinality(String),
    `launch` LowCardinality(String),
    `outcome` LowCardinality(String),
    `network` LowCardinality(String),
    `hour` DateTime('UTC'),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum_ms` SimpleAggregateFunction(sum, Float64),
    `completed` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `t1_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `t2_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `t3_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `totals_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, page, hour, launch, outcome, network, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS recompositions
(
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `install_id` UUID,
    `session_id` UUID,
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `app_version` LowCardinality(String),
    `build` UInt64,
    `channel` LowCardinality(String),
    `mode` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_model` LowCardinality(String),
    `device_manufacturer` LowCardinality(String),
    `device_class` LowCardinality(String),
    `locale` LowCardinality(String),
    `user_id` String,
    `config_revision` UInt64,
    `refresh_hz` UInt16,
    `page` LowCardinality(String),
    `network` LowCardinality(String),
    `uptime_ms` UInt64 CODEC(T64, ZSTD(1)),
    `function` LowCardinality(String),
    `start` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `window_ms` UInt32 CODEC(T64, ZSTD(1)),
    `count` UInt32 CODEC(T64, ZSTD(1)),
    `cause` LowCardinality(String),
    `sample_rate` Float64,
    `fold` UInt64 CODEC(Delta(8), ZSTD(1)),
    `range_id` UInt128 CODEC(ZSTD(1)),
    INDEX session session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX fold fold TYPE minmax GRANULARITY 1,
    INDEX range_id range_id TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, function, start)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, merge_selector_base = 60, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS recompositions_daily
(
    `project` LowCardinality(String),
    `function` LowCardinality(String),
    `page` LowCardinality(String),
    `cause` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `window_ms` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, function, day, page, cause, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS recompositions_hourly
(
    `project` LowCardinality(String),
    `function` LowCardinality(String),
    `page` LowCardinality(String),
    `cause` LowCardinality(String),
    `hour` DateTime('UTC'),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `window_ms` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, function, hour, page, cause, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS rollup_holds
(
    `target` LowCardinality(String),
    `month` UInt32,
    `holder` UUID,
    `expires_at` DateTime64(3, 'UTC'),
    `changed_at` DateTime64(6, 'UTC') DEFAULT now64(6)
)
ENGINE = ReplacingMergeTree(changed_at)
ORDER BY (target, month, holder)
TTL toDateTime(expires_at) + toIntervalDay(1)
SETTINGS fsync_after_insert = 1, index_granularity = 8192;

CREATE TABLE IF NOT EXISTS rollup_rebuilds
(
    `run` String,
    `target` LowCardinality(String),
    `month` UInt32,
    `hours` UInt32,
    `rows` UInt64,
    `finished_at` DateTime64(3, 'UTC') DEFAULT now64(3)
)
ENGINE = MergeTree
ORDER BY (run, finished_at)
TTL toDateTime(finished_at) + toIntervalDay(90)
SETTINGS index_granularity = 8192;

CREATE TABLE IF NOT EXISTS sdk_drops_daily
(
    `project` LowCardinality(String),
    `signal` LowCardinality(String),
    `reason` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, signal, day, reason, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS sdk_drops_hourly
(
    `project` LowCardinality(String),
    `signal` LowCardinality(String),
    `reason` LowCardinality(String),
    `hour` DateTime('UTC'),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, signal, hour, reason, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS sdk_health
(
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `install_id` UUID,
    `session_id` UUID,
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `app_version` LowCardinality(String),
    `build` UInt64,
    `channel` LowCardinality(String),
    `mode` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_model` LowCardinality(String),
    `device_manufacturer` LowCardinality(String),
    `device_class` LowCardinality(String),
    `locale` LowCardinality(String),
    `user_id` String,
    `config_revision` UInt64,
    `sdk_name` LowCardinality(String),
    `sdk_version` LowCardinality(String),
    `dropped.signal` Array(LowCardinality(String)),
    `dropped.reason` Array(LowCardinality(String)),
    `dropped.count` Array(UInt64),
    `overhead_us` UInt64 CODEC(T64, ZSTD(1)),
    `queue_bytes` UInt64 CODEC(T64, ZSTD(1)),
    `upload_bytes` UInt64 CODEC(T64, ZSTD(1)),
    `fold` UInt64 CODEC(Delta(8), ZSTD(1)),
    `range_id` UInt128 CODEC(ZSTD(1)),
    INDEX fold fold TYPE minmax GRANULARITY 1,
    INDEX range_id range_id TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(received_at)
ORDER BY (project, received_at, install_id)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, merge_selector_base = 60, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS sdk_health_daily
(
    `project` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `overhead_us` SimpleAggregateFunction(sum, Float64),
    `upload_bytes` SimpleAggregateFunction(sum, Float64),
    `queue_bytes` SimpleAggregateFunction(max, UInt64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, day, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS sdk_health_hourly
(
    `project` LowCardinality(String),
    `hour` DateTime('UTC'),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `overhead_us` SimpleAggregateFunction(sum, Float64),
    `upload_bytes` SimpleAggregateFunction(sum, Float64),
    `queue_bytes` SimpleAggregateFunction(max, UInt64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, hour, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS spans
(
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `install_id` UUID,
    `session_id` UUID,
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `app_version` LowCardinality(String),
    `build` UInt64,
    `channel` LowCardinality(String),
    `mode` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_model` LowCardinality(String),
    `device_manufacturer` LowCardinality(String),
    `device_class` LowCardinality(String),
    `locale` LowCardinality(String),
    `user_id` String,
    `config_revision` UInt64,
    `refresh_hz` UInt16,
    `page` LowCardinality(String),
    `network` LowCardinality(String),
    `uptime_ms` UInt64 CODEC(T64, ZSTD(1)),
    `trace_id` UUID,
    `span_id` UInt64,
    `parent_span_id` UInt64,
    `name` LowCardinality(String),
    `kind` LowCardinality(String),
    `start` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `duration_us` UInt64 CODEC(T64, ZSTD(1)),
    `thread` LowCardinality(String),
    `on_main_thread` Bool,
    `status` LowCardinality(String),
    `code_class` LowCardinality(String),
    `code_function` LowCardinality(String),
    `code_file` LowCardinality(String),
    `code_line` UInt32,
    `attributes` Map(LowCardinality(String), String),
    `events.time` Array(DateTime64(6, 'UTC')),
    `events.name` Array(LowCardinality(String)),
    `sample_rate` Float64,
    `fold` UInt64 CODEC(Delta(8), ZSTD(1)),
    `range_id` UInt128 CODEC(ZSTD(1)),
    INDEX session session_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX trace trace_id TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX fold fold TYPE minmax GRANULARITY 1,
    INDEX range_id range_id TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, start)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, merge_selector_base = 60, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS spans_daily
(
    `project` LowCardinality(String),
    `name` LowCardinality(String),
    `kind` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum_us` SimpleAggregateFunction(sum, Float64),
    `main_thread_us` SimpleAggregateFunction(sum, Float64),
    `errors` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `durations_us` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, name, day, kind, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS spans_hourly
(
    `project` LowCardinality(String),
    `name` LowCardinality(String),
    `kind` LowCardinality(String),
    `hour` DateTime('UTC'),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum_us` SimpleAggregateFunction(sum, Float64),
    `main_thread_us` SimpleAggregateFunction(sum, Float64),
    `errors` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `durations_us` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, name, hour, kind, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS split_batches
(
    `project` LowCardinality(String),
    `batch_id` UUID,
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1))
)
ENGINE = ReplacingMergeTree
PARTITION BY toDate(received_at)
ORDER BY (project, toUInt128(batch_id))
TTL toDateTime(received_at) + toIntervalDay(8)
SETTINGS index_granularity = 1024, ttl_only_drop_parts = 1, fsync_after_insert = 1, fsync_part_directory = 1, default_compression_codec = 'ZSTD(1)';

CREATE TABLE IF NOT EXISTS stack_classes
(
    `project` LowCardinality(String),
    `rules_version` UInt32,
    `rules_hash` UInt64 DEFAULT 0,
    `stack_hash` UInt64,
    `group_id` UInt64,
    `category` LowCardinality(String),
    `culprit` String,
    `owner` LowCardinality(String),
    `title` String,
    `not_a_cause` Bool,
    `classified_at` DateTime64(6, 'UTC')
)
ENGINE = ReplacingMergeTree(classified_at)
ORDER BY (project, rules_version, stack_hash)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS stacks
(
    `project` LowCardinality(String),
    `stack_hash` UInt64,
    `received_at` DateTime64(6, 'UTC'),
    `frames.class` Array(LowCardinality(String)),
    `frames.module` Array(LowCardinality(String)),
    `frames.function` Array(LowCardinality(String)),
    `frames.file` Array(LowCardinality(String)),
    `frames.build_id` Array(LowCardinality(String)),
    `frames.line` Array(UInt32),
    `frames.column` Array(UInt32),
    `frames.offset` Array(UInt64)
)
ENGINE = ReplacingMergeTree(received_at)
ORDER BY (project, stack_hash)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS stacks_symbolicated
(
    `project` LowCardinality(String),
    `stack_hash` UInt64,
    `symbolicated_at` DateTime64(6, 'UTC'),
    `frames.class` Array(LowCardinality(String)),
    `frames.module` Array(LowCardinality(String)),
    `frames.function` Array(LowCardinality(String)),
    `frames.file` Array(LowCardinality(String)),
    `frames.build_id` Array(LowCardinality(String)),
    `frames.line` Array(UInt32),
    `frames.column` Array(UInt32),
    `frames.offset` Array(UInt64),
    `frames.origin` Array(UInt8),
    `ids` Array(LowCardinality(String)),
    `missing` Array(LowCardinality(String)),
    `mismatched` Array(LowCardinality(String))
)
ENGINE = ReplacingMergeTree(symbolicated_at)
ORDER BY (project, stack_hash)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS traffic
(
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `install_id` UUID,
    `session_id` UUID,
    `received_at` DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    `app_version` LowCardinality(String),
    `build` UInt64,
    `channel` LowCardinality(String),
    `mode` LowCardinality(String),
    `os_name` LowCardinality(String),
    `os_version` LowCardinality(String),
    `device_model` LowCardinality(String),
    `device_manufacturer` LowCardinality(String),
    `device_class` LowCardinality(String),
    `locale` LowCardinality(String),
    `user_id` String,
    `config_revision` UInt64,
    `day` Date,
    `source` LowCardinality(String),
    `network` LowCardinality(String),
    `tx_bytes` UInt64 CODEC(T64, ZSTD(1)),
    `rx_bytes` UInt64 CODEC(T64, ZSTD(1)),
    `requests` UInt64 CODEC(T64, ZSTD(1)),
    `failed_requests` UInt64 CODEC(T64, ZSTD(1)),
    `fold` UInt64 CODEC(Delta(8), ZSTD(1)),
    `range_id` UInt128 CODEC(ZSTD(1)),
    INDEX fold fold TYPE minmax GRANULARITY 1,
    INDEX range_id range_id TYPE minmax GRANULARITY 1
)
ENGINE = MergeTree
PARTITION BY toMonday(day)
ORDER BY (project, day, app_id, install_id, source, network)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, merge_selector_base = 60, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS traffic_daily
(
    `project` LowCardinality(String),
    `source` LowCardinality(String),
    `network` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `tx_bytes` SimpleAggregateFunction(sum, Float64),
    `rx_bytes` SimpleAggregateFunction(sum, Float64),
    `requests` SimpleAggregateFunction(sum, Float64),
    `failed_requests` SimpleAggregateFunction(sum, Float64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `mark` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, day, source, network, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS usage_daily
(
    `project` LowCardinality(String),
    `sdk_name` LowCardinality(String),
    `sdk_version` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `accepted` SimpleAggregateFunction(sum, Float64),
    `rejected` SimpleAggregateFunction(sum, Float64),
    `wire_bytes` SimpleAggregateFunction(sum, Float64),
    `skewed` SimpleAggregateFunction(sum, Float64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `sessions` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, sdk_name, day, sdk_version, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE TABLE IF NOT EXISTS usage_hourly
(
    `project` LowCardinality(String),
    `sdk_name` LowCardinality(String),
    `sdk_version` LowCardinality(String),
    `hour` DateTime('UTC'),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `accepted` SimpleAggregateFunction(sum, Float64),
    `rejected` SimpleAggregateFunction(sum, Float64),
    `wire_bytes` SimpleAggregateFunction(sum, Float64),
    `skewed` SimpleAggregateFunction(sum, Float64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `sessions` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1))
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, sdk_name, hour, sdk_version, app_id, app_version, os_name, device_class)
SETTINGS non_replicated_deduplication_window = 10000, fsync_after_insert = 1, fsync_part_directory = 1, ttl_only_drop_parts = 1, default_compression_codec = 'ZSTD(1)', index_granularity = 8192;

CREATE MATERIALIZED VIEW IF NOT EXISTS app_starts_to_daily TO app_starts_daily
(
    `project` LowCardinality(String),
    `kind` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum_ms` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `durations_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128)
)
AS SELECT
    project,
    kind,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    count,
    samples,
    sum_ms,
    late,
    durations_ms,
    installs,
    source
FROM app_starts_hourly
WHERE source != 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS frame_windows_to_daily TO frame_windows_daily
(
    `project` LowCardinality(String),
    `page` LowCardinality(String),
    `refresh_hz` UInt16,
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `duration_ms` SimpleAggregateFunction(sum, Float64),
    `frames_drawn` SimpleAggregateFunction(sum, Float64),
    `frames_dropped` SimpleAggregateFunction(sum, Float64),
    `slow_frames` SimpleAggregateFunction(sum, Float64),
    `frozen_frames` SimpleAggregateFunction(sum, Float64),
    `jank_ms` SimpleAggregateFunction(sum, Float64),
    `delay_ms` SimpleAggregateFunction(sum, Float64),
    `longest_drop` SimpleAggregateFunction(max, UInt32),
    `late` SimpleAggregateFunction(sum, Float64),
    `frame_times_ms` SimpleAggregateFunction(sumMap, Map(UInt32, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `sessions` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128)
)
AS SELECT
    project,
    page,
    refresh_hz,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    count,
    samples,
    duration_ms,
    frames_drawn,
    frames_dropped,
    slow_frames,
    frozen_frames,
    jank_ms,
    delay_ms,
    longest_drop,
    late,
    frame_times_ms,
    installs,
    sessions,
    source
FROM frame_windows_hourly
WHERE source != 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS metrics_to_daily TO metrics_daily
(
    `project` LowCardinality(String),
    `name` LowCardinality(String),
    `page` LowCardinality(String),
    `uptime` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum` SimpleAggregateFunction(sum, Float64),
    `min` SimpleAggregateFunction(min, Float64),
    `max` SimpleAggregateFunction(max, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `values` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128)
)
AS SELECT
    project,
    name,
    page,
    uptime,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    count,
    samples,
    sum,
    min,
    max,
    late,
    `values`,
    installs,
    source
FROM metrics_hourly
WHERE source != 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS page_loads_to_daily TO page_loads_daily
(
    `project` LowCardinality(String),
    `page` LowCardinality(String),
    `launch` LowCardinality(String),
    `outcome` LowCardinality(String),
    `network` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum_ms` SimpleAggregateFunction(sum, Float64),
    `completed` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `t1_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `t2_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `t3_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `totals_ms` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128)
)
AS SELECT
    project,
    page,
    launch,
    outcome,
    network,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    count,
    samples,
    sum_ms,
    completed,
    late,
    t1_ms,
    t2_ms,
    t3_ms,
    totals_ms,
    installs,
    source
FROM page_loads_hourly
WHERE source != 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS recompositions_to_daily TO recompositions_daily
(
    `project` LowCardinality(String),
    `function` LowCardinality(String),
    `page` LowCardinality(String),
    `cause` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `window_ms` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128)
)
AS SELECT
    project,
    function,
    page,
    cause,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    count,
    samples,
    window_ms,
    late,
    installs,
    source
FROM recompositions_hourly
WHERE source != 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS sdk_drops_to_daily TO sdk_drops_daily
(
    `project` LowCardinality(String),
    `signal` LowCardinality(String),
    `reason` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128)
)
AS SELECT
    project,
    signal,
    reason,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    count,
    installs,
    source
FROM sdk_drops_hourly
WHERE source != 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS sdk_health_to_daily TO sdk_health_daily
(
    `project` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `overhead_us` SimpleAggregateFunction(sum, Float64),
    `upload_bytes` SimpleAggregateFunction(sum, Float64),
    `queue_bytes` SimpleAggregateFunction(max, UInt64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128)
)
AS SELECT
    project,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    count,
    overhead_us,
    upload_bytes,
    queue_bytes,
    installs,
    source
FROM sdk_health_hourly
WHERE source != 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS spans_to_daily TO spans_daily
(
    `project` LowCardinality(String),
    `name` LowCardinality(String),
    `kind` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `samples` SimpleAggregateFunction(sum, Float64),
    `sum_us` SimpleAggregateFunction(sum, Float64),
    `main_thread_us` SimpleAggregateFunction(sum, Float64),
    `errors` SimpleAggregateFunction(sum, Float64),
    `late` SimpleAggregateFunction(sum, Float64),
    `durations_us` SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128)
)
AS SELECT
    project,
    name,
    kind,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    count,
    samples,
    sum_us,
    main_thread_us,
    errors,
    late,
    durations_us,
    installs,
    source
FROM spans_hourly
WHERE source != 1;

CREATE MATERIALIZED VIEW IF NOT EXISTS usage_to_daily TO usage_daily
(
    `project` LowCardinality(String),
    `sdk_name` LowCardinality(String),
    `sdk_version` LowCardinality(String),
    `day` Date,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` SimpleAggregateFunction(sum, Float64),
    `accepted` SimpleAggregateFunction(sum, Float64),
    `rejected` SimpleAggregateFunction(sum, Float64),
    `wire_bytes` SimpleAggregateFunction(sum, Float64),
    `skewed` SimpleAggregateFunction(sum, Float64),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `sessions` AggregateFunction(uniqCombined64(12), UUID),
    `source` SimpleAggregateFunction(max, UInt128)
)
AS SELECT
    project,
    sdk_name,
    sdk_version,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    count,
    accepted,
    rejected,
    wire_bytes,
    skewed,
    installs,
    sessions,
    source
FROM usage_hourly
WHERE source != 1;

CREATE VIEW IF NOT EXISTS function_names_sorted
(
    `names` Array(Tuple(
        String,
        String))
)
AS SELECT arraySort(groupArray((key, readable))) AS names
FROM
(
    SELECT
        concat(project, '/', name) AS key,
        concat(class, '.', function) AS readable
    FROM function_names
    FINAL
    WHERE function != ''
    ORDER BY symbolicated_at DESC
    LIMIT 100000
);

CREATE VIEW IF NOT EXISTS stack_class_current
(
    `project` LowCardinality(String),
    `stack_hash` UInt64,
    `rules_version` UInt32,
    `group_id` UInt64,
    `category` String,
    `culprit` String,
    `owner` String,
    `title` String,
    `not_a_cause` Bool,
    `classified_at` DateTime64(6, 'UTC')
)
AS SELECT
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
        argMax((rules_version, group_id, category, culprit, owner, title, not_a_cause, classified_at), (rules_version, classified_at)) AS latest
    FROM stack_classes
    GROUP BY
        project,
        stack_hash
);

CREATE VIEW IF NOT EXISTS dash_app_start_durations
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `kind` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `duration_ms` Float64,
    `weight` Float64
)
COMMENT 'How long starts of apps took, by kind and hour. duration_ms: the middle of a bucket, in milliseconds; weight: starts in it.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.kind AS kind,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    if(bucket = -2000, 0., (2 * pow(1.02, bucket)) / 2.02) AS duration_ms,
    weight
FROM app_starts_hourly AS s
ARRAY JOIN
    mapKeys(s.durations_ms) AS bucket,
    mapValues(s.durations_ms) AS weight;

CREATE VIEW IF NOT EXISTS dash_app_starts
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `kind` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` Float64,
    `sum_ms` Float64
)
COMMENT 'Starts of apps by kind and hour. count: starts; sum_ms: how long they took, in milliseconds.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.kind AS kind,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toFloat64(s.count) AS count,
    toFloat64(s.sum_ms) AS sum_ms
FROM app_starts_hourly AS s
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_frame_times
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `page` LowCardinality(String),
    `refresh_hz` UInt16,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `frame_ms` UInt32,
    `weight` Float64
)
COMMENT 'How long frames took, by page and hour. frame_ms: the lower bound of a bucket as the device named it, in milliseconds; weight: frames in it.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.page AS page,
    s.refresh_hz AS refresh_hz,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    frame_ms,
    weight
FROM frame_windows_hourly AS s
ARRAY JOIN
    mapKeys(s.frame_times_ms) AS frame_ms,
    mapValues(s.frame_times_ms) AS weight;

CREATE VIEW IF NOT EXISTS dash_frames
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `page` LowCardinality(String),
    `refresh_hz` UInt16,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` Float64,
    `duration_ms` Float64,
    `frames_drawn` Float64,
    `frames_dropped` Float64,
    `slow_frames` Float64,
    `frozen_frames` Float64,
    `jank_ms` Float64,
    `delay_ms` Float64,
    `longest_drop` UInt32
)
COMMENT 'Frames by page and hour. count: windows; duration_ms: how long they were, in milliseconds; frames_…: frames; jank_ms and delay_ms: milliseconds lost; longest_drop: frames dropped in a row, a maximum; refresh_hz: of the display.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.page AS page,
    s.refresh_hz AS refresh_hz,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toFloat64(s.count) AS count,
    toFloat64(s.duration_ms) AS duration_ms,
    toFloat64(s.frames_drawn) AS frames_drawn,
    toFloat64(s.frames_dropped) AS frames_dropped,
    toFloat64(s.slow_frames) AS slow_frames,
    toFloat64(s.frozen_frames) AS frozen_frames,
    toFloat64(s.jank_ms) AS jank_ms,
    toFloat64(s.delay_ms) AS delay_ms,
    toUInt32(s.longest_drop) AS longest_drop
FROM frame_windows_hourly AS s
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_installs
(
    `day` Date,
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `installs` AggregateFunction(uniqCombined64(12), UUID),
    `sessions` AggregateFunction(uniqCombined64(12), UUID)
)
COMMENT 'Installs and sessions that sent something, by the day of arrival. installs, sessions: states, for installs of two days do not add up: uniqCombined64Merge(12)(installs) counts the different ones of any choice of rows.'
AS SELECT
    s.day AS day,
    s.project AS project,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    s.installs AS installs,
    s.sessions AS sessions
FROM usage_daily AS s
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_jank_durations
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `kind` LowCardinality(String),
    `page` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `duration_ms` Float64,
    `weight` Float64
)
COMMENT 'How long stalls of the main loop took, by kind, page and hour. duration_ms: the middle of a bucket, in milliseconds; weight: stalls in it, whose sum is their number.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.kind AS kind,
    s.page AS page,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    if(bucket = -2000, 0., (2 * pow(1.02, bucket)) / 2.02) AS duration_ms,
    weight
FROM janks_hourly AS s
ARRAY JOIN
    mapKeys(s.durations_ms) AS bucket,
    mapValues(s.durations_ms) AS weight;

CREATE VIEW IF NOT EXISTS dash_janks
(
    `day` Date,
    `project` LowCardinality(String),
    `kind` LowCardinality(String),
    `page` LowCardinality(String),
    `foreground` Bool,
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `group_id` String,
    `category` String,
    `culprit` String,
    `owner` String,
    `title` String,
    `not_a_cause` Bool,
    `count` Float64,
    `sum_ms` Float64
)
COMMENT 'Stalls of the main loop by day and by the class that counts now. count: stalls; sum_ms: how long they blocked, in milliseconds; group_id: text, for it is a 64-bit number, 0 where a stack has no class yet.'
AS SELECT
    s.day AS day,
    s.project AS project,
    s.kind AS kind,
    s.page AS page,
    s.foreground AS foreground,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toString(c.group_id) AS group_id,
    c.category AS category,
    c.culprit AS culprit,
    c.owner AS owner,
    c.title AS title,
    c.not_a_cause AS not_a_cause,
    toFloat64(s.count) AS count,
    toFloat64(s.sum_ms) AS sum_ms
FROM janks_daily AS s
LEFT JOIN stack_class_current AS c ON (c.project = s.project) AND (c.stack_hash = s.stack_hash)
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_metric_values
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `name` LowCardinality(String),
    `page` LowCardinality(String),
    `uptime` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `value` Float64,
    `weight` Float64
)
COMMENT 'How the values of metrics are distributed, by name and hour. value: the middle of a bucket, in the unit of the metric; weight: samples in it.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.name AS name,
    s.page AS page,
    s.uptime AS uptime,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    multiIf(bucket = -2000, 0., bucket > -2000, (2 * pow(1.02, bucket)) / 2.02, (-2 * pow(1.02, -4001 - bucket)) / 2.02) AS value,
    weight
FROM metrics_hourly AS s
ARRAY JOIN
    mapKeys(s.`values`) AS bucket,
    mapValues(s.`values`) AS weight;

CREATE VIEW IF NOT EXISTS dash_metrics
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `name` LowCardinality(String),
    `page` LowCardinality(String),
    `uptime` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` Float64,
    `sum` Float64,
    `min` Float64,
    `max` Float64
)
COMMENT 'Samples of monitors by name and hour. count: samples; sum, min (a minimum) and max (a maximum): of their values, in the unit of the metric, which is the end of its name; uptime: how long the app had run, in classes.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.name AS name,
    s.page AS page,
    s.uptime AS uptime,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toFloat64(s.count) AS count,
    toFloat64(s.sum) AS sum,
    toFloat64(s.min) AS min,
    toFloat64(s.max) AS max
FROM metrics_hourly AS s
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_outcomes
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `signal` LowCardinality(String),
    `outcome` LowCardinality(String),
    `reason` LowCardinality(String),
    `count` Float64
)
COMMENT 'What became of every event that arrived, by hour: outcome stored, rejected, duplicate or dead_letter, and the reason. count: events; of the signal batch whole requests.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.signal AS signal,
    s.outcome AS outcome,
    s.reason AS reason,
    toFloat64(s.count) AS count
FROM outcomes AS s
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_page_load_parts
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `page` LowCardinality(String),
    `launch` LowCardinality(String),
    `outcome` LowCardinality(String),
    `network` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `part` String,
    `duration_ms` Float64,
    `weight` Float64
)
COMMENT 'How long the parts of page loads took. part: t1, t2, t3 or total, always filter or group by it; duration_ms: the middle of a bucket, in milliseconds; weight: loads in it (a part that was not measured is in none).'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.page AS page,
    s.launch AS launch,
    s.outcome AS outcome,
    s.network AS network,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    part,
    if(bucket = -2000, 0., (2 * pow(1.02, bucket)) / 2.02) AS duration_ms,
    weight
FROM page_loads_hourly AS s
ARRAY JOIN
    arrayConcat(arrayWithConstant(length(s.t1_ms), 't1'), arrayWithConstant(length(s.t2_ms), 't2'), arrayWithConstant(length(s.t3_ms), 't3'), arrayWithConstant(length(s.totals_ms), 'total')) AS part,
    arrayConcat(mapKeys(s.t1_ms), mapKeys(s.t2_ms), mapKeys(s.t3_ms), mapKeys(s.totals_ms)) AS bucket,
    arrayConcat(mapValues(s.t1_ms), mapValues(s.t2_ms), mapValues(s.t3_ms), mapValues(s.totals_ms)) AS weight
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_page_loads
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `page` LowCardinality(String),
    `launch` LowCardinality(String),
    `outcome` LowCardinality(String),
    `network` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` Float64,
    `completed` Float64,
    `sum_ms` Float64
)
COMMENT 'Page loads by page and hour. count: loads; completed: those that ended with the page shown; sum_ms: their total time, in milliseconds.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.page AS page,
    s.launch AS launch,
    s.outcome AS outcome,
    s.network AS network,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toFloat64(s.count) AS count,
    toFloat64(s.completed) AS completed,
    toFloat64(s.sum_ms) AS sum_ms
FROM page_loads_hourly AS s
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_recompositions
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `function` LowCardinality(String),
    `page` LowCardinality(String),
    `cause` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` Float64,
    `window_ms` Float64
)
COMMENT 'Redraws of UI functions by function, page, cause and hour. count: redraws; window_ms: how long was watched, in milliseconds.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.function AS function,
    s.page AS page,
    s.cause AS cause,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toFloat64(s.count) AS count,
    toFloat64(s.window_ms) AS window_ms
FROM recompositions_hourly AS s
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_sdk_drops
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `signal` LowCardinality(String),
    `reason` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` Float64
)
COMMENT 'What devices lost before sending, by signal, reason and the hour of arrival of the report. count: events.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.signal AS signal,
    s.reason AS reason,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toFloat64(s.count) AS count
FROM sdk_drops_hourly AS s
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_sdk_health
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` Float64,
    `overhead_us` Float64,
    `upload_bytes` Float64,
    `queue_bytes` UInt64
)
COMMENT 'What the SDK cost, by the hour of arrival. count: reports; overhead_us: its CPU time in microseconds; upload_bytes: bytes it sent; queue_bytes: bytes waiting on a device, a maximum.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toFloat64(s.count) AS count,
    toFloat64(s.overhead_us) AS overhead_us,
    toFloat64(s.upload_bytes) AS upload_bytes,
    toUInt64(s.queue_bytes) AS queue_bytes
FROM sdk_health_hourly AS s
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_span_durations
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `name` LowCardinality(String),
    `readable_name` String,
    `kind` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `duration_us` Float64,
    `weight` Float64
)
COMMENT 'How long spans took, by name and hour. name: as stored; readable_name: the same, or the function if the name is obfuscated; duration_us: the middle of a bucket, in microseconds; weight: spans in it.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.name AS name,
    if(position(s.name, '@') = 0, toString(s.name), transform(concat(s.project, '/', s.name), ((
        SELECT names
        FROM function_names_sorted
    )).1, ((
        SELECT names
        FROM function_names_sorted
    )).2, toString(s.name))) AS readable_name,
    s.kind AS kind,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    if(bucket = -2000, 0., (2 * pow(1.02, bucket)) / 2.02) AS duration_us,
    weight
FROM spans_hourly AS s
ARRAY JOIN
    mapKeys(s.durations_us) AS bucket,
    mapValues(s.durations_us) AS weight;

CREATE VIEW IF NOT EXISTS dash_spans
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `name` LowCardinality(String),
    `readable_name` String,
    `kind` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `count` Float64,
    `sum_us` Float64,
    `main_thread_us` Float64,
    `errors` Float64
)
COMMENT 'Spans by name and hour. name: as stored; readable_name: the same, or the function if the name is obfuscated; count: spans; sum_us: their duration in microseconds; main_thread_us: the part of it on the main thread; errors: spans that failed.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.name AS name,
    if(position(s.name, '@') = 0, toString(s.name), transform(concat(s.project, '/', s.name), ((
        SELECT names
        FROM function_names_sorted
    )).1, ((
        SELECT names
        FROM function_names_sorted
    )).2, toString(s.name))) AS readable_name,
    s.kind AS kind,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toFloat64(s.count) AS count,
    toFloat64(s.sum_us) AS sum_us,
    toFloat64(s.main_thread_us) AS main_thread_us,
    toFloat64(s.errors) AS errors
FROM spans_hourly AS s
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_traffic
(
    `day` Date,
    `project` LowCardinality(String),
    `source` LowCardinality(String),
    `network` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `tx_bytes` Float64,
    `rx_bytes` Float64,
    `requests` Float64,
    `failed_requests` Float64
)
COMMENT 'Traffic of apps by the natural day of the device, source and network. tx_bytes and rx_bytes: bytes sent and received; requests, failed_requests: requests.'
AS SELECT
    s.day AS day,
    s.project AS project,
    s.source AS source,
    s.network AS network,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toFloat64(s.tx_bytes) AS tx_bytes,
    toFloat64(s.rx_bytes) AS rx_bytes,
    toFloat64(s.requests) AS requests,
    toFloat64(s.failed_requests) AS failed_requests
FROM traffic_daily AS s
WHERE s.project != '';

CREATE VIEW IF NOT EXISTS dash_usage
(
    `hour` DateTime('UTC'),
    `project` LowCardinality(String),
    `sdk_name` LowCardinality(String),
    `sdk_version` LowCardinality(String),
    `app_id` LowCardinality(String),
    `app_version` LowCardinality(String),
    `os_name` LowCardinality(String),
    `device_class` LowCardinality(String),
    `batches` Float64,
    `accepted` Float64,
    `rejected` Float64,
    `bytes` Float64,
    `skewed` Float64
)
COMMENT 'Who sends, by the hour of arrival. batches: stored batches; accepted, rejected: their events; bytes: as sent, compressed; skewed: batches from clocks that are off by more than 30 seconds.'
AS SELECT
    s.hour AS hour,
    s.project AS project,
    s.sdk_name AS sdk_name,
    s.sdk_version AS sdk_version,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toFloat64(s.count) AS batches,
    toFloat64(s.accepted) AS accepted,
    toFloat64(s.rejected) AS rejected,
    toFloat64(s.wire_bytes) AS bytes,
    toFloat64(s.skewed) AS skewed
FROM usage_hourly AS s
WHERE s.project != '';