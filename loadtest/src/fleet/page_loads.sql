-- page, start, t1_ms, t2_ms, t3_ms, total_ms, launch, outcome, sample_rate
    concat('Page', toString(floor(4 * unit(of_event, 'page')))) AS page, at AS start,
    toUInt32(around(90., 0.4, of_event, 't1') * pace) AS t1_ms, toUInt32(around(350., 0.6, of_event, 't2') * sqrt(pace)) AS t2_ms,
    toUInt32(around(140., 0.5, of_event, 't3') * pace) AS t3_ms, t1_ms + t2_ms + t3_ms AS total_ms,
    if(unit(of_event, 'launch') < 0.2, 'cold', 'warm') AS launch, if(unit(of_event, 'out') < 0.05, 'aborted', 'completed') AS outcome, 1. AS sample_rate
