-- The raw tables: one a signal, one row an event.
--
-- Rows lie by hour, in it as they came, a batch together: neighbours are alike, and a merge copies runs instead of weaving
-- rows, which halves its cost against an order by session. Merges wait for ten parts' worth instead of five, so that a row is
-- written a third less often. Bloom filters find a session or a trace; questions by name are answered by roll-ups.
-- Every table remembers deduplication tokens, so that a range of the ingest log sent again is stored once.
-- A column has the type that `server/src/store/columns.rs` sends: nothing is converted on the way in.

-- The time between two marks in the code.
CREATE TABLE IF NOT EXISTS spans
(
    project             LowCardinality(String),
    app_id              LowCardinality(String),
    install_id          UUID,
    session_id          UUID,
    received_at         DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    app_version         LowCardinality(String),
    build               UInt64,
    channel             LowCardinality(String),
    os_name             LowCardinality(String),
    os_version          LowCardinality(String),
    device_model        LowCardinality(String),
    device_manufacturer LowCardinality(String),
    device_class        LowCardinality(String),
    locale              LowCardinality(String),
    user_id             String,
    config_revision     UInt64,
    refresh_hz          UInt16,
    page                LowCardinality(String),
    network             LowCardinality(String),
    uptime_ms           UInt64 CODEC(T64, ZSTD(1)),
    trace_id            UUID,
    span_id             UInt64,
    parent_span_id      UInt64,
    name                LowCardinality(String),
    kind                LowCardinality(String),
    start               DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    duration_us         UInt64 CODEC(T64, ZSTD(1)),
    thread              LowCardinality(String),
    on_main_thread      Bool,
    status              LowCardinality(String),
    code_class          LowCardinality(String),
    code_function       LowCardinality(String),
    code_file           LowCardinality(String),
    code_line           UInt32,
    attributes          Map(LowCardinality(String), String),
    `events.time`       Array(DateTime64(6, 'UTC')),
    `events.name`       Array(LowCardinality(String)),
    sample_rate         Float64,
    INDEX session session_id TYPE bloom_filter(0.01),
    INDEX trace trace_id TYPE bloom_filter(0.01)
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, start)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    merge_selector_base = 10,
    default_compression_codec = 'ZSTD(1)';

-- Frames over a short period on one page.
CREATE TABLE IF NOT EXISTS frame_windows
(
    project             LowCardinality(String),
    app_id              LowCardinality(String),
    install_id          UUID,
    session_id          UUID,
    received_at         DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    app_version         LowCardinality(String),
    build               UInt64,
    channel             LowCardinality(String),
    os_name             LowCardinality(String),
    os_version          LowCardinality(String),
    device_model        LowCardinality(String),
    device_manufacturer LowCardinality(String),
    device_class        LowCardinality(String),
    locale              LowCardinality(String),
    user_id             String,
    config_revision     UInt64,
    refresh_hz          UInt16,
    page                LowCardinality(String),
    network             LowCardinality(String),
    uptime_ms           UInt64 CODEC(T64, ZSTD(1)),
    start               DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    duration_ms         UInt32 CODEC(T64, ZSTD(1)),
    frames_drawn        UInt32 CODEC(T64, ZSTD(1)),
    frames_dropped      UInt32 CODEC(T64, ZSTD(1)),
    slow_frames         UInt32 CODEC(T64, ZSTD(1)),
    frozen_frames       UInt32 CODEC(T64, ZSTD(1)),
    longest_drop        UInt32 CODEC(T64, ZSTD(1)),
    jank_ms             UInt32 CODEC(T64, ZSTD(1)),
    delay_ms            UInt32 CODEC(T64, ZSTD(1)),
    frame_time_hist     Map(UInt32, UInt32),
    sample_rate         Float64,
    INDEX session session_id TYPE bloom_filter(0.01)
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, start)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    merge_selector_base = 10,
    default_compression_codec = 'ZSTD(1)';

-- The main loop was blocked. The stack stands in `stacks`, its class in `stack_classes`.
CREATE TABLE IF NOT EXISTS janks
(
    project             LowCardinality(String),
    app_id              LowCardinality(String),
    install_id          UUID,
    session_id          UUID,
    received_at         DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    app_version         LowCardinality(String),
    build               UInt64,
    channel             LowCardinality(String),
    os_name             LowCardinality(String),
    os_version          LowCardinality(String),
    device_model        LowCardinality(String),
    device_manufacturer LowCardinality(String),
    device_class        LowCardinality(String),
    locale              LowCardinality(String),
    user_id             String,
    config_revision     UInt64,
    refresh_hz          UInt16,
    page                LowCardinality(String),
    network             LowCardinality(String),
    uptime_ms           UInt64 CODEC(T64, ZSTD(1)),
    kind                LowCardinality(String),
    start               DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    duration_ms         UInt32 CODEC(T64, ZSTD(1)),
    thread              LowCardinality(String),
    foreground          Bool,
    strategy_threshold_ms UInt32,
    strategy_count      UInt32,
    strategy_period_ms  UInt32,
    stack_hash          UInt64,
    `samples.offset_ms` Array(UInt32),
    `samples.stack_hash` Array(UInt64),
    `run_log.time`      Array(DateTime64(6, 'UTC')),
    `run_log.message`   Array(String),
    sample_rate         Float64,
    INDEX session session_id TYPE bloom_filter(0.01)
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, start)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    merge_selector_base = 10,
    default_compression_codec = 'ZSTD(1)';

-- Bytes by natural day of the device, source and network. Rows of one day add up.
CREATE TABLE IF NOT EXISTS traffic
(
    project             LowCardinality(String),
    app_id              LowCardinality(String),
    install_id          UUID,
    session_id          UUID,
    received_at         DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    app_version         LowCardinality(String),
    build               UInt64,
    channel             LowCardinality(String),
    os_name             LowCardinality(String),
    os_version          LowCardinality(String),
    device_model        LowCardinality(String),
    device_manufacturer LowCardinality(String),
    device_class        LowCardinality(String),
    locale              LowCardinality(String),
    user_id             String,
    config_revision     UInt64,
    day                 Date,
    source              LowCardinality(String),
    network             LowCardinality(String),
    tx_bytes            UInt64 CODEC(T64, ZSTD(1)),
    rx_bytes            UInt64 CODEC(T64, ZSTD(1)),
    requests            UInt64 CODEC(T64, ZSTD(1)),
    failed_requests     UInt64 CODEC(T64, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toMonday(day)
ORDER BY (project, day, app_id, install_id, source, network)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    merge_selector_base = 10,
    default_compression_codec = 'ZSTD(1)';

-- How long a page took, in three parts that overlap; a missing part is NULL.
CREATE TABLE IF NOT EXISTS page_loads
(
    project             LowCardinality(String),
    app_id              LowCardinality(String),
    install_id          UUID,
    session_id          UUID,
    received_at         DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    app_version         LowCardinality(String),
    build               UInt64,
    channel             LowCardinality(String),
    os_name             LowCardinality(String),
    os_version          LowCardinality(String),
    device_model        LowCardinality(String),
    device_manufacturer LowCardinality(String),
    device_class        LowCardinality(String),
    locale              LowCardinality(String),
    user_id             String,
    config_revision     UInt64,
    refresh_hz          UInt16,
    page                LowCardinality(String),
    network             LowCardinality(String),
    uptime_ms           UInt64 CODEC(T64, ZSTD(1)),
    start               DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    t1_ms               Nullable(UInt32),
    t2_ms               Nullable(UInt32),
    t3_ms               Nullable(UInt32),
    total_ms            UInt32 CODEC(T64, ZSTD(1)),
    launch              LowCardinality(String),
    outcome             LowCardinality(String),
    `requests.path`     Array(LowCardinality(String)),
    `requests.offset_ms` Array(Int32),
    `requests.duration_ms` Array(UInt32),
    `requests.status`   Array(UInt16),
    sample_rate         Float64,
    INDEX session session_id TYPE bloom_filter(0.01)
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, start)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    merge_selector_base = 10,
    default_compression_codec = 'ZSTD(1)';

-- Samples from monitors.
CREATE TABLE IF NOT EXISTS metrics
(
    project             LowCardinality(String),
    app_id              LowCardinality(String),
    install_id          UUID,
    session_id          UUID,
    received_at         DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    app_version         LowCardinality(String),
    build               UInt64,
    channel             LowCardinality(String),
    os_name             LowCardinality(String),
    os_version          LowCardinality(String),
    device_model        LowCardinality(String),
    device_manufacturer LowCardinality(String),
    device_class        LowCardinality(String),
    locale              LowCardinality(String),
    user_id             String,
    config_revision     UInt64,
    refresh_hz          UInt16,
    page                LowCardinality(String),
    network             LowCardinality(String),
    uptime_ms           UInt64 CODEC(T64, ZSTD(1)),
    name                LowCardinality(String),
    time                DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    value               Float64 CODEC(Gorilla, ZSTD(1)),
    min                 Float64 CODEC(Gorilla, ZSTD(1)),
    max                 Float64 CODEC(Gorilla, ZSTD(1)),
    count               UInt64 CODEC(T64, ZSTD(1)),
    attributes          Map(LowCardinality(String), String),
    sample_rate         Float64,
    INDEX session session_id TYPE bloom_filter(0.01)
)
ENGINE = MergeTree
PARTITION BY toMonday(time)
ORDER BY (project, toStartOfHour(time), received_at, session_id, name, time)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    merge_selector_base = 10,
    default_compression_codec = 'ZSTD(1)';

-- How long the app took to start.
CREATE TABLE IF NOT EXISTS app_starts
(
    project             LowCardinality(String),
    app_id              LowCardinality(String),
    install_id          UUID,
    session_id          UUID,
    received_at         DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    app_version         LowCardinality(String),
    build               UInt64,
    channel             LowCardinality(String),
    os_name             LowCardinality(String),
    os_version          LowCardinality(String),
    device_model        LowCardinality(String),
    device_manufacturer LowCardinality(String),
    device_class        LowCardinality(String),
    locale              LowCardinality(String),
    user_id             String,
    config_revision     UInt64,
    refresh_hz          UInt16,
    page                LowCardinality(String),
    network             LowCardinality(String),
    kind                LowCardinality(String),
    start               DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    duration_ms         UInt32 CODEC(T64, ZSTD(1)),
    `phases.name`       Array(LowCardinality(String)),
    `phases.duration_ms` Array(UInt32),
    INDEX session session_id TYPE bloom_filter(0.01)
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, start)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    merge_selector_base = 10,
    default_compression_codec = 'ZSTD(1)';

-- UI functions redrawn.
CREATE TABLE IF NOT EXISTS recompositions
(
    project             LowCardinality(String),
    app_id              LowCardinality(String),
    install_id          UUID,
    session_id          UUID,
    received_at         DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    app_version         LowCardinality(String),
    build               UInt64,
    channel             LowCardinality(String),
    os_name             LowCardinality(String),
    os_version          LowCardinality(String),
    device_model        LowCardinality(String),
    device_manufacturer LowCardinality(String),
    device_class        LowCardinality(String),
    locale              LowCardinality(String),
    user_id             String,
    config_revision     UInt64,
    refresh_hz          UInt16,
    page                LowCardinality(String),
    network             LowCardinality(String),
    uptime_ms           UInt64 CODEC(T64, ZSTD(1)),
    function            LowCardinality(String),
    start               DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    window_ms           UInt32 CODEC(T64, ZSTD(1)),
    count               UInt32 CODEC(T64, ZSTD(1)),
    cause               LowCardinality(String),
    sample_rate         Float64,
    INDEX session session_id TYPE bloom_filter(0.01)
)
ENGINE = MergeTree
PARTITION BY toMonday(start)
ORDER BY (project, toStartOfHour(start), received_at, session_id, function, start)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    merge_selector_base = 10,
    default_compression_codec = 'ZSTD(1)';

-- What the SDK itself cost and lost.
CREATE TABLE IF NOT EXISTS sdk_health
(
    project             LowCardinality(String),
    app_id              LowCardinality(String),
    install_id          UUID,
    session_id          UUID,
    received_at         DateTime64(6, 'UTC') CODEC(Delta, ZSTD(1)),
    app_version         LowCardinality(String),
    build               UInt64,
    channel             LowCardinality(String),
    os_name             LowCardinality(String),
    os_version          LowCardinality(String),
    device_model        LowCardinality(String),
    device_manufacturer LowCardinality(String),
    device_class        LowCardinality(String),
    locale              LowCardinality(String),
    user_id             String,
    config_revision     UInt64,
    sdk_name            LowCardinality(String),
    sdk_version         LowCardinality(String),
    `dropped.signal`    Array(LowCardinality(String)),
    `dropped.reason`    Array(LowCardinality(String)),
    `dropped.count`     Array(UInt64),
    overhead_us         UInt64 CODEC(T64, ZSTD(1)),
    queue_bytes         UInt64 CODEC(T64, ZSTD(1)),
    upload_bytes        UInt64 CODEC(T64, ZSTD(1))
)
ENGINE = MergeTree
PARTITION BY toMonday(received_at)
ORDER BY (project, received_at, install_id)
SETTINGS
    non_replicated_deduplication_window = 10000,
    fsync_after_insert = 1,
    fsync_part_directory = 1,
    merge_selector_base = 10,
    default_compression_codec = 'ZSTD(1)';
