-- kind, start, duration_ms
    if(unit(of_event, 'kind') < 0.6, 'cold', 'warm') AS kind, at AS start,
    toUInt32(around(if(kind = 'cold', 900., 250.), 0.3, of_event, 'starts') * pace) AS duration_ms
