-- The mode of the app: `production`, `test` or `development`. Empty in rows from before this column, and if the device does not say.
ALTER TABLE spans ADD COLUMN IF NOT EXISTS mode LowCardinality(String) AFTER channel;

ALTER TABLE frame_windows ADD COLUMN IF NOT EXISTS mode LowCardinality(String) AFTER channel;

ALTER TABLE janks ADD COLUMN IF NOT EXISTS mode LowCardinality(String) AFTER channel;

ALTER TABLE traffic ADD COLUMN IF NOT EXISTS mode LowCardinality(String) AFTER channel;

ALTER TABLE page_loads ADD COLUMN IF NOT EXISTS mode LowCardinality(String) AFTER channel;

ALTER TABLE metrics ADD COLUMN IF NOT EXISTS mode LowCardinality(String) AFTER channel;

ALTER TABLE app_starts ADD COLUMN IF NOT EXISTS mode LowCardinality(String) AFTER channel;

ALTER TABLE recompositions ADD COLUMN IF NOT EXISTS mode LowCardinality(String) AFTER channel;

ALTER TABLE sdk_health ADD COLUMN IF NOT EXISTS mode LowCardinality(String) AFTER channel;

ALTER TABLE batches ADD COLUMN IF NOT EXISTS mode LowCardinality(String) AFTER channel;
