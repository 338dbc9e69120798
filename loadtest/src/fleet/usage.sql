INSERT INTO usage_hourly (project, sdk_name, sdk_version, hour, app_id, app_version, os_name, device_class, count, accepted, wire_bytes, installs, sessions)
SELECT project, sdk_name, sdk_version, toStartOfHour(received_at) AS hour, app_id, app_version, os_name, device_class, toFloat64(count()),
    toFloat64(sum(accepted)), toFloat64(sum(wire_bytes)), uniqCombined64State(12)(install_id), uniqCombined64State(12)(session_id)
FROM ({batches})
GROUP BY project, sdk_name, sdk_version, hour, app_id, app_version, os_name, device_class
