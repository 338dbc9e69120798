-- Distributions have buckets for values below zero (`server/src/store/buckets.rs`): -4001 - b holds the values whose negation is in b.
-- Only metrics have such values among the roll-ups.

CREATE OR REPLACE VIEW dash_metric_values AS
SELECT
    s.hour AS hour,
    s.project AS project,
    s.name AS name,
    s.page AS page,
    s.uptime AS uptime,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    multiIf(bucket = -2000, 0., bucket > -2000, 2 * pow(1.02, bucket) / 2.02, -2 * pow(1.02, -4001 - bucket) / 2.02) AS value,
    weight
FROM metrics_hourly AS s
ARRAY JOIN mapKeys(s.values) AS bucket, mapValues(s.values) AS weight
COMMENT 'How the values of metrics are distributed, by name and hour. value: the middle of a bucket, in the unit of the metric; weight: samples in it.';
