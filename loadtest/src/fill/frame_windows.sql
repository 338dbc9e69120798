-- A day of frame windows.
INSERT INTO frame_windows (project, app_id, install_id, session_id, received_at, app_version, build, os_name, os_version, device_model,
    device_class, locale, refresh_hz, page, network, uptime_ms, start, duration_ms, frames_drawn, frames_dropped, slow_frames,
    frozen_frames, longest_drop, jank_ms, delay_ms, frame_time_hist, sample_rate)
WITH
    intDiv(number, 30) AS session,
    cityHash64({day:Int64}, session) AS of_session,
    of_session % 200000 AS install,
    cityHash64('install', install) AS of_install,
    cityHash64({day:Int64}, 'frames', number) AS of_window,
    intDiv(of_install, 7) % 3 AS class_number,
    if(of_install % 10 < {adopted:Int64}, 4 + {day:Int64} % 2, intDiv(of_install, 10) % 4) AS version_number,
    [60, 90, 120][class_number + 1] AS hz,
    toUInt32(of_window % 12 * (3 - class_number)) AS dropped,
    toDateTime64(toDate({day:Int64}), 6, 'UTC') + toIntervalMillisecond(of_session % 86000000) + toIntervalSecond(number % 30 * 10) AS at
SELECT
    'default', 'com.example.shop',
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_install), 32, '1')))),
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_session), 32, '2')))),
    at + toIntervalSecond(of_session % 60),
    concat('4.', toString(7 + version_number), '.0'), 40700 + version_number * 100,
    if(of_install % 4 = 0, 'ios', 'android'), toString(12 + intDiv(of_install, 3) % 5), concat('Model ', toString(of_install % 300)),
    ['low', 'mid', 'high'][class_number + 1], ['de-DE', 'en-US', 'fr-FR', 'pl-PL', 'tr-TR', 'pt-BR'][intDiv(of_install, 11) % 6 + 1],
    hz, concat('Page', toString(intDiv(of_window, 13) % 20), 'Activity'), ['wifi', 'cellular_4g', 'cellular_5g', 'none'][intDiv(of_session, 17) % 4 + 1],
    number % 30 * 10000, at, 10000, toUInt32(hz * 9), dropped, dropped * 2, of_window % 400 = 0, dropped, dropped * 40, dropped * 25,
    map(toUInt32(8), toUInt32(hz * 8), toUInt32(16), toUInt32(hz - dropped), toUInt32(32), dropped, toUInt32(64), toUInt32(dropped / 4)), 1
FROM numbers({first:UInt64}, {rows:UInt64})
