-- Views for outside tools: the contract. Dashboards read `dash_*` and nothing else, so that tables may change behind them.
--
-- * A column of a view keeps its name, its meaning and its unit; new columns may come. The unit is the end of the name.
-- * Rows are pieces that add up: the same keys may come several times. Sum sums, take the largest of what its comment calls a
--   maximum. Times are UTC; `hour` is when an hour begins.
-- * Counts and sums are weighted by the inverse of the sample rate: they estimate what happened, not what was sent.
-- * A distribution has a row for each bucket with the middle of the bucket (within 1 % of the value) and its `weight`, which is how
--   many events it stands for. A percentile, the same as the query API's:
--   quantileExactWeighted(0.95)(duration_us, toUInt64(round(weight * 1000)))
-- * Columns are named one by one and never `*`: a view does not change because its table gains columns.

CREATE VIEW IF NOT EXISTS dash_spans AS
SELECT
    s.hour AS hour,
    s.project AS project,
    s.name AS name,
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
COMMENT 'Spans by name and hour. count: spans; sum_us: their duration in microseconds; main_thread_us: the part of it on the main thread; errors: spans that failed.';

CREATE VIEW IF NOT EXISTS dash_span_durations AS
SELECT
    s.hour AS hour,
    s.project AS project,
    s.name AS name,
    s.kind AS kind,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    if(bucket = -2000, 0., 2 * pow(1.02, bucket) / 2.02) AS duration_us,
    weight
FROM spans_hourly AS s
ARRAY JOIN mapKeys(s.durations_us) AS bucket, mapValues(s.durations_us) AS weight
COMMENT 'How long spans took, by name and hour. duration_us: the middle of a bucket, in microseconds; weight: spans in it.';

CREATE VIEW IF NOT EXISTS dash_frames AS
SELECT
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
COMMENT 'Frames by page and hour. count: windows; duration_ms: how long they were, in milliseconds; frames_…: frames; jank_ms and delay_ms: milliseconds lost; longest_drop: frames dropped in a row, a maximum; refresh_hz: of the display.';

CREATE VIEW IF NOT EXISTS dash_frame_times AS
SELECT
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
ARRAY JOIN mapKeys(s.frame_times_ms) AS frame_ms, mapValues(s.frame_times_ms) AS weight
COMMENT 'How long frames took, by page and hour. frame_ms: the lower bound of a bucket as the device named it, in milliseconds; weight: frames in it.';

CREATE VIEW IF NOT EXISTS dash_janks AS
SELECT
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
LEFT JOIN stack_class_current AS c ON c.project = s.project AND c.stack_hash = s.stack_hash
COMMENT 'Stalls of the main loop by day and by the class that counts now. count: stalls; sum_ms: how long they blocked, in milliseconds; group_id: text, for it is a 64-bit number, 0 where a stack has no class yet.';

CREATE VIEW IF NOT EXISTS dash_jank_durations AS
SELECT
    s.hour AS hour,
    s.project AS project,
    s.kind AS kind,
    s.page AS page,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    if(bucket = -2000, 0., 2 * pow(1.02, bucket) / 2.02) AS duration_ms,
    weight
FROM janks_hourly AS s
ARRAY JOIN mapKeys(s.durations_ms) AS bucket, mapValues(s.durations_ms) AS weight
COMMENT 'How long stalls of the main loop took, by kind, page and hour. duration_ms: the middle of a bucket, in milliseconds; weight: stalls in it, whose sum is their number.';

CREATE VIEW IF NOT EXISTS dash_page_loads AS
SELECT
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
COMMENT 'Page loads by page and hour. count: loads; completed: those that ended with the page shown; sum_ms: their total time, in milliseconds.';

CREATE VIEW IF NOT EXISTS dash_page_load_parts AS
SELECT
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
    if(bucket = -2000, 0., 2 * pow(1.02, bucket) / 2.02) AS duration_ms,
    weight
FROM page_loads_hourly AS s
ARRAY JOIN
    arrayConcat(
        arrayWithConstant(length(s.t1_ms), 't1'),
        arrayWithConstant(length(s.t2_ms), 't2'),
        arrayWithConstant(length(s.t3_ms), 't3'),
        arrayWithConstant(length(s.totals_ms), 'total')) AS part,
    arrayConcat(mapKeys(s.t1_ms), mapKeys(s.t2_ms), mapKeys(s.t3_ms), mapKeys(s.totals_ms)) AS bucket,
    arrayConcat(mapValues(s.t1_ms), mapValues(s.t2_ms), mapValues(s.t3_ms), mapValues(s.totals_ms)) AS weight
COMMENT 'How long the parts of page loads took. part: t1, t2, t3 or total, always filter or group by it; duration_ms: the middle of a bucket, in milliseconds; weight: loads in it (a part that was not measured is in none).';

CREATE VIEW IF NOT EXISTS dash_traffic AS
SELECT
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
COMMENT 'Traffic of apps by the natural day of the device, source and network. tx_bytes and rx_bytes: bytes sent and received; requests, failed_requests: requests.';

CREATE VIEW IF NOT EXISTS dash_metrics AS
SELECT
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
COMMENT 'Samples of monitors by name and hour. count: samples; sum, min (a minimum) and max (a maximum): of their values, in the unit of the metric, which is the end of its name; uptime: how long the app had run, in classes.';

CREATE VIEW IF NOT EXISTS dash_metric_values AS
SELECT
    s.hour AS hour,
    s.project AS project,
    s.name AS name,
    s.page AS page,
    s.uptime AS uptime,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    if(bucket = -2000, 0., 2 * pow(1.02, bucket) / 2.02) AS value,
    weight
FROM metrics_hourly AS s
ARRAY JOIN mapKeys(s.values) AS bucket, mapValues(s.values) AS weight
COMMENT 'How the values of metrics are distributed, by name and hour. value: the middle of a bucket, in the unit of the metric, 0 for all that is not above it; weight: samples in it.';

CREATE VIEW IF NOT EXISTS dash_app_starts AS
SELECT
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
COMMENT 'Starts of apps by kind and hour. count: starts; sum_ms: how long they took, in milliseconds.';

CREATE VIEW IF NOT EXISTS dash_app_start_durations AS
SELECT
    s.hour AS hour,
    s.project AS project,
    s.kind AS kind,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    if(bucket = -2000, 0., 2 * pow(1.02, bucket) / 2.02) AS duration_ms,
    weight
FROM app_starts_hourly AS s
ARRAY JOIN mapKeys(s.durations_ms) AS bucket, mapValues(s.durations_ms) AS weight
COMMENT 'How long starts of apps took, by kind and hour. duration_ms: the middle of a bucket, in milliseconds; weight: starts in it.';

CREATE VIEW IF NOT EXISTS dash_recompositions AS
SELECT
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
COMMENT 'Redraws of UI functions by function, page, cause and hour. count: redraws; window_ms: how long was watched, in milliseconds.';

CREATE VIEW IF NOT EXISTS dash_usage AS
SELECT
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
COMMENT 'Who sends, by the hour of arrival. batches: stored batches; accepted, rejected: their events; bytes: as sent, compressed; skewed: batches from clocks that are off by more than 30 seconds.';

CREATE VIEW IF NOT EXISTS dash_installs AS
SELECT
    s.day AS day,
    s.project AS project,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    s.installs AS installs,
    s.sessions AS sessions
FROM usage_daily AS s
COMMENT 'Installs and sessions that sent something, by the day of arrival. installs, sessions: states, for installs of two days do not add up: uniqCombined64Merge(12)(installs) counts the different ones of any choice of rows.';

CREATE VIEW IF NOT EXISTS dash_sdk_health AS
SELECT
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
COMMENT 'What the SDK cost, by the hour of arrival. count: reports; overhead_us: its CPU time in microseconds; upload_bytes: bytes it sent; queue_bytes: bytes waiting on a device, a maximum.';

CREATE VIEW IF NOT EXISTS dash_sdk_drops AS
SELECT
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
COMMENT 'What devices lost before sending, by signal, reason and the hour of arrival of the report. count: events.';

CREATE VIEW IF NOT EXISTS dash_outcomes AS
SELECT
    s.hour AS hour,
    s.project AS project,
    s.signal AS signal,
    s.outcome AS outcome,
    s.reason AS reason,
    toFloat64(s.count) AS count
FROM outcomes AS s
COMMENT 'What became of every event that arrived, by hour: outcome stored, rejected, duplicate or dead_letter, and the reason. count: events; of the signal batch whole requests.';
