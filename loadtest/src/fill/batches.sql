-- A day of batches, for the usage figures.
INSERT INTO batches (project, app_id, install_id, session_id, received_at, batch_id, sent_at, skew_us, app_version, build, os_name,
    os_version, device_model, device_class, locale, sdk_name, sdk_version, config_revision, accepted, rejected, wire_bytes)
WITH
    intDiv(number, 2) AS session,
    cityHash64({day:Int64}, session) AS of_session,
    of_session % 200000 AS install,
    cityHash64('install', install) AS of_install,
    cityHash64({day:Int64}, 'batch', number) AS of_batch,
    intDiv(of_install, 7) % 3 AS class_number,
    if(of_install % 10 < {adopted:Int64}, 4 + {day:Int64} % 2, intDiv(of_install, 10) % 4) AS version_number,
    toDateTime64(toDate({day:Int64}), 6, 'UTC') + toIntervalMillisecond(of_session % 86000000) + toIntervalSecond(number % 2 * 30) AS at
SELECT
    'default', 'com.example.shop',
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_install), 32, '1')))),
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_session), 32, '2')))),
    at, generateUUIDv7(number), at, of_batch % 2000000, concat('4.', toString(7 + version_number), '.0'), 40700 + version_number * 100,
    if(of_install % 4 = 0, 'ios', 'android'), toString(12 + intDiv(of_install, 3) % 5), concat('Model ', toString(of_install % 300)),
    ['low', 'mid', 'high'][class_number + 1], ['de-DE', 'en-US', 'fr-FR', 'pl-PL', 'tr-TR', 'pt-BR'][intDiv(of_install, 11) % 6 + 1],
    'unjank-rust', '0.1.0', 1, 100, of_batch % 50 = 0, 6000 + of_batch % 4000
FROM numbers({first:UInt64}, {rows:UInt64})
