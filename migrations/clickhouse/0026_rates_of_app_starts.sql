-- App starts have a sample rate, like most signals, so that their counts are right if not all sessions are sampled. Rows from before this column
-- count once.
ALTER TABLE app_starts ADD COLUMN IF NOT EXISTS sample_rate Float64 DEFAULT 1 AFTER duration_ms;

-- `count` is weighted by the inverse of the rate. `samples` counts rows. In roll-ups from before this column, and in those that an older server
-- writes, each row counts once.
ALTER TABLE app_starts_hourly ADD COLUMN IF NOT EXISTS samples SimpleAggregateFunction(sum, Float64) DEFAULT count AFTER count;

ALTER TABLE app_starts_daily ADD COLUMN IF NOT EXISTS samples SimpleAggregateFunction(sum, Float64) DEFAULT count AFTER count;

ALTER TABLE app_starts_to_daily MODIFY QUERY
SELECT
    project,
    kind,
    toDate(hour) AS day,
    app_id,
    app_version,
    os_name,
    device_class,
    count,
    samples,
    sum_ms,
    late,
    durations_ms,
    installs,
    source
FROM app_starts_hourly
WHERE source != 1;
