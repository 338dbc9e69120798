//! The definitions of the roll-ups: SELECTs over raw rows.
//!
//! Counts and sums are weighted by the inverse of the sample rate. `migrations/clickhouse/0006_rollups.sql` explains the columns.

use self::Expression::{Column, Histogram, HistogramIf, Is};
use crate::store::buckets::bucket;

/// A roll-up of a raw table.
pub(crate) struct Definition {
    /// Names the roll-up in tokens and in the ledger.
    pub(crate) name: &'static str,
    pub(crate) signal: &'static str,
    /// An expression over raw rows and a column of the roll-up, which have the same sum.
    pub(crate) counts: (&'static str, &'static str),
    /// The raw table.
    pub(crate) table: &'static str,
    /// The join of the raw table.
    join: &'static str,
    pub(crate) target: &'static str,
    /// The daily roll-up, which a view fills from the hourly one.
    pub(crate) by_day: Option<&'static str>,
    /// The keys of a row in addition to [`COHORT`].
    keys: &'static [Expression],
    values: &'static [Expression],
}

/// A column of a roll-up.
enum Expression {
    /// A column of the raw table with the same name.
    Column(&'static str),
    /// SQL, and a name.
    Is(&'static str, &'static str),
    /// The distribution of values: weights by [`bucket`].
    Histogram {
        value: &'static str,
        weight: &'static str,
        name: &'static str,
    },
    /// The distribution in the rows that meet a condition.
    HistogramIf {
        value: &'static str,
        weight: &'static str,
        condition: &'static str,
        name: &'static str,
    },
}

/// The keys that all roll-ups have.
const COHORT: &str = "app_id, app_version, os_name, device_class";

impl Definition {
    pub(super) fn has_key(&self, name: &str) -> bool {
        self.keys.iter().any(|key| key.name() == name)
    }

    /// The SELECT before and after the condition on raw rows.
    pub(super) fn select(&self, database: &str) -> (String, String) {
        let columns: Vec<String> = self.keys.iter().map(Expression::sql).collect();
        let values: Vec<String> = self.values.iter().map(Expression::sql).collect();
        let keys: Vec<&str> = self.keys.iter().map(Expression::name).collect();
        let head = format!(
            "SELECT project, {}{COHORT}, {} FROM `{database}`.`{}` AS s {} WHERE ",
            columns
                .iter()
                .map(|column| format!("{column}, "))
                .collect::<String>(),
            values.join(", "),
            self.table,
            self.join,
        );
        let tail = format!(
            " GROUP BY project, {}{COHORT}",
            keys.iter()
                .map(|key| format!("{key}, "))
                .collect::<String>()
        );
        (head, tail)
    }
}

impl Expression {
    const fn name(&self) -> &'static str {
        match self {
            Column(name) | Is(_, name) | Histogram { name, .. } | HistogramIf { name, .. } => name,
        }
    }

    fn sql(&self) -> String {
        match self {
            Column(name) => format!("`{name}`"),
            Is(sql, name) => format!("{sql} AS `{name}`"),
            Histogram {
                value,
                weight,
                name,
            } => histogram(&format!("groupArray({value}), groupArray({weight})"), name),
            HistogramIf {
                value,
                weight,
                condition,
                name,
            } => histogram(
                &format!("groupArrayIf({value}, {condition}), groupArrayIf({weight}, {condition})"),
                name,
            ),
        }
    }
}

/// `arrays`: the values, and their weights.
fn histogram(arrays: &str, name: &str) -> String {
    format!(
        "arrayReduce('sumMap', arrayMap((value, weight) -> map({}, weight), {arrays})) AS `{name}`",
        bucket("value")
    )
}

const VALUES_OF_JANKS: &[Expression] = &[
    Is("sum(1 / sample_rate)", "count"),
    Is("toFloat64(count())", "samples"),
    Is("sum(duration_ms / sample_rate)", "sum_ms"),
    Is(
        "sumIf(1 / sample_rate, received_at > (start + toIntervalHour(1)))",
        "late",
    ),
    Histogram {
        value: "duration_ms",
        weight: "1 / sample_rate",
        name: "durations_ms",
    },
    Is("uniqCombined64State(12)(install_id)", "installs"),
    Is("uniqCombined64State(12)(session_id)", "sessions"),
];

pub(super) static DEFINITIONS: [Definition; 12] = [
    Definition {
        name: "app_starts_to_hourly",
        signal: "app_starts",
        counts: ("1", "samples"),
        table: "app_starts",
        join: "",
        target: "app_starts_hourly",
        by_day: Some("app_starts_daily"),
        keys: &[Column("kind"), Is("toStartOfHour(start)", "hour")],
        values: &[
            Is("sum(1 / sample_rate)", "count"),
            Is("toFloat64(count())", "samples"),
            Is("sum(duration_ms / sample_rate)", "sum_ms"),
            Is(
                "sumIf(1 / sample_rate, received_at > (start + toIntervalHour(1)))",
                "late",
            ),
            Histogram {
                value: "duration_ms",
                weight: "1 / sample_rate",
                name: "durations_ms",
            },
            Is("uniqCombined64State(12)(install_id)", "installs"),
        ],
    },
    Definition {
        name: "frame_windows_to_hourly",
        signal: "frame_windows",
        counts: ("1", "samples"),
        table: "frame_windows",
        join: "",
        target: "frame_windows_hourly",
        by_day: Some("frame_windows_daily"),
        keys: &[
            Column("page"),
            Column("refresh_hz"),
            Is("toStartOfHour(start)", "hour"),
        ],
        values: &[
            Is("sum(1 / sample_rate)", "count"),
            Is("toFloat64(count())", "samples"),
            Is("sum(s.duration_ms / sample_rate)", "duration_ms"),
            Is("sum(s.frames_drawn / sample_rate)", "frames_drawn"),
            Is("sum(s.frames_dropped / sample_rate)", "frames_dropped"),
            Is("sum(s.slow_frames / sample_rate)", "slow_frames"),
            Is("sum(s.frozen_frames / sample_rate)", "frozen_frames"),
            Is("sum(s.jank_ms / sample_rate)", "jank_ms"),
            Is("sum(s.delay_ms / sample_rate)", "delay_ms"),
            Is("max(s.longest_drop)", "longest_drop"),
            Is(
                "sumIf(1 / sample_rate, received_at > (start + toIntervalHour(1)))",
                "late",
            ),
            Is(
                "sumMap(mapApply((ms, frames) -> (ms, frames / sample_rate), frame_time_hist))",
                "frame_times_ms",
            ),
            Is("uniqCombined64State(12)(install_id)", "installs"),
            Is("uniqCombined64State(12)(session_id)", "sessions"),
        ],
    },
    Definition {
        name: "janks_to_daily",
        signal: "janks",
        counts: ("1", "samples"),
        table: "janks",
        join: "",
        target: "janks_daily",
        by_day: None,
        keys: &[
            Column("stack_hash"),
            Column("kind"),
            Column("page"),
            Column("foreground"),
            Is("toDate(start)", "day"),
        ],
        values: VALUES_OF_JANKS,
    },
    Definition {
        name: "janks_to_hourly",
        signal: "janks",
        counts: ("1", "samples"),
        table: "janks",
        join: "",
        target: "janks_hourly",
        by_day: None,
        keys: &[
            Column("kind"),
            Column("page"),
            Is("toStartOfHour(start)", "hour"),
        ],
        values: VALUES_OF_JANKS,
    },
    Definition {
        name: "metrics_to_hourly",
        signal: "metrics",
        counts: ("1", "samples"),
        table: "metrics",
        join: "",
        target: "metrics_hourly",
        by_day: Some("metrics_daily"),
        keys: &[
            Column("name"),
            Column("page"),
            Is(
                "multiIf(uptime_ms < 60000, 'under_1m', uptime_ms < 300000, '1m_5m', uptime_ms < 900000, '5m_15m', uptime_ms < 3600000, '15m_1h', 'over_1h')",
                "uptime",
            ),
            Is("toStartOfHour(time)", "hour"),
        ],
        values: &[
            Is("sum(greatest(s.count, 1) / sample_rate)", "count"),
            Is("toFloat64(count())", "samples"),
            Is("sum((s.value * greatest(s.count, 1)) / sample_rate)", "sum"),
            Is("min(if(s.count > 1, s.min, s.value))", "min"),
            Is("max(if(s.count > 1, s.max, s.value))", "max"),
            Is(
                "sumIf(1 / sample_rate, received_at > (time + toIntervalHour(1)))",
                "late",
            ),
            Histogram {
                value: "s.value",
                weight: "greatest(s.count, 1) / sample_rate",
                name: "values",
            },
            Is("uniqCombined64State(12)(install_id)", "installs"),
        ],
    },
    Definition {
        name: "page_loads_to_hourly",
        signal: "page_loads",
        counts: ("1", "samples"),
        table: "page_loads",
        join: "",
        target: "page_loads_hourly",
        by_day: Some("page_loads_daily"),
        keys: &[
            Column("page"),
            Column("launch"),
            Column("outcome"),
            Column("network"),
            Is("toStartOfHour(start)", "hour"),
        ],
        values: &[
            Is("sum(1 / sample_rate)", "count"),
            Is("toFloat64(count())", "samples"),
            Is("sum(total_ms / sample_rate)", "sum_ms"),
            Is("sumIf(1 / sample_rate, outcome = 'completed')", "completed"),
            Is(
                "sumIf(1 / sample_rate, received_at > (start + toIntervalHour(1)))",
                "late",
            ),
            HistogramIf {
                value: "assumeNotNull(s.t1_ms)",
                weight: "1 / sample_rate",
                condition: "isNotNull(s.t1_ms)",
                name: "t1_ms",
            },
            HistogramIf {
                value: "assumeNotNull(s.t2_ms)",
                weight: "1 / sample_rate",
                condition: "isNotNull(s.t2_ms)",
                name: "t2_ms",
            },
            HistogramIf {
                value: "assumeNotNull(s.t3_ms)",
                weight: "1 / sample_rate",
                condition: "isNotNull(s.t3_ms)",
                name: "t3_ms",
            },
            Histogram {
                value: "total_ms",
                weight: "1 / sample_rate",
                name: "totals_ms",
            },
            Is("uniqCombined64State(12)(install_id)", "installs"),
        ],
    },
    Definition {
        name: "recompositions_to_hourly",
        signal: "recompositions",
        counts: ("1", "samples"),
        table: "recompositions",
        join: "",
        target: "recompositions_hourly",
        by_day: Some("recompositions_daily"),
        keys: &[
            Column("function"),
            Column("page"),
            Column("cause"),
            Is("toStartOfHour(start)", "hour"),
        ],
        values: &[
            Is("sum(s.count / sample_rate)", "count"),
            Is("toFloat64(count())", "samples"),
            Is("sum(s.window_ms / sample_rate)", "window_ms"),
            Is(
                "sumIf(1 / sample_rate, received_at > (start + toIntervalHour(1)))",
                "late",
            ),
            Is("uniqCombined64State(12)(install_id)", "installs"),
        ],
    },
    Definition {
        name: "sdk_drops_to_hourly",
        signal: "sdk_drops",
        counts: ("arraySum(`dropped.count`)", "count"),
        table: "sdk_health",
        join: "ARRAY JOIN `dropped.signal` AS signal, `dropped.reason` AS reason, `dropped.count` AS dropped",
        target: "sdk_drops_hourly",
        by_day: Some("sdk_drops_daily"),
        keys: &[
            Column("signal"),
            Column("reason"),
            Is("toStartOfHour(received_at)", "hour"),
        ],
        values: &[
            Is("toFloat64(sum(dropped))", "count"),
            Is("uniqCombined64State(12)(install_id)", "installs"),
        ],
    },
    Definition {
        name: "sdk_health_to_hourly",
        signal: "sdk_health",
        counts: ("1", "count"),
        table: "sdk_health",
        join: "",
        target: "sdk_health_hourly",
        by_day: Some("sdk_health_daily"),
        keys: &[Is("toStartOfHour(received_at)", "hour")],
        values: &[
            Is("toFloat64(count())", "count"),
            Is("toFloat64(sum(s.overhead_us))", "overhead_us"),
            Is("toFloat64(sum(s.upload_bytes))", "upload_bytes"),
            Is("max(s.queue_bytes)", "queue_bytes"),
            Is("uniqCombined64State(12)(install_id)", "installs"),
        ],
    },
    Definition {
        name: "spans_to_hourly",
        signal: "spans",
        counts: ("1", "samples"),
        table: "spans",
        join: "",
        target: "spans_hourly",
        by_day: Some("spans_daily"),
        keys: &[
            Column("name"),
            Column("kind"),
            Is("toStartOfHour(start)", "hour"),
        ],
        values: &[
            Is("sum(1 / sample_rate)", "count"),
            Is("toFloat64(count())", "samples"),
            Is("sum(duration_us / sample_rate)", "sum_us"),
            Is(
                "sumIf(duration_us / sample_rate, on_main_thread)",
                "main_thread_us",
            ),
            Is("sumIf(1 / sample_rate, status = 'error')", "errors"),
            Is(
                "sumIf(1 / sample_rate, received_at > (start + toIntervalHour(1)))",
                "late",
            ),
            Histogram {
                value: "duration_us",
                weight: "1 / sample_rate",
                name: "durations_us",
            },
            Is("uniqCombined64State(12)(install_id)", "installs"),
        ],
    },
    Definition {
        name: "traffic_to_daily",
        signal: "traffic",
        counts: ("requests", "requests"),
        table: "traffic",
        join: "",
        target: "traffic_daily",
        by_day: None,
        keys: &[Column("source"), Column("network"), Column("day")],
        values: &[
            Is("toFloat64(sum(s.tx_bytes))", "tx_bytes"),
            Is("toFloat64(sum(s.rx_bytes))", "rx_bytes"),
            Is("toFloat64(sum(s.requests))", "requests"),
            Is("toFloat64(sum(s.failed_requests))", "failed_requests"),
            Is("uniqCombined64State(12)(install_id)", "installs"),
        ],
    },
    Definition {
        name: "usage_to_hourly",
        signal: "usage",
        counts: ("1", "count"),
        table: "batches",
        join: "",
        target: "usage_hourly",
        by_day: Some("usage_daily"),
        keys: &[
            Column("sdk_name"),
            Column("sdk_version"),
            Is("toStartOfHour(received_at)", "hour"),
        ],
        values: &[
            Is("toFloat64(count())", "count"),
            Is("toFloat64(sum(s.accepted))", "accepted"),
            Is("toFloat64(sum(s.rejected))", "rejected"),
            Is("toFloat64(sum(s.wire_bytes))", "wire_bytes"),
            Is("toFloat64(countIf(abs(skew_us) > 30000000))", "skewed"),
            Is("uniqCombined64State(12)(install_id)", "installs"),
            Is("uniqCombined64State(12)(session_id)", "sessions"),
        ],
    },
];
