-- page, trace_id, span_id, name, start, duration_us, status, sample_rate
    -- Few names are most. Half of them are kept of the common ones, all of the others.
    least(toUInt8(floor(-2.2 * log(unit(of_event, 'name')))), 7) AS name_number,
    concat('Page', toString(of_session % 4)) AS page,
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_event), 32, '3')))) AS trace_id, of_event AS span_id,
    ['checkout', 'open_feed', 'search', 'add_to_cart', 'profile', 'pay', 'settings', 'share'][name_number + 1] AS name, at AS start,
    toUInt64(around(120000. + 40000. * name_number, 0.45, of_event, 'takes') * pace
        * if(name = 'checkout' AND version >= {slower_version} AND began >= toDateTime64({slower_from}, 6, 'UTC') AND unit(of_install, 'slower') < {slower_share}, {slower}, 1.)) AS duration_us,
    if(unit(of_event, 'fails') < 0.01, 'error', 'ok') AS status, if(name_number < 3, 0.5, 1.) AS sample_rate
