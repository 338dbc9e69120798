-- day, source, network, tx_bytes, rx_bytes, requests, failed_requests
    toDate(began) AS day, ['api', 'cdn'][1 + of_event % 2] AS source, if(unit(of_session, 'network') < 0.6, 'wifi', 'cellular_4g') AS network,
    toUInt64(around(20e3, 0.6, of_event, 'sent') * around(1., 0.4, of_install, 'sent')) AS tx_bytes, toUInt64(tx_bytes * around(15., 0.5, of_event, 'got')) AS rx_bytes,
    10 AS requests, toUInt64(unit(of_event, 'fails') < 0.02) AS failed_requests
