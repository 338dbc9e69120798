-- A day of spans: 20,000 of 200,000 installs per day, some hundred spans per session, ten spans per trace, 40 names with a skewed distribution.
INSERT INTO spans (project, app_id, install_id, session_id, received_at, app_version, build, os_name, os_version, device_model,
    device_class, locale, page, network, trace_id, span_id, parent_span_id, name, kind, start, duration_us, thread, on_main_thread,
    status, code_class, code_function, sample_rate)
WITH
    intDiv(number, 160) AS session,
    intDiv(number, 10) AS trace,
    cityHash64({day:Int64}, session) AS of_session,
    of_session % 200000 AS install,
    cityHash64('install', install) AS of_install,
    cityHash64({day:Int64}, number) AS of_span,
    least(of_span % 40, intDiv(of_span, 40) % 40) AS name_number,
    intDiv(of_install, 7) % 3 AS class_number,
    if(of_install % 10 < {adopted:Int64}, 4 + {day:Int64} % 2, intDiv(of_install, 10) % 4) AS version_number,
    toDateTime64(toDate({day:Int64}), 6, 'UTC') + toIntervalMillisecond(of_session % 86000000) + toIntervalMillisecond(number % 160 * 1500) AS at
SELECT
    'default', 'com.example.shop',
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_install), 32, '1')))),
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_session), 32, '2')))),
    at + toIntervalSecond(if(of_session % 50 = 0, 20000, of_session % 60)),
    concat('4.', toString(7 + version_number), '.0'), 40700 + version_number * 100,
    if(of_install % 4 = 0, 'ios', 'android'), toString(12 + intDiv(of_install, 3) % 5), concat('Model ', toString(of_install % 300)),
    ['low', 'mid', 'high'][class_number + 1], ['de-DE', 'en-US', 'fr-FR', 'pl-PL', 'tr-TR', 'pt-BR'][intDiv(of_install, 11) % 6 + 1],
    concat('Page', toString(intDiv(of_session, 13) % 20), 'Activity'), ['wifi', 'cellular_4g', 'cellular_5g', 'none'][intDiv(of_session, 17) % 4 + 1],
    reinterpretAsUUID(reverse(unhex(leftPad(hex(cityHash64({day:Int64}, 'trace', trace)), 32, '3')))),
    of_span, if(number % 10 = 0, 0, cityHash64({day:Int64}, trace * 10)),
    if(number % 10 = 0, ['checkout', 'open_feed', 'add_to_cart', 'search'][of_span % 4 + 1], concat('com.example.shop.Part', toString(name_number), '.run()')),
    if(number % 10 = 0, 'manual', 'method'), at,
    toUInt64(if(number % 10 = 0, 400000, 2000) * exp(name_number / 10 + (2 - class_number) / 3 + (intDiv(of_span, 97) % 1000 / 1000 - 0.5) * 3)),
    if(of_span % 3 = 0, 'main', concat('worker-', toString(of_span % 4))), of_span % 3 = 0,
    if(of_span % 200 = 0, 'error', 'ok'), concat('com.example.shop.Part', toString(name_number)), 'run', if(number % 10 = 0, 1, 0.1)
FROM numbers({first:UInt64}, {rows:UInt64})
