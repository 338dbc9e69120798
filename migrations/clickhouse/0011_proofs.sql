-- What a range of the ingest log and a fold have brought is written in the rows themselves, so that it can be asked.
--
-- * `range_id` is the number of the range a row came with (`server/src/store/number.rs`), in the last three bytes the number of the record
--   when it was sent alone. Neighbours have the same one, so it takes next to no room. 0: a server of an older version.
-- * Rows with a number are rolled up by the server soon after (`server/src/store/fold.rs`), with the SELECTs of these views. Rows without a
--   number and without a fold are rolled up by the views within their INSERT, as before.
-- * Each block of a roll-up has a row more for each month, the mark: no project, the server's id as the app, and the number of the fold in
--   `source`, of which a merge keeps the largest. So one look at the marks tells which folds of a server a month has. In `outcomes` the
--   number is that of the range, and the server's id stands as the signal.
--   Without a reason the mark stands for all ranges up to the number; with one, for that range alone.
-- * `source = 1`: rows that were added to the hour alone, since the day had them already.

ALTER TABLE spans ADD COLUMN IF NOT EXISTS range_id UInt128 CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS range_id range_id TYPE minmax;

ALTER TABLE frame_windows ADD COLUMN IF NOT EXISTS range_id UInt128 CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS range_id range_id TYPE minmax;

ALTER TABLE janks ADD COLUMN IF NOT EXISTS range_id UInt128 CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS range_id range_id TYPE minmax;

ALTER TABLE page_loads ADD COLUMN IF NOT EXISTS range_id UInt128 CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS range_id range_id TYPE minmax;

ALTER TABLE metrics ADD COLUMN IF NOT EXISTS range_id UInt128 CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS range_id range_id TYPE minmax;

ALTER TABLE app_starts ADD COLUMN IF NOT EXISTS range_id UInt128 CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS range_id range_id TYPE minmax;

ALTER TABLE recompositions ADD COLUMN IF NOT EXISTS range_id UInt128 CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS range_id range_id TYPE minmax;

ALTER TABLE sdk_health ADD COLUMN IF NOT EXISTS range_id UInt128 CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS range_id range_id TYPE minmax;

ALTER TABLE traffic ADD COLUMN IF NOT EXISTS range_id UInt128 CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS range_id range_id TYPE minmax;

ALTER TABLE batches ADD COLUMN IF NOT EXISTS range_id UInt128 CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS range_id range_id TYPE minmax;

ALTER TABLE spans_hourly ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE spans_daily ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE frame_windows_hourly ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE frame_windows_daily ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE janks_hourly ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE janks_daily ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE page_loads_hourly ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE page_loads_daily ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE metrics_hourly ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE metrics_daily ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE app_starts_hourly ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE app_starts_daily ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE recompositions_hourly ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE recompositions_daily ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE sdk_health_hourly ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE sdk_health_daily ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE sdk_drops_hourly ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE sdk_drops_daily ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE usage_hourly ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE usage_daily ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE traffic_daily ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE outcomes ADD COLUMN IF NOT EXISTS source SimpleAggregateFunction(max, UInt128) CODEC(ZSTD(1));

ALTER TABLE spans_to_hourly MODIFY QUERY
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
WHERE range_id = 0 AND fold = 0
GROUP BY project, name, kind, hour, app_id, app_version, os_name, device_class;

ALTER TABLE frame_windows_to_hourly MODIFY QUERY
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
WHERE range_id = 0 AND fold = 0
GROUP BY project, page, refresh_hz, hour, app_id, app_version, os_name, device_class;

ALTER TABLE janks_to_hourly MODIFY QUERY
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
WHERE range_id = 0 AND fold = 0
GROUP BY project, kind, page, hour, app_id, app_version, os_name, device_class;

ALTER TABLE janks_to_daily MODIFY QUERY
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
WHERE range_id = 0 AND fold = 0
GROUP BY project, stack_hash, kind, page, foreground, day, app_id, app_version, os_name, device_class;

ALTER TABLE page_loads_to_hourly MODIFY QUERY
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
WHERE range_id = 0 AND fold = 0
GROUP BY project, page, launch, outcome, network, hour, app_id, app_version, os_name, device_class;

ALTER TABLE metrics_to_hourly MODIFY QUERY
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
WHERE range_id = 0 AND fold = 0
GROUP BY project, name, page, uptime, hour, app_id, app_version, os_name, device_class;

ALTER TABLE app_starts_to_hourly MODIFY QUERY
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
WHERE range_id = 0 AND fold = 0
GROUP BY project, kind, hour, app_id, app_version, os_name, device_class;

ALTER TABLE recompositions_to_hourly MODIFY QUERY
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
WHERE range_id = 0 AND fold = 0
GROUP BY project, function, page, cause, hour, app_id, app_version, os_name, device_class;

ALTER TABLE sdk_health_to_hourly MODIFY QUERY
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
WHERE range_id = 0 AND fold = 0
GROUP BY project, hour, app_id, app_version, os_name, device_class;

ALTER TABLE sdk_drops_to_hourly MODIFY QUERY
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
WHERE range_id = 0 AND fold = 0
GROUP BY project, signal, reason, hour, app_id, app_version, os_name, device_class;

ALTER TABLE traffic_to_daily MODIFY QUERY
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
WHERE range_id = 0 AND fold = 0
GROUP BY project, source, network, day, app_id, app_version, os_name, device_class;

ALTER TABLE usage_to_hourly MODIFY QUERY
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
WHERE range_id = 0
GROUP BY project, sdk_name, sdk_version, hour, app_id, app_version, os_name, device_class;

ALTER TABLE spans_to_daily MODIFY QUERY
SELECT
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

ALTER TABLE frame_windows_to_daily MODIFY QUERY
SELECT
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

ALTER TABLE page_loads_to_daily MODIFY QUERY
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

ALTER TABLE metrics_to_daily MODIFY QUERY
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
    count,
    samples,
    sum,
    min,
    max,
    late,
    values,
    installs,
    source
FROM metrics_hourly
WHERE source != 1;

ALTER TABLE app_starts_to_daily MODIFY QUERY
SELECT
    project,
    kind,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    count,
    sum_ms,
    late,
    durations_ms,
    installs,
    source
FROM app_starts_hourly
WHERE source != 1;

ALTER TABLE recompositions_to_daily MODIFY QUERY
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
    count,
    samples,
    window_ms,
    late,
    installs,
    source
FROM recompositions_hourly
WHERE source != 1;

ALTER TABLE sdk_health_to_daily MODIFY QUERY
SELECT
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

ALTER TABLE sdk_drops_to_daily MODIFY QUERY
SELECT
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

ALTER TABLE usage_to_daily MODIFY QUERY
SELECT
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
