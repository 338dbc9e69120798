-- A day of traffic.
INSERT INTO traffic (project, app_id, install_id, session_id, received_at, app_version, build, os_name, os_version, device_model,
    device_class, locale, day, source, network, tx_bytes, rx_bytes, requests, failed_requests)
WITH
    cityHash64({day:Int64}, intDiv(number, 4)) AS of_session,
    of_session % 200000 AS install,
    cityHash64('install', install) AS of_install,
    cityHash64({day:Int64}, 'traffic', number) AS of_row,
    intDiv(of_install, 7) % 3 AS class_number,
    if(of_install % 10 < {adopted:Int64}, 4 + {day:Int64} % 2, intDiv(of_install, 10) % 4) AS version_number
SELECT
    'default', 'com.example.shop',
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_install), 32, '1')))),
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_session), 32, '2')))),
    toDateTime64(toDate({day:Int64}), 6, 'UTC') + toIntervalMillisecond(of_session % 86000000),
    concat('4.', toString(7 + version_number), '.0'), 40700 + version_number * 100,
    if(of_install % 4 = 0, 'ios', 'android'), toString(12 + intDiv(of_install, 3) % 5), concat('Model ', toString(of_install % 300)),
    ['low', 'mid', 'high'][class_number + 1], ['de-DE', 'en-US', 'fr-FR', 'pl-PL', 'tr-TR', 'pt-BR'][intDiv(of_install, 11) % 6 + 1],
    toDate({day:Int64}), ['api', 'cdn', 'web'][number % 3 + 1], ['wifi', 'cellular_4g'][intDiv(number, 3) % 2 + 1],
    1000 + of_row % 100000, 10000 + of_row % 10000000, 1 + of_row % 50, of_row % 10 = 0
FROM numbers({first:UInt64}, {rows:UInt64})
