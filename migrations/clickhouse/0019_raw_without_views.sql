-- Raw tables have no views any more: a small INSERT cost twice as much with them as without, although they passed by all its rows. The server
-- rolls rows up itself (`server/src/store/roll_ups.rs`). The views that make the day of the hour stay.
-- Rows that others insert by hand are not rolled up: `unjank rollups rebuild` does that.

DROP VIEW IF EXISTS app_starts_to_hourly;

DROP VIEW IF EXISTS frame_windows_to_hourly;

DROP VIEW IF EXISTS janks_to_daily;

DROP VIEW IF EXISTS janks_to_hourly;

DROP VIEW IF EXISTS metrics_to_hourly;

DROP VIEW IF EXISTS page_loads_to_hourly;

DROP VIEW IF EXISTS recompositions_to_hourly;

DROP VIEW IF EXISTS sdk_drops_to_hourly;

DROP VIEW IF EXISTS sdk_health_to_hourly;

DROP VIEW IF EXISTS spans_to_hourly;

DROP VIEW IF EXISTS traffic_to_daily;

DROP VIEW IF EXISTS usage_to_hourly;
