-- Roll-ups of what devices say of themselves, and of their traffic. What the columns mean stands in `0006_rollups.sql`.

-- What the SDK cost.
CREATE TABLE IF NOT EXISTS sdk_health_hourly
(
    project             LowCardinality(String),
    hour                DateTime('UTC'),
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    overhead_us         SimpleAggregateFunction(sum, Float64),
    upload_bytes        SimpleAggregateFunction(sum, Float64),
    queue_bytes         SimpleAggregateFunction(max, UInt64),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, hour, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS sdk_health_to_hourly TO sdk_health_hourly AS
SELECT
    project,
    toStartOfHour(received_at) AS hour,
    app_id,
    app_version,
    os_name,
    device_class,
    toFloat64(count()) AS count,
    toFloat64(sum(s.overhead_us)) AS overhead_us,
    toFloat64(sum(s.upload_bytes)) AS upload_bytes,
    max(s.queue_bytes) AS queue_bytes,
    uniqCombined64State(12)(install_id) AS installs
FROM sdk_health AS s
GROUP BY project, hour, app_id, app_version, os_name, device_class;

CREATE TABLE IF NOT EXISTS sdk_health_daily
(
    project             LowCardinality(String),
    day                 Date,
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    overhead_us         SimpleAggregateFunction(sum, Float64),
    upload_bytes        SimpleAggregateFunction(sum, Float64),
    queue_bytes         SimpleAggregateFunction(max, UInt64),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, day, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS sdk_health_to_daily TO sdk_health_daily AS
SELECT
    project,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(s.count) AS count,
    sum(s.overhead_us) AS overhead_us,
    sum(s.upload_bytes) AS upload_bytes,
    max(s.queue_bytes) AS queue_bytes,
    uniqCombined64MergeState(12)(s.installs) AS installs
FROM sdk_health_hourly AS s
GROUP BY project, day, app_id, app_version, os_name, device_class;

-- What devices lost, and why.
CREATE TABLE IF NOT EXISTS sdk_drops_hourly
(
    project             LowCardinality(String),
    signal              LowCardinality(String),
    reason              LowCardinality(String),
    hour                DateTime('UTC'),
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, signal, hour, reason, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS sdk_drops_to_hourly TO sdk_drops_hourly AS
SELECT
    project,
    signal,
    reason,
    toStartOfHour(received_at) AS hour,
    app_id,
    app_version,
    os_name,
    device_class,
    toFloat64(sum(dropped)) AS count,
    uniqCombined64State(12)(install_id) AS installs
FROM sdk_health AS s
ARRAY JOIN `dropped.signal` AS signal, `dropped.reason` AS reason, `dropped.count` AS dropped
GROUP BY project, signal, reason, hour, app_id, app_version, os_name, device_class;

CREATE TABLE IF NOT EXISTS sdk_drops_daily
(
    project             LowCardinality(String),
    signal              LowCardinality(String),
    reason              LowCardinality(String),
    day                 Date,
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, signal, day, reason, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS sdk_drops_to_daily TO sdk_drops_daily AS
SELECT
    project,
    signal,
    reason,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(s.count) AS count,
    uniqCombined64MergeState(12)(s.installs) AS installs
FROM sdk_drops_hourly AS s
GROUP BY project, signal, reason, day, app_id, app_version, os_name, device_class;

-- Who sends, by the time of arrival.
CREATE TABLE IF NOT EXISTS usage_hourly
(
    project             LowCardinality(String),
    sdk_name            LowCardinality(String),
    sdk_version         LowCardinality(String),
    hour                DateTime('UTC'),
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    accepted            SimpleAggregateFunction(sum, Float64),
    rejected            SimpleAggregateFunction(sum, Float64),
    wire_bytes          SimpleAggregateFunction(sum, Float64),
    skewed              SimpleAggregateFunction(sum, Float64),
    installs            AggregateFunction(uniqCombined64(12), UUID),
    sessions            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(hour)
ORDER BY (project, sdk_name, hour, sdk_version, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS usage_to_hourly TO usage_hourly AS
SELECT
    project,
    sdk_name,
    sdk_version,
    toStartOfHour(received_at) AS hour,
    app_id,
    app_version,
    os_name,
    device_class,
    toFloat64(count()) AS count,
    toFloat64(sum(s.accepted)) AS accepted,
    toFloat64(sum(s.rejected)) AS rejected,
    toFloat64(sum(s.wire_bytes)) AS wire_bytes,
    toFloat64(countIf(abs(skew_us) > 30000000)) AS skewed,
    uniqCombined64State(12)(install_id) AS installs,
    uniqCombined64State(12)(session_id) AS sessions
FROM batches AS s
GROUP BY project, sdk_name, sdk_version, hour, app_id, app_version, os_name, device_class;

CREATE TABLE IF NOT EXISTS usage_daily
(
    project             LowCardinality(String),
    sdk_name            LowCardinality(String),
    sdk_version         LowCardinality(String),
    day                 Date,
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    count               SimpleAggregateFunction(sum, Float64),
    accepted            SimpleAggregateFunction(sum, Float64),
    rejected            SimpleAggregateFunction(sum, Float64),
    wire_bytes          SimpleAggregateFunction(sum, Float64),
    skewed              SimpleAggregateFunction(sum, Float64),
    installs            AggregateFunction(uniqCombined64(12), UUID),
    sessions            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, sdk_name, day, sdk_version, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS usage_to_daily TO usage_daily AS
SELECT
    project,
    sdk_name,
    sdk_version,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    sum(s.count) AS count,
    sum(s.accepted) AS accepted,
    sum(s.rejected) AS rejected,
    sum(s.wire_bytes) AS wire_bytes,
    sum(s.skewed) AS skewed,
    uniqCombined64MergeState(12)(s.installs) AS installs,
    uniqCombined64MergeState(12)(s.sessions) AS sessions
FROM usage_hourly AS s
GROUP BY project, sdk_name, sdk_version, day, app_id, app_version, os_name, device_class;

-- Bytes by the device's natural day.
CREATE TABLE IF NOT EXISTS traffic_daily
(
    project             LowCardinality(String),
    source              LowCardinality(String),
    network             LowCardinality(String),
    day                 Date,
    app_id              LowCardinality(String),
    app_version         LowCardinality(String),
    os_name             LowCardinality(String),
    device_class        LowCardinality(String),
    tx_bytes            SimpleAggregateFunction(sum, Float64),
    rx_bytes            SimpleAggregateFunction(sum, Float64),
    requests            SimpleAggregateFunction(sum, Float64),
    failed_requests     SimpleAggregateFunction(sum, Float64),
    installs            AggregateFunction(uniqCombined64(12), UUID)
)
ENGINE = AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (project, day, source, network, app_id, app_version, os_name, device_class)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    ttl_only_drop_parts = 1,
    default_compression_codec = 'ZSTD(1)';

CREATE MATERIALIZED VIEW IF NOT EXISTS traffic_to_daily TO traffic_daily AS
SELECT
    project,
    source,
    network,
    day,
    app_id,
    app_version,
    os_name,
    device_class,
    toFloat64(sum(s.tx_bytes)) AS tx_bytes,
    toFloat64(sum(s.rx_bytes)) AS rx_bytes,
    toFloat64(sum(s.requests)) AS requests,
    toFloat64(sum(s.failed_requests)) AS failed_requests,
    uniqCombined64State(12)(install_id) AS installs
FROM traffic AS s
GROUP BY project, source, network, day, app_id, app_version, os_name, device_class;
