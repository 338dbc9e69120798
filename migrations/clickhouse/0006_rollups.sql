-- Roll-ups: what overviews read. Raw tables are for detail, and for questions that name what a roll-up does not keep.
--
-- By the hour and by the day (UTC), filled by materialized views in the same INSERT as the raw rows, with the same deduplication. The
-- day is made of the rows of the hour, so that a block is walked once.
--
-- * Every row is of one cohort: app, version, operating system, class of device. More would leave nothing to add up.
-- * Counts and sums are weighted by the inverse of the sample rate: they estimate what happened, not what was sent.
-- * Distributions are histograms with the weight of each event: bucket b holds the values in (1.02^(b-1), 1.02^b], so any percentile is
--   known to 1 %, whatever rates were mixed. -2000 holds what is not above zero. Sketches without weights would follow those who are
--   sampled most.
-- * `installs` and `sessions` are states of uniqCombined64(12): exact for a few, to about 1.6 % for many.
-- * `samples` counts what was sent, without weights: how much the other numbers stand on.
-- * `late` counts what came more than an hour after it happened.

-- Spans by name.
CREATE TABLE IF NOT EXISTS spans_hourly
(
    project             LowCardinality(String),
    name                LowCardinality(String),
    kind                LowCardinality(String),
    hour                DateTime('UTC'),
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    sum_us              SimpleAggregateFunction(sum, Float64),
    main_thread_us      SimpleAggregateFunction(sum, Float64),
    errors              SimpleAggregateFunction(sum, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    durations_us        SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, name, hour, kind, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS spans_to_hourly TO spans_hourly AS
SELECT
    project,
    name,
    kind,
    toStartOfHour(start) AS hour,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(1 / sample_rate) AS count,
    toFloat64(count()) AS samples,
    sum(duration_us / sample_rate) AS sum_us,
    sumIf(duration_us / sample_rate, on_main_thread) AS main_thread_us,
    sumIf(1 / sample_rate, status = 'error') AS errors,
    sumIf(1 / sample_rate, received_at > start + INTERVAL 1 HOUR) AS late,
    arrayReduce('sumMap', arrayMap((value, weight) -> map(if(value > 0, toInt16(ceil(log(value) / log(1.02))), toInt16(-2000)), weight), groupArray(duration_us), groupArray(1 / sample_rate))) AS durations_us,
    uniqCombined64State(12)(install_id) AS installs
FROM spans AS s
GROUP BY project, name, kind, hour, app_id, app_version, os_name, device_class;

CREATE TABLE IF NOT EXISTS spans_daily
(
    project             LowCardinality(String),
    name                LowCardinality(String),
    kind                LowCardinality(String),
    day                 Date,
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    sum_us              SimpleAggregateFunction(sum, Float64),
    main_thread_us      SimpleAggregateFunction(sum, Float64),
    errors              SimpleAggregateFunction(sum, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    durations_us        SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, name, day, kind, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS spans_to_daily TO spans_daily AS
SELECT
    project,
    name,
    kind,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(s.count) AS count,
    sum(s.samples) AS samples,
    sum(s.sum_us) AS sum_us,
    sum(s.main_thread_us) AS main_thread_us,
    sum(s.errors) AS errors,
    sum(s.late) AS late,
    sumMap(s.durations_us) AS durations_us,
    uniqCombined64MergeState(12)(s.installs) AS installs
FROM spans_hourly AS s
GROUP BY project, name, kind, day, app_id, app_version, os_name, device_class;

-- Frames by page.
CREATE TABLE IF NOT EXISTS frame_windows_hourly
(
    project             LowCardinality(String),
    page                LowCardinality(String),
    refresh_hz          UInt16,
    hour                DateTime('UTC'),
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    duration_ms         SimpleAggregateFunction(sum, Float64),
    frames_drawn        SimpleAggregateFunction(sum, Float64),
    frames_dropped      SimpleAggregateFunction(sum, Float64),
    slow_frames         SimpleAggregateFunction(sum, Float64),
    frozen_frames       SimpleAggregateFunction(sum, Float64),
    jank_ms             SimpleAggregateFunction(sum, Float64),
    delay_ms            SimpleAggregateFunction(sum, Float64),
    longest_drop        SimpleAggregateFunction(max, UInt32),
    late                SimpleAggregateFunction(sum, Float64),
    frame_times_ms      SimpleAggregateFunction(sumMap, Map(UInt32, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID),
    sessions            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, page, hour, refresh_hz, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS frame_windows_to_hourly TO frame_windows_hourly AS
SELECT
    project,
    page,
    refresh_hz,
    toStartOfHour(start) AS hour,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(1 / sample_rate) AS count,
    toFloat64(count()) AS samples,
    sum(s.duration_ms / sample_rate) AS duration_ms,
    sum(s.frames_drawn / sample_rate) AS frames_drawn,
    sum(s.frames_dropped / sample_rate) AS frames_dropped,
    sum(s.slow_frames / sample_rate) AS slow_frames,
    sum(s.frozen_frames / sample_rate) AS frozen_frames,
    sum(s.jank_ms / sample_rate) AS jank_ms,
    sum(s.delay_ms / sample_rate) AS delay_ms,
    max(s.longest_drop) AS longest_drop,
    sumIf(1 / sample_rate, received_at > start + INTERVAL 1 HOUR) AS late,
    sumMap(mapApply((ms, frames) -> (ms, frames / sample_rate), frame_time_hist)) AS frame_times_ms,
    uniqCombined64State(12)(install_id) AS installs,
    uniqCombined64State(12)(session_id) AS sessions
FROM frame_windows AS s
GROUP BY project, page, refresh_hz, hour, app_id, app_version, os_name, device_class;

CREATE TABLE IF NOT EXISTS frame_windows_daily
(
    project             LowCardinality(String),
    page                LowCardinality(String),
    refresh_hz          UInt16,
    day                 Date,
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    duration_ms         SimpleAggregateFunction(sum, Float64),
    frames_drawn        SimpleAggregateFunction(sum, Float64),
    frames_dropped      SimpleAggregateFunction(sum, Float64),
    slow_frames         SimpleAggregateFunction(sum, Float64),
    frozen_frames       SimpleAggregateFunction(sum, Float64),
    jank_ms             SimpleAggregateFunction(sum, Float64),
    delay_ms            SimpleAggregateFunction(sum, Float64),
    longest_drop        SimpleAggregateFunction(max, UInt32),
    late                SimpleAggregateFunction(sum, Float64),
    frame_times_ms      SimpleAggregateFunction(sumMap, Map(UInt32, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID),
    sessions            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, page, day, refresh_hz, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS frame_windows_to_daily TO frame_windows_daily AS
SELECT
    project,
    page,
    refresh_hz,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(s.count) AS count,
    sum(s.samples) AS samples,
    sum(s.duration_ms) AS duration_ms,
    sum(s.frames_drawn) AS frames_drawn,
    sum(s.frames_dropped) AS frames_dropped,
    sum(s.slow_frames) AS slow_frames,
    sum(s.frozen_frames) AS frozen_frames,
    sum(s.jank_ms) AS jank_ms,
    sum(s.delay_ms) AS delay_ms,
    max(s.longest_drop) AS longest_drop,
    sum(s.late) AS late,
    sumMap(s.frame_times_ms) AS frame_times_ms,
    uniqCombined64MergeState(12)(s.installs) AS installs,
    uniqCombined64MergeState(12)(s.sessions) AS sessions
FROM frame_windows_hourly AS s
GROUP BY project, page, refresh_hz, day, app_id, app_version, os_name, device_class;

-- Janks by page; by stack only in `janks_daily`.
CREATE TABLE IF NOT EXISTS janks_hourly
(
    project             LowCardinality(String),
    kind                LowCardinality(String),
    page                LowCardinality(String),
    hour                DateTime('UTC'),
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    sum_ms              SimpleAggregateFunction(sum, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    durations_ms        SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID),
    sessions            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, kind, hour, page, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS janks_to_hourly TO janks_hourly AS
SELECT
    project,
    kind,
    page,
    toStartOfHour(start) AS hour,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(1 / sample_rate) AS count,
    toFloat64(count()) AS samples,
    sum(duration_ms / sample_rate) AS sum_ms,
    sumIf(1 / sample_rate, received_at > start + INTERVAL 1 HOUR) AS late,
    arrayReduce('sumMap', arrayMap((value, weight) -> map(if(value > 0, toInt16(ceil(log(value) / log(1.02))), toInt16(-2000)), weight), groupArray(duration_ms), groupArray(1 / sample_rate))) AS durations_ms,
    uniqCombined64State(12)(install_id) AS installs,
    uniqCombined64State(12)(session_id) AS sessions
FROM janks AS s
GROUP BY project, kind, page, hour, app_id, app_version, os_name, device_class;

-- Janks by stack. The class of a stack is joined when it is read: new rules change it without a row of this being written.
CREATE TABLE IF NOT EXISTS janks_daily
(
    project             LowCardinality(String),
    stack_hash          UInt64,
    kind                LowCardinality(String),
    page                LowCardinality(String),
    foreground          Bool,
    day                 Date,
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    sum_ms              SimpleAggregateFunction(sum, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    durations_ms        SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID),
    sessions            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, day, stack_hash, kind, page, foreground, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS janks_to_daily TO janks_daily AS
SELECT
    project,
    stack_hash,
    kind,
    page,
    foreground,
    toDate(start) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(1 / sample_rate) AS count,
    toFloat64(count()) AS samples,
    sum(duration_ms / sample_rate) AS sum_ms,
    sumIf(1 / sample_rate, received_at > start + INTERVAL 1 HOUR) AS late,
    arrayReduce('sumMap', arrayMap((value, weight) -> map(if(value > 0, toInt16(ceil(log(value) / log(1.02))), toInt16(-2000)), weight), groupArray(duration_ms), groupArray(1 / sample_rate))) AS durations_ms,
    uniqCombined64State(12)(install_id) AS installs,
    uniqCombined64State(12)(session_id) AS sessions
FROM janks AS s
GROUP BY project, stack_hash, kind, page, foreground, day, app_id, app_version, os_name, device_class;
