-- page, start, refresh_hz, duration_ms, frames_dropped, frames_drawn, slow_frames, frozen_frames, longest_drop, jank_ms, delay_ms, frame_time_hist, sample_rate
    concat('Page', toString(floor(4 * unit(of_event, 'page')))) AS page, at AS start,
    60 AS refresh_hz, 10000 AS duration_ms, toUInt32(around(6., 0.9, of_event, 'drops') * pow(pace, 1.5)) AS frames_dropped,
    toUInt32(590 - least(frames_dropped, 300)) AS frames_drawn, toUInt32(frames_dropped * 1.5) AS slow_frames,
    toUInt32(unit(of_event, 'frozen') < 0.01 * pace) AS frozen_frames, frames_dropped AS longest_drop,
    toUInt32(frames_dropped * 16) AS jank_ms, toUInt32(frames_dropped * 12) AS delay_ms,
    map(toUInt32(8), frames_drawn, toUInt32(32), frames_dropped) AS frame_time_hist, 1. AS sample_rate
