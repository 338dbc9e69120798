-- The views for outside tools pass over the server's marks (0011), which have no project. Nothing else changes. Views of distributions
-- need nothing: a mark has none.

CREATE OR REPLACE VIEW dash_spans AS
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
WHERE s.project != ''
COMMENT 'Spans by name and hour. count: spans; sum_us: their duration in microseconds; main_thread_us: the part of it on the main thread; errors: spans that failed.';

CREATE OR REPLACE VIEW dash_frames AS
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
WHERE s.project != ''
COMMENT 'Frames by page and hour. count: windows; duration_ms: how long they were, in milliseconds; frames_…: frames; jank_ms and delay_ms: milliseconds lost; longest_drop: frames dropped in a row, a maximum; refresh_hz: of the display.';

CREATE OR REPLACE VIEW dash_janks AS
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
WHERE s.project != ''
COMMENT 'Stalls of the main loop by day and by the class that counts now. count: stalls; sum_ms: how long they blocked, in milliseconds; group_id: text, for it is a 64-bit number, 0 where a stack has no class yet.';

CREATE OR REPLACE VIEW dash_page_loads AS
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
WHERE s.project != ''
COMMENT 'Page loads by page and hour. count: loads; completed: those that ended with the page shown; sum_ms: their total time, in milliseconds.';

CREATE OR REPLACE VIEW dash_page_load_parts AS
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
WHERE s.project != ''
COMMENT 'How long the parts of page loads took. part: t1, t2, t3 or total, always filter or group by it; duration_ms: the middle of a bucket, in milliseconds; weight: loads in it (a part that was not measured is in none).';

CREATE OR REPLACE VIEW dash_traffic AS
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
WHERE s.project != ''
COMMENT 'Traffic of apps by the natural day of the device, source and network. tx_bytes and rx_bytes: bytes sent and received; requests, failed_requests: requests.';

CREATE OR REPLACE VIEW dash_metrics AS
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
WHERE s.project != ''
COMMENT 'Samples of monitors by name and hour. count: samples; sum, min (a minimum) and max (a maximum): of their values, in the unit of the metric, which is the end of its name; uptime: how long the app had run, in classes.';

CREATE OR REPLACE VIEW dash_app_starts AS
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
WHERE s.project != ''
COMMENT 'Starts of apps by kind and hour. count: starts; sum_ms: how long they took, in milliseconds.';

CREATE OR REPLACE VIEW dash_recompositions AS
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
WHERE s.project != ''
COMMENT 'Redraws of UI functions by function, page, cause and hour. count: redraws; window_ms: how long was watched, in milliseconds.';

CREATE OR REPLACE VIEW dash_usage AS
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
WHERE s.project != ''
COMMENT 'Who sends, by the hour of arrival. batches: stored batches; accepted, rejected: their events; bytes: as sent, compressed; skewed: batches from clocks that are off by more than 30 seconds.';

CREATE OR REPLACE VIEW dash_installs AS
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
WHERE s.project != ''
COMMENT 'Installs and sessions that sent something, by the day of arrival. installs, sessions: states, for installs of two days do not add up: uniqCombined64Merge(12)(installs) counts the different ones of any choice of rows.';

CREATE OR REPLACE VIEW dash_sdk_health AS
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
WHERE s.project != ''
COMMENT 'What the SDK cost, by the hour of arrival. count: reports; overhead_us: its CPU time in microseconds; upload_bytes: bytes it sent; queue_bytes: bytes waiting on a device, a maximum.';

CREATE OR REPLACE VIEW dash_sdk_drops AS
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
WHERE s.project != ''
COMMENT 'What devices lost before sending, by signal, reason and the hour of arrival of the report. count: events.';

CREATE OR REPLACE VIEW dash_outcomes AS
SELECT
    s.hour AS hour,
    s.project AS project,
    s.signal AS signal,
    s.outcome AS outcome,
    s.reason AS reason,
    toFloat64(s.count) AS count
FROM outcomes AS s
WHERE s.project != ''
COMMENT 'What became of every event that arrived, by hour: outcome stored, rejected, duplicate or dead_letter, and the reason. count: events; of the signal batch whole requests.';
