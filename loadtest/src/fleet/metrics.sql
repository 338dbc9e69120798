-- name, time, uptime_ms, value, min, max, count, sample_rate
    'memory_used_bytes' AS name, at AS time, toUInt64(7200000 * pow(unit(of_event, 'up'), 3)) AS uptime_ms,
    around(180e6, 0.15, of_event, 'memory') * around(1., 0.2, of_install, 'memory') * [0.8, 1., 1.3][class] AS value, value AS min, value AS max, 1 AS count, 1. AS sample_rate
