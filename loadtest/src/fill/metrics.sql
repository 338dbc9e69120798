-- A day of monitor samples.
INSERT INTO metrics (project, app_id, install_id, session_id, received_at, app_version, build, os_name, os_version, device_model,
    device_class, locale, refresh_hz, page, network, uptime_ms, name, time, value, count, sample_rate)
WITH
    cityHash64({day:Int64}, intDiv(number, 30)) AS of_session,
    of_session % 200000 AS install,
    cityHash64('install', install) AS of_install,
    cityHash64({day:Int64}, 'metric', number) AS of_metric,
    intDiv(of_install, 7) % 3 AS class_number,
    if(of_install % 10 < {adopted:Int64}, 4 + {day:Int64} % 2, intDiv(of_install, 10) % 4) AS version_number,
    toDateTime64(toDate({day:Int64}), 6, 'UTC') + toIntervalMillisecond(of_session % 86000000) + toIntervalSecond(number % 30 * 30) AS at
SELECT
    'default', 'com.example.shop',
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_install), 32, '1')))),
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_session), 32, '2')))),
    at + toIntervalSecond(of_session % 60),
    concat('4.', toString(7 + version_number), '.0'), 40700 + version_number * 100,
    if(of_install % 4 = 0, 'ios', 'android'), toString(12 + intDiv(of_install, 3) % 5), concat('Model ', toString(of_install % 300)),
    ['low', 'mid', 'high'][class_number + 1], ['de-DE', 'en-US', 'fr-FR', 'pl-PL', 'tr-TR', 'pt-BR'][intDiv(of_install, 11) % 6 + 1],
    60, concat('Page', toString(intDiv(of_metric, 13) % 20), 'Activity'), ['wifi', 'cellular_4g', 'cellular_5g', 'none'][intDiv(of_session, 17) % 4 + 1],
    number % 30 * 30000, ['fps', 'cpu_percent', 'memory_used_bytes'][number % 3 + 1], at,
    [55 + of_metric % 6, of_metric % 100, 1e8 + of_metric % 100000000][number % 3 + 1], 1, 1
FROM numbers({first:UInt64}, {rows:UInt64})
