-- batch_id, sent_at, sdk_name, sdk_version, accepted, wire_bytes
    reinterpretAsUUID(reverse(unhex(leftPad(hex(of_event), 32, '4')))) AS batch_id, at AS sent_at, 'unjank' AS sdk_name, '0.1.0' AS sdk_version, 50 AS accepted, 10000 AS wire_bytes
