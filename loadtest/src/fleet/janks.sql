-- page, start, kind, duration_ms, thread, foreground, stack_hash, sample_rate
    concat('Page', toString(floor(4 * unit(of_event, 'page')))) AS page, at AS start, 'jank' AS kind,
    toUInt32(around(500., 0.5, of_event, 'blocked') * pace) AS duration_ms, 'main' AS thread, true AS foreground, 1 + of_event % 50 AS stack_hash, 1. AS sample_rate
