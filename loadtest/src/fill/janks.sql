-- A day of janks with 2,000 stacks, a few of which account for most janks. Each stack occurs on one page, one in ten on two pages.
INSERT INTO janks (project, app_id, install_id, session_id, received_at, app_version, build, os_name, os_version, device_model,
    device_class, locale, refresh_hz, page, network, uptime_ms, kind, start, duration_ms, thread, foreground, strategy_threshold_ms,
    strategy_count, stack_hash, sample_rate)
WITH
    cityHash64({day:Int64}, intDiv(number, 2)) AS of_session,
    of_session % 200000 AS install,
    cityHash64('install', install) AS of_install,
    cityHash64({day:Int64}, 'jank', number) AS of_jank,
    intDiv(of_install, 7) % 3 AS class_number,
    if(of_install % 10 < {adopted:Int64}, 4 + {day:Int64} % 2, intDiv(of_install, 10) % 4) AS version_number,
    1 + least(of_jank % 2000, intDiv(of_jank, 2000) % 2000, intDiv(of_jank, 4000000) % 2000) AS stack,
    cityHash64('page', stack) + (stack % 10 = 0 and intDiv(of_jank, 13) % 4 = 0) AS page_number,
    toDateTime64(toDate({day:Int64}), 6, 'UTC') + toIntervalMillisecond(of_session % 86000000) + toIntervalSecond(number % 2 * 30) AS at
SELECT
    'default', 'com.example.shop',
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_install), 32, '1')))),
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_session), 32, '2')))),
    at + toIntervalSecond(of_session % 60),
    concat('4.', toString(7 + version_number), '.0'), 40700 + version_number * 100,
    if(of_install % 4 = 0, 'ios', 'android'), toString(12 + intDiv(of_install, 3) % 5), concat('Model ', toString(of_install % 300)),
    ['low', 'mid', 'high'][class_number + 1], ['de-DE', 'en-US', 'fr-FR', 'pl-PL', 'tr-TR', 'pt-BR'][intDiv(of_install, 11) % 6 + 1],
    60, concat('Page', toString(page_number % 20), 'Activity'), ['wifi', 'cellular_4g', 'cellular_5g', 'none'][intDiv(of_session, 17) % 4 + 1],
    of_jank % 3600000, if(of_jank % 25 = 0, 'anr', 'jank'), at, 300 + of_jank % 25 * 150 + if(of_jank % 25 = 0, 5000, 0), 'main', 1, 300, 5,
    stack, 1
FROM numbers({first:UInt64}, {rows:UInt64})
