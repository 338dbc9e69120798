-- Roll-ups of pages, monitors, starts and redraws. What the columns mean stands in `0006_rollups.sql`.

-- Page loads.
CREATE TABLE IF NOT EXISTS page_loads_hourly
(
    project             LowCardinality(String),
    page                LowCardinality(String),
    launch              LowCardinality(String),
    outcome             LowCardinality(String),
    network             LowCardinality(String),
    hour                DateTime('UTC'),
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    sum_ms              SimpleAggregateFunction(sum, Float64),
    completed           SimpleAggregateFunction(sum, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    t1_ms               SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    t2_ms               SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    t3_ms               SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    totals_ms           SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, page, hour, launch, outcome, network, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS page_loads_to_hourly TO page_loads_hourly AS
SELECT
    project,
    page,
    launch,
    outcome,
    network,
    toStartOfHour(start) AS hour,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(1 / sample_rate) AS count,
    toFloat64(count()) AS samples,
    sum(total_ms / sample_rate) AS sum_ms,
    sumIf(1 / sample_rate, outcome = 'completed') AS completed,
    sumIf(1 / sample_rate, received_at > start + INTERVAL 1 HOUR) AS late,
    arrayReduce('sumMap', arrayMap((value, weight) -> map(if(value > 0, toInt16(ceil(log(value) / log(1.02))), toInt16(-2000)), weight), groupArrayIf(assumeNotNull(s.t1_ms), isNotNull(s.t1_ms)), groupArrayIf(1 / sample_rate, isNotNull(s.t1_ms)))) AS t1_ms,
    arrayReduce('sumMap', arrayMap((value, weight) -> map(if(value > 0, toInt16(ceil(log(value) / log(1.02))), toInt16(-2000)), weight), groupArrayIf(assumeNotNull(s.t2_ms), isNotNull(s.t2_ms)), groupArrayIf(1 / sample_rate, isNotNull(s.t2_ms)))) AS t2_ms,
    arrayReduce('sumMap', arrayMap((value, weight) -> map(if(value > 0, toInt16(ceil(log(value) / log(1.02))), toInt16(-2000)), weight), groupArrayIf(assumeNotNull(s.t3_ms), isNotNull(s.t3_ms)), groupArrayIf(1 / sample_rate, isNotNull(s.t3_ms)))) AS t3_ms,
    arrayReduce('sumMap', arrayMap((value, weight) -> map(if(value > 0, toInt16(ceil(log(value) / log(1.02))), toInt16(-2000)), weight), groupArray(total_ms), groupArray(1 / sample_rate))) AS totals_ms,
    uniqCombined64State(12)(install_id) AS installs
FROM page_loads AS s
GROUP BY project, page, launch, outcome, network, hour, app_id, app_version, os_name, device_class;

CREATE TABLE IF NOT EXISTS page_loads_daily
(
    project             LowCardinality(String),
    page                LowCardinality(String),
    launch              LowCardinality(String),
    outcome             LowCardinality(String),
    network             LowCardinality(String),
    day                 Date,
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    sum_ms              SimpleAggregateFunction(sum, Float64),
    completed           SimpleAggregateFunction(sum, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    t1_ms               SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    t2_ms               SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    t3_ms               SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    totals_ms           SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, page, day, launch, outcome, network, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS page_loads_to_daily TO page_loads_daily AS
SELECT
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
    sum(s.count) AS count,
    sum(s.samples) AS samples,
    sum(s.sum_ms) AS sum_ms,
    sum(s.completed) AS completed,
    sum(s.late) AS late,
    sumMap(s.t1_ms) AS t1_ms,
    sumMap(s.t2_ms) AS t2_ms,
    sumMap(s.t3_ms) AS t3_ms,
    sumMap(s.totals_ms) AS totals_ms,
    uniqCombined64MergeState(12)(s.installs) AS installs
FROM page_loads_hourly AS s
GROUP BY project, page, launch, outcome, network, day, app_id, app_version, os_name, device_class;

-- Samples of monitors, with how long the app had been running.
CREATE TABLE IF NOT EXISTS metrics_hourly
(
    project             LowCardinality(String),
    name                LowCardinality(String),
    page                LowCardinality(String),
    uptime              LowCardinality(String),
    hour                DateTime('UTC'),
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    sum                 SimpleAggregateFunction(sum, Float64),
    min                 SimpleAggregateFunction(min, Float64),
    max                 SimpleAggregateFunction(max, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    values              SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, name, hour, page, uptime, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS metrics_to_hourly TO metrics_hourly AS
SELECT
    project,
    name,
    page,
    multiIf(uptime_ms < 60000, 'under_1m', uptime_ms < 300000, '1m_5m', uptime_ms < 900000, '5m_15m', uptime_ms < 3600000, '15m_1h', 'over_1h') AS uptime,
    toStartOfHour(time) AS hour,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(greatest(s.count, 1) / sample_rate) AS count,
    toFloat64(count()) AS samples,
    sum(s.value * greatest(s.count, 1) / sample_rate) AS sum,
    min(if(s.count > 1, s.min, s.value)) AS min,
    max(if(s.count > 1, s.max, s.value)) AS max,
    sumIf(1 / sample_rate, received_at > time + INTERVAL 1 HOUR) AS late,
    arrayReduce('sumMap', arrayMap((value, weight) -> map(if(value > 0, toInt16(ceil(log(value) / log(1.02))), toInt16(-2000)), weight), groupArray(s.value), groupArray(greatest(s.count, 1) / sample_rate))) AS values,
    uniqCombined64State(12)(install_id) AS installs
FROM metrics AS s
GROUP BY project, name, page, uptime, hour, app_id, app_version, os_name, device_class;

CREATE TABLE IF NOT EXISTS metrics_daily
(
    project             LowCardinality(String),
    name                LowCardinality(String),
    page                LowCardinality(String),
    uptime              LowCardinality(String),
    day                 Date,
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    sum                 SimpleAggregateFunction(sum, Float64),
    min                 SimpleAggregateFunction(min, Float64),
    max                 SimpleAggregateFunction(max, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    values              SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, name, day, page, uptime, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS metrics_to_daily TO metrics_daily AS
SELECT
    project,
    name,
    page,
    uptime,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(s.count) AS count,
    sum(s.samples) AS samples,
    sum(s.sum) AS sum,
    min(s.min) AS min,
    max(s.max) AS max,
    sum(s.late) AS late,
    sumMap(s.values) AS values,
    uniqCombined64MergeState(12)(s.installs) AS installs
FROM metrics_hourly AS s
GROUP BY project, name, page, uptime, day, app_id, app_version, os_name, device_class;

-- Starts of the app. Their phases are read from the raw rows: an app starts seldom.
CREATE TABLE IF NOT EXISTS app_starts_hourly
(
    project             LowCardinality(String),
    kind                LowCardinality(String),
    hour                DateTime('UTC'),
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    sum_ms              SimpleAggregateFunction(sum, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    durations_ms        SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, kind, hour, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS app_starts_to_hourly TO app_starts_hourly AS
SELECT
    project,
    kind,
    toStartOfHour(start) AS hour,
    app_id,
    app_version,
    os_name,
    device_class,
    toFloat64(count()) AS count,
    toFloat64(sum(duration_ms)) AS sum_ms,
    sumIf(1., received_at > start + INTERVAL 1 HOUR) AS late,
    arrayReduce('sumMap', arrayMap((value, weight) -> map(if(value > 0, toInt16(ceil(log(value) / log(1.02))), toInt16(-2000)), weight), groupArray(duration_ms), groupArray(1.))) AS durations_ms,
    uniqCombined64State(12)(install_id) AS installs
FROM app_starts AS s
GROUP BY project, kind, hour, app_id, app_version, os_name, device_class;

CREATE TABLE IF NOT EXISTS app_starts_daily
(
    project             LowCardinality(String),
    kind                LowCardinality(String),
    day                 Date,
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    sum_ms              SimpleAggregateFunction(sum, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    durations_ms        SimpleAggregateFunction(sumMap, Map(Int16, Float64)),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, kind, day, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS app_starts_to_daily TO app_starts_daily AS
SELECT
    project,
    kind,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(s.count) AS count,
    sum(s.sum_ms) AS sum_ms,
    sum(s.late) AS late,
    sumMap(s.durations_ms) AS durations_ms,
    uniqCombined64MergeState(12)(s.installs) AS installs
FROM app_starts_hourly AS s
GROUP BY project, kind, day, app_id, app_version, os_name, device_class;

-- UI functions redrawn.
CREATE TABLE IF NOT EXISTS recompositions_hourly
(
    project             LowCardinality(String),
    function            LowCardinality(String),
    page                LowCardinality(String),
    cause               LowCardinality(String),
    hour                DateTime('UTC'),
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    window_ms           SimpleAggregateFunction(sum, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, function, hour, page, cause, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS recompositions_to_hourly TO recompositions_hourly AS
SELECT
    project,
    function,
    page,
    cause,
    toStartOfHour(start) AS hour,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(s.count / sample_rate) AS count,
    toFloat64(count()) AS samples,
    sum(s.window_ms / sample_rate) AS window_ms,
    sumIf(1 / sample_rate, received_at > start + INTERVAL 1 HOUR) AS late,
    uniqCombined64State(12)(install_id) AS installs
FROM recompositions AS s
GROUP BY project, function, page, cause, hour, app_id, app_version, os_name, device_class;

CREATE TABLE IF NOT EXISTS recompositions_daily
(
    project             LowCardinality(String),
    function            LowCardinality(String),
    page                LowCardinality(String),
    cause               LowCardinality(String),
    day                 Date,
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    samples             SimpleAggregateFunction(sum, Float64),
    window_ms           SimpleAggregateFunction(sum, Float64),
    late                SimpleAggregateFunction(sum, Float64),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, function, day, page, cause, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS recompositions_to_daily TO recompositions_daily AS
SELECT
    project,
    function,
    page,
    cause,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(s.count) AS count,
    sum(s.samples) AS samples,
    sum(s.window_ms) AS window_ms,
    sum(s.late) AS late,
    uniqCombined64MergeState(12)(s.installs) AS installs
FROM recompositions_hourly AS s
GROUP BY project, function, page, cause, day, app_id, app_version, os_name, device_class;
