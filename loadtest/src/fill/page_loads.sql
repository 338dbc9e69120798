-- A day of page loads.
INSERT INTO page_loads (project, app_id, install_id, session_id, received_at, app_version, build, os_name, os_version, device_model,
    device_class, locale, refresh_hz, page, network, uptime_ms, start, t1_ms, t2_ms, t3_ms, total_ms, launch, outcome,
    `requests.path`, `requests.offset_ms`, `requests.duration_ms`, `requests.status`, sample_rate)
WITH
    cityHash64({day:Int64}, intDiv(number, 8)) AS of_session,
    of_session % 200000 AS install,
    cityHash64('install', install) AS of_install,
    cityHash64({day:Int64}, 'page', number) AS of_page,
    intDiv(of_install, 7) % 3 AS class_number,
    if(of_install % 10 < {adopted:Int64}, 4 + {day:Int64} % 2, intDiv(of_install, 10) % 4) AS version_number,
    toUInt32(100 + of_page % 800) AS t2,
    toDateTime64(toDate({day:Int64}), 6, 'UTC') + toIntervalMillisecond(of_session % 86000000) + toIntervalSecond(number % 8 * 20) AS at
SELECT
    'default', 'com.example.shop',
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_install), 32, '1')))),
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_session), 32, '2')))),
    at + toIntervalSecond(of_session % 60),
    concat('4.', toString(7 + version_number), '.0'), 40700 + version_number * 100,
    if(of_install % 4 = 0, 'ios', 'android'), toString(12 + intDiv(of_install, 3) % 5), concat('Model ', toString(of_install % 300)),
    ['low', 'mid', 'high'][class_number + 1], ['de-DE', 'en-US', 'fr-FR', 'pl-PL', 'tr-TR', 'pt-BR'][intDiv(of_install, 11) % 6 + 1],
    60, concat('Page', toString(intDiv(of_page, 13) % 20), 'Activity'), ['wifi', 'cellular_4g', 'cellular_5g', 'none'][intDiv(of_session, 17) % 4 + 1],
    of_page % 3600000, at, 40 + of_page % 100 * (3 - class_number), t2, 30 + intDiv(of_page, 7) % 300, 60 + t2 + intDiv(of_page, 7) % 300,
    if(of_page % 9 = 0, 'cold', 'warm'), if(of_page % 20 = 0, 'aborted', 'completed'),
    [concat('/api/', toString(of_page % 30))], [20], [t2], [if(of_page % 50 = 0, 500, 200)], 1
FROM numbers({first:UInt64}, {rows:UInt64})
