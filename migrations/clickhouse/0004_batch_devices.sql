-- What the device of a batch is, so that a change of the configuration can be tried on the installs of the last day.
ALTER TABLE batches
    ADD COLUMN IF NOT EXISTS build               UInt64 AFTER app_version,
    ADD COLUMN IF NOT EXISTS channel             LowCardinality(String) AFTER build,
    ADD COLUMN IF NOT EXISTS os_name             LowCardinality(String) AFTER channel,
    ADD COLUMN IF NOT EXISTS os_version          LowCardinality(String) AFTER os_name,
    ADD COLUMN IF NOT EXISTS device_model        LowCardinality(String) AFTER os_version,
    ADD COLUMN IF NOT EXISTS device_manufacturer LowCardinality(String) AFTER device_model,
    ADD COLUMN IF NOT EXISTS device_class        LowCardinality(String) AFTER device_manufacturer,
    ADD COLUMN IF NOT EXISTS locale              LowCardinality(String) AFTER device_class,
    ADD COLUMN IF NOT EXISTS user_id             String AFTER locale;
