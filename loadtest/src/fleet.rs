//! Simulates a realistic fleet: installs that are fast or slow as a whole, device classes and system versions, usage by hour and
//! weekday, versions that roll out while the previous one is still used, sampled events and late uploads. A slow-down and a shift
//! in the mix of devices can be added. Rows are inserted straight into the raw tables, and are the same for the same seed.

use anyhow::{Context, Result};
use twox_hash::XxHash64;

use crate::clickhouse::ClickHouse;
use crate::console;

pub(crate) const HOUR: f64 = 3_600.0;
pub(crate) const DAY: f64 = 24.0 * HOUR;
/// Start of simulated time: Monday, 5 January 2026, in seconds since the epoch.
pub(crate) const MONDAY: f64 = 1_767_571_200.0;

/// A slow-down of a span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlowDown {
    /// Factor applied to the durations.
    pub(crate) factor: f64,
    /// First version that is slower; 1 is the oldest version.
    pub(crate) version: u32,
    /// Share of that version's installs that are affected, from 0 to 1.
    pub(crate) share: f64,
    /// Start of the slow-down, in seconds since the epoch.
    pub(crate) from: f64,
}

/// Additional weak devices.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Added {
    /// Share of all sessions, from 0 to 1.
    pub(crate) share: f64,
    pub(crate) from: f64,
}

/// How versions spread over the installs.
#[derive(Clone, Debug)]
pub(crate) enum Releases {
    /// Release times, in seconds since the epoch. A fifth of the installs may update at once, the others a day later. Strong
    /// devices update sooner.
    Gradual(Vec<f64>),
    /// At time `at` (seconds since the epoch), a share of the installs changes to the second version. Strong devices are
    /// overrepresented, and added devices have the second version too.
    Step { at: f64, share: f64 },
}

#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pub(crate) seed: u64,
    pub(crate) installs: u64,
    pub(crate) releases: Releases,
    pub(crate) slow_down: Option<SlowDown>,
    pub(crate) added: Option<Added>,
}

/// A period and the number of sessions that begin in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    /// Number that distinguishes this period from others.
    pub(crate) part: u64,
    /// Seconds since the epoch.
    pub(crate) begin: f64,
    pub(crate) seconds: f64,
    pub(crate) sessions: u64,
}

/// Table name, average rows per session, and the SQL of the table's own columns.
pub(crate) type Table = (&'static str, f64, &'static str);

pub(crate) const SPANS: Table = ("spans", 2.05, include_str!("fleet/spans.sql"));
pub(crate) const BATCHES: Table = ("batches", 1.0, include_str!("fleet/batches.sql"));
/// Batches are kept for eight days, so their roll-up cannot be rebuilt later.
const USAGE: &str = include_str!("fleet/usage.sql");
/// The other tables that rules watch.
pub(crate) const OTHERS: [Table; 6] = [
    ("page_loads", 2.0, include_str!("fleet/page_loads.sql")),
    (
        "frame_windows",
        2.0,
        include_str!("fleet/frame_windows.sql"),
    ),
    ("janks", 0.25, include_str!("fleet/janks.sql")),
    ("app_starts", 0.7, include_str!("fleet/app_starts.sql")),
    ("metrics", 1.0, include_str!("fleet/metrics.sql")),
    ("traffic", 1.0, include_str!("fleet/traffic.sql")),
];

const DEVICES: &str = include_str!("fleet/devices.sql");
const DEVICE_COLUMNS: &str = "project, app_id, install_id, session_id, received_at, app_version, os_name, os_version, device_class";
/// Relative number of sessions that begin in each hour of a day.
const HOURS: [u32; 24] = [
    20, 12, 8, 6, 6, 10, 22, 40, 48, 46, 44, 46, 54, 52, 48, 48, 52, 60, 70, 80, 86, 80, 60, 36,
];
/// Relative number of sessions on each day of a week, starting with Monday.
const WEEK: [u32; 7] = [80, 78, 78, 80, 86, 100, 98];

impl Fleet {
    /// Inserts the missing rows of the given periods. Returns the project of the fleet, which no other fleet uses.
    pub(crate) async fn fill(
        &self,
        clickhouse: &ClickHouse,
        tables: &[Table],
        stretches: &[Stretch],
    ) -> Result<String> {
        let project = self.project(tables, stretches);
        for (place, stretch) in stretches.iter().enumerate() {
            // A row in `stacks` marks a period as complete.
            let place = place + 1;
            let known = format!(
                "SELECT count() FROM stacks WHERE project = '{project}' AND stack_hash = {place}"
            );
            if clickhouse.value::<u64>(&known).await? > 0 {
                continue;
            }
            if stretches.len() > 1 {
                console::say(&format!("filling {place} of {} ...", stretches.len()));
            }
            for table in tables {
                let sql = self
                    .statement(table, *stretch)
                    .replace("{project}", &project);
                clickhouse
                    .rows(&sql)
                    .await
                    .with_context(|| format!("filling {}", table.0))?;
            }
            if tables.iter().any(|(table, ..)| *table == BATCHES.0) {
                let sql = USAGE.replace("{batches}", &self.rows(&BATCHES, *stretch).1);
                let sql = sql.replace("{project}", &project);
                clickhouse
                    .rows(&sql)
                    .await
                    .context("filling usage_hourly")?;
            }
            let whole = format!(
                "INSERT INTO stacks (project, stack_hash, received_at) SELECT '{project}', {place}, now64(6)"
            );
            clickhouse.rows(&whole).await?;
        }
        Ok(project)
    }

    /// The project name is a hash of everything that the fleet consists of.
    fn project(&self, tables: &[Table], stretches: &[Stretch]) -> String {
        let statements = tables
            .iter()
            .flat_map(|table| stretches.iter().map(|one| self.statement(table, *one)));
        let all: String = statements.collect();
        format!("fleet-{:016x}", XxHash64::oneshot(0, all.as_bytes()))
    }

    fn statement(&self, table: &Table, stretch: Stretch) -> String {
        let (columns, rows) = self.rows(table, stretch);
        format!(
            "INSERT INTO {} ({columns}) SELECT {columns} FROM ({rows})",
            table.0
        )
    }

    /// Returns the column names and the SELECT that generates the rows.
    fn rows(&self, (table, per_session, own): &Table, stretch: Stretch) -> (String, String) {
        let rows = unjank_random::whole(stretch.sessions as f64 * per_session);
        let (columns, own) = own.split_once('\n').unwrap_or_default();
        let columns = format!("{DEVICE_COLUMNS}, {}", columns.trim_start_matches("-- "));
        let slow = self.slow_down.unwrap_or(SlowDown {
            factor: 1.0,
            version: 1,
            share: 0.0,
            from: 0.0,
        });
        let added = self.added.unwrap_or(Added {
            share: 0.0,
            from: 0.0,
        });
        let filled = [
            ("{version}", self.version()),
            ("{when}", when(stretch.seconds)),
            ("{seed}", self.seed.to_string()),
            ("{part}", stretch.part.to_string()),
            ("{table}", (*table).to_owned()),
            ("{sessions}", stretch.sessions.to_string()),
            ("{begin}", format!("{:?}", stretch.begin)),
            ("{added}", format!("{:?}", added.share)),
            ("{added_from}", format!("{:?}", added.from)),
            ("{installs}", self.installs.to_string()),
            ("{slower}", format!("{:?}", slow.factor)),
            ("{slower_version}", slow.version.to_string()),
            ("{slower_from}", format!("{:?}", slow.from)),
            ("{slower_share}", format!("{:?}", slow.share)),
        ];
        let inner = format!("{DEVICES}    , {own}FROM numbers({rows})");
        let inner = filled
            .iter()
            .fold(inner, |sql, (name, value)| sql.replace(name, value));
        (columns, inner)
    }

    /// Returns the SQL expression of the version that an install has when a session begins.
    fn version(&self) -> String {
        match &self.releases {
            Releases::Gradual(releases) => {
                let places: Vec<_> = (1..=releases.len()).collect();
                format!(
                    "1 + arrayLastIndex((release, place) -> toFloat64(toUnixTimestamp(began)) >= release \
                     + if(unit(of_install, concat('stage', toString(place))) < 0.2, 0, {DAY:?}) \
                     - log(unit(of_install, concat('update', toString(place)))) * {DAY:?} * [2.5, 1.5, 0.8][class], {releases:?}, {places:?})"
                )
            }
            Releases::Step { at, share } => format!(
                "if(toFloat64(toUnixTimestamp64Micro(began)) / 1e6 >= {at:?} \
                 AND (is_added OR unit(of_install, 'update') < {share:?} * [0.6, 1., 1.5][class]), 2, 1)"
            ),
        }
    }
}

/// Returns the SQL expression of the session's begin, in seconds from the start of the period. Sessions of a week follow its days
/// and hours; sessions of less than a day are spread evenly.
fn when(seconds: f64) -> String {
    if seconds < DAY {
        return format!("{seconds:?} * unit(of_session, 'minute')");
    }
    format!(
        "{DAY:?} * {} + {HOUR:?} * ({} + unit(of_session, 'minute'))",
        weighted_choice("day", &WEEK),
        weighted_choice("hour", &HOURS)
    )
}

/// Returns the SQL expression that picks an index (from 0) with the given weights.
fn weighted_choice(what: &str, weights: &[u32]) -> String {
    let all = f64::from(weights.iter().sum::<u32>());
    let mut sum = 0;
    let ends: Vec<_> = weights
        .iter()
        .map(|weight| {
            sum += weight;
            f64::from(sum) / all
        })
        .collect();
    format!("(arrayFirstIndex(end -> end > unit(of_session, '{what}'), {ends:?}) - 1)")
}
