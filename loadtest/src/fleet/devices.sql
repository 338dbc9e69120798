-- Who, when and with what, of each event. What is {in braces} is filled in; the columns and the signal's own names stand around it.
WITH
    (of, what) -> (cityHash64(of, what) % 1000003 + 0.5) / 1000003 AS unit,
    (of, what) -> sqrt(-2 * log(unit(of, what))) * cos(2 * pi() * unit(of, concat(what, ' too'))) AS normal,
    (median, spread, of, what) -> median * exp(spread * normal(of, what)) AS around,
    cityHash64({seed}, {part}, '{table}', number) AS of_event,
    -- So the events of a session are as many as chance has it.
    cityHash64({seed}, {part}, of_event % {sessions}) AS of_session,
    fromUnixTimestamp64Micro(toInt64(1e6 * ({begin} + {when})), 'UTC') AS began,
    began + toIntervalMillisecond(toUInt64(180000 * unit(of_event, 'at'))) AS at,
    -- Devices that come on top, all of them weak.
    unit(of_session, 'added') < {added} AND toFloat64(toUnixTimestamp64Micro(began)) / 1e6 >= {added_from} AS is_added,
    -- Some are used much more than others, and come back day after day.
    floor({installs} * pow(unit(of_session, 'install'), 1.6)) AS install,
    cityHash64({seed}, if(is_added, 'added', 'install'), install) AS of_install,
    unit(of_install, 'class') AS by_class,
    if(is_added OR by_class < 0.3, 1, if(by_class < 0.75, 2, 3)) AS class,
    if(class > 1 AND unit(of_install, 'os') < 0.3, 'ios', 'android') AS os_name,
    toUInt8(11 + class + floor(3 * unit(of_install, 'os version'))) AS os_number,
    {version} AS version,
    toHour(began) AS hour_of_day,
    -- What makes everything of an install slower, and of a session, and in the evening, when the network is full.
    [2.0, 1.3, 1.0][class] * (1.3 - 0.02 * os_number) * around(1., 0.3, of_install, 'pace') * around(1., 0.15, of_session, 'pace')
        * (1 + 0.06 * cos((hour_of_day - 19) / 12 * pi())) AS pace
SELECT
    '{project}' AS project, 'com.example.shop' AS app_id,
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_install), 32, '1')))) AS install_id,
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_session), 32, '2')))) AS session_id,
    -- Three in a hundred come hours later.
    at + toIntervalSecond(toUInt64(if(unit(of_session, 'late') < 0.03, 3600 + 60000 * unit(of_session, 'by'), 5 + 55 * unit(of_event, 'by')))) AS received_at,
    concat('4.', toString(9 + version), '.0') AS app_version, os_name, toString(os_number) AS os_version, ['low', 'mid', 'high'][class] AS device_class
