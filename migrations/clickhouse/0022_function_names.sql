-- Names of obfuscated functions, for spans that are named after them.
--
-- Spans have the key of their function as name and as `code_function`: `class.function@` and 12 digits that stand for the function and
-- its mapping. Queries replace keys by the names in this table. Of several rows, the latest counts.
CREATE TABLE IF NOT EXISTS function_names
(
    project             LowCardinality(String),
    -- The key.
    name                String,
    -- The stack that has only this function, in `stacks` and `stacks_symbolicated`.
    stack_hash          UInt64,
    symbolicated_at     DateTime64(6, 'UTC'),
    -- Empty while no mapping has the function.
    class               String,
    function            String,
    file                String
)
ENGINE = ReplacingMergeTree(symbolicated_at)
ORDER BY (project, name)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    default_compression_codec = 'ZSTD(1)';

-- The views for outside tools have the names beside the keys: by key, a query reads only the rows of one span.
CREATE VIEW IF NOT EXISTS function_names_sorted AS
SELECT arraySort(groupArray((key, readable))) AS names FROM (
    SELECT concat(project, '/', name) AS key, concat(class, '.', function) AS readable
    FROM function_names FINAL WHERE function != '' ORDER BY symbolicated_at DESC LIMIT 100000);

CREATE OR REPLACE VIEW dash_spans AS
SELECT
    s.hour AS hour,
    s.project AS project,
    s.name AS name,
    if(position(s.name, '@') = 0, toString(s.name), transform(concat(s.project, '/', s.name), (SELECT names FROM function_names_sorted).1, (SELECT names FROM function_names_sorted).2, toString(s.name))) AS readable_name,
    s.kind AS kind,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    toFloat64(s.count) AS count,
    toFloat64(s.sum_us) AS sum_us,
    toFloat64(s.main_thread_us) AS main_thread_us,
    toFloat64(s.errors) AS errors
FROM spans_hourly AS s
WHERE s.project != ''
COMMENT 'Spans by name and hour. name: as stored; readable_name: the same, or the function if the name is obfuscated; count: spans; sum_us: their duration in microseconds; main_thread_us: the part of it on the main thread; errors: spans that failed.';

CREATE OR REPLACE VIEW dash_span_durations AS
SELECT
    s.hour AS hour,
    s.project AS project,
    s.name AS name,
    if(position(s.name, '@') = 0, toString(s.name), transform(concat(s.project, '/', s.name), (SELECT names FROM function_names_sorted).1, (SELECT names FROM function_names_sorted).2, toString(s.name))) AS readable_name,
    s.kind AS kind,
    s.app_id AS app_id,
    s.app_version AS app_version,
    s.os_name AS os_name,
    s.device_class AS device_class,
    if(bucket = -2000, 0., 2 * pow(1.02, bucket) / 2.02) AS duration_us,
    weight
FROM spans_hourly AS s
ARRAY JOIN mapKeys(s.durations_us) AS bucket, mapValues(s.durations_us) AS weight
COMMENT 'How long spans took, by name and hour. name: as stored; readable_name: the same, or the function if the name is obfuscated; duration_us: the middle of a bucket, in microseconds; weight: spans in it.';
