//! Rebuilds months of roll-ups from raw rows, while new rows arrive.
//!
//! A part is one month of a roll-up. Its new rows are built in a scratch table: rows of the rebuilt hours by the roll-up's SELECT
//! over raw rows, all other rows and the marks as they are. One `REPLACE PARTITION` then swaps them in atomically.
//!
//! The marks decide **which raw rows belong to a part**, as in [`crate::store::upkeep::books`]: rows up to the mark of their log. Later rows are
//! rolled up by their own fold. Rows whose fold was drawn more than six hours ago are adopted: the part gets a mark for them, so
//! that a server that restarts does not add them again.
//!
//! 1. `fill`: rolls up rows up to the current marks, while folds go on. This is nearly all of the work.
//! 2. `hold`: blocks new folds into the month, see [`crate::store::roll_ups::holds`], and waits for running ones.
//! 3. `catch_up`: adds rows that folds added since `fill`, and all rows that are kept as they are. The latter are linked, not
//!    copied, so folds do not wait for long.
//! 4. `swap`: runs only if nothing but the rebuild has written to the month since `hold`, and the hold has not expired. Otherwise
//!    the part is retried.
//!
//! A killed rebuild leaves a scratch table, which the next rebuild drops, and a hold, which expires.

mod plan;
mod raw_rows;
mod record;
mod scratch;

pub(crate) use self::scratch::SCRATCH;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

pub(crate) use self::plan::of_month;
pub use self::plan::{Part, Refused};

use self::plan::{entries, joined, parts, raw_unit, scope, since, within};
use self::scratch::MonthState;
use super::books::{Gone, Kept, Period};
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::raw_tables::RawTable;
use crate::store::roll_ups::RollUpTable;
use crate::store::roll_ups::fold::{RollUp, Target};
use crate::store::roll_ups::holds::Holder;
use crate::store::roll_ups::marks::Rolled;

/// How long a hold lasts unless it is renewed.
pub const LIFE: Duration = Duration::from_secs(30);
/// Target number of raw rows per statement.
const CHUNK: u64 = 5_000_000;
/// Maximum number of attempts for a part, in case something else writes to its month.
const ATTEMPTS: u32 = 5;

/// A rebuild yields to other queries and may spill to disk.
const SETTINGS: [(&str, &str); 6] = [
    ("max_threads", "2"),
    ("priority", "10"),
    ("max_bytes_before_external_group_by", "1000000000"),
    ("insert_deduplicate", "0"),
    ("async_insert", "0"),
    ("max_partition_size_to_drop", "0"),
];

/// A running rebuild. Only one can run per database.
pub struct Rebuilder {
    holder: Holder,
    roll_ups: Vec<RollUp>,
    kept: Kept,
    /// Seconds since the epoch.
    now: i64,
}

/// A part whose scratch table holds the rows up to the marks.
pub struct Filled {
    scratch: String,
    rolled: Rolled,
    periods: Vec<Period>,
    /// Logs whose folds are adopted.
    adopted: Rolled,
    /// Number of rows without a number: inserted by hand or by an older server.
    unnumbered: u64,
    /// Raw rows that were gone when the part began.
    gone: Gone,
    rows: u64,
}

/// A part that can be swapped in if the month has not changed.
pub struct Ready {
    scratch: String,
    periods: Vec<Period>,
    state: MonthState,
    unnumbered: u64,
    gone: Gone,
}

/// The result of rebuilding a part.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rebuilt {
    /// Raw rows of the rebuilt hours.
    pub rows: u64,
    /// How long folds were blocked.
    pub held: Duration,
}

/// Receives the number of raw rows done and the total of a part.
pub type OnProgress<'p> = &'p (dyn Fn(u64, u64) + Send + Sync);

impl Rebuilder {
    /// Starts a rebuild, unless another one is running. Removes the leftovers of a killed one. `now` is in seconds since the epoch.
    /// `life` is how long a hold lasts unless it is renewed.
    pub async fn begin(clickhouse: &ClickHouse, now: i64, life: Duration) -> Result<Self, Failure> {
        let holder = Holder {
            clickhouse: clickhouse.clone(),
            id: Uuid::new_v4(),
            life,
        };
        holder.lock().await?;
        let begun = Self {
            kept: Kept::default(),
            roll_ups: Vec::new(),
            holder: holder.clone(),
            now,
        };
        let read = begun.read().await;
        if read.is_err() {
            holder.release(None).await?;
        }
        read
    }

    async fn read(mut self) -> Result<Self, Failure> {
        self.kept = self.holder.clickhouse.kept().await?;
        self.roll_ups = self.holder.clickhouse.read_roll_ups().await?;
        self.drop_scratches("").await?;
        Ok(self)
    }

    /// Does other work while no rebuild can run.
    pub async fn run_exclusively<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        self.holder.during(async { Ok(work.await) }).await
    }

    /// Ends the rebuild, so that the next one can start at once.
    pub async fn end(self) -> Result<(), Failure> {
        let id = self.holder.id.simple().to_string();
        self.drop_scratches(&id).await?;
        self.holder.release(None).await
    }

    /// Returns signal and table of all roll-ups.
    #[must_use]
    pub fn targets(&self) -> Vec<(&str, &str)> {
        let targets = self.roll_ups.iter().flat_map(RollUp::targets);
        let mut targets: Vec<_> = targets
            .map(|target| (signal(&target.table), &*target.table))
            .collect();
        targets.sort_unstable();
        targets
    }

    /// Plans the parts of these signals. Refuses a period if some of its raw rows may be gone.
    pub fn plan(&self, signals: &BTreeSet<&str>, period: Period) -> Result<Vec<Part>, Refused> {
        let (mut plan, mut refused) = (Vec::new(), Vec::new());
        for (roll_up, target) in self.all() {
            if !signals.contains(signal(&target.table)) {
                continue;
            }
            let wanted = entries(target, &[period]);
            let from = since(roll_up, target, &self.kept, self.now);
            match (from, wanted.first()) {
                (Some(from), Some(first)) if *first < from => refused.push(format!(
                    "{}: can be rebuilt only from {} on: older raw rows of `{}` are no longer stored",
                    target.table,
                    text(from),
                    roll_up.table
                )),
                _ => plan.extend(parts(target, &wanted)),
            }
        }
        if refused.is_empty() {
            Ok(plan)
        } else {
            Err(Refused(refused))
        }
    }

    /// Plans the parts of periods in which tables differ. Hourly and daily tables that are made from the same rows are rebuilt
    /// together. Hours whose raw rows may be gone are skipped.
    #[must_use]
    pub fn plan_repair(&self, differences: &[(&str, Period)]) -> Vec<Part> {
        let mut plan = Vec::new();
        for roll_up in &self.roll_ups {
            let of_roll_up = |table| roll_up.targets().any(|target| target.table == table);
            let periods = differences.iter().filter(|(table, _)| of_roll_up(*table));
            let periods: Vec<Period> = periods.map(|(_, period)| *period).collect();
            for target in roll_up.targets() {
                plan.extend(parts(target, &self.entries_kept(roll_up, target, &periods)));
            }
        }
        plan
    }

    /// Plans the parts to rebuild after rows of a project were deleted from a raw table. Hours whose raw rows may be gone are
    /// skipped.
    #[must_use]
    pub fn plan_without(&self, project: &str, raw: &str, periods: &[Period]) -> Vec<Part> {
        let mut plan = Vec::new();
        for roll_up in self.roll_ups.iter().filter(|one| one.table == raw) {
            for target in roll_up.targets() {
                plan.extend(parts(target, &self.entries_kept(roll_up, target, periods)));
            }
        }
        for part in &mut plan {
            part.project = Some(project.to_owned());
        }
        plan
    }

    /// Returns the entries of the periods that can be rebuilt.
    fn entries_kept(&self, roll_up: &RollUp, target: &Target, periods: &[Period]) -> BTreeSet<i64> {
        let mut wanted = entries(target, periods);
        match since(roll_up, target, &self.kept, self.now) {
            Some(from) => wanted.split_off(&from),
            None => wanted,
        }
    }

    fn all(&self) -> impl Iterator<Item = (&RollUp, &Target)> {
        self.roll_ups
            .iter()
            .flat_map(|roll_up| roll_up.targets().map(move |target| (roll_up, target)))
    }

    fn found(&self, part: &Part) -> Result<(&RollUp, &Target, &'static RawTable), Failure> {
        let found = self.all().find(|(_, target)| target.table == part.target);
        let (roll_up, target) =
            found.ok_or_else(|| Failure::Later(format!("no view fills {}", part.target)))?;
        let raw = RawTable::named(&roll_up.table)
            .ok_or_else(|| Failure::Later(format!("{} is not a raw table", roll_up.table)))?;
        Ok((roll_up, target, raw))
    }

    /// Rebuilds a part.
    pub async fn rebuild(&self, part: &Part, on: OnProgress<'_>) -> Result<Rebuilt, Failure> {
        for _ in 0..ATTEMPTS {
            let attempt = self.holder.during(self.attempt(part, on)).await;
            // Folds must go on whatever the outcome.
            let released = self.release(part).await;
            if let Some(rebuilt) = attempt? {
                released?;
                return Ok(rebuilt);
            }
        }
        Err(Failure::Later(format!(
            "{} {}: not rebuilt because something else keeps writing to it (a server of an older version, or INSERTs by hand)",
            part.target, part.month
        )))
    }

    async fn attempt(&self, part: &Part, on: OnProgress<'_>) -> Result<Option<Rebuilt>, Failure> {
        // If this process was paused, another rebuild may have started.
        self.holder.lock().await?;
        let filled = self.fill(part, on).await?;
        let rows = filled.rows;
        let held = Instant::now();
        self.hold(part).await?;
        let ready = self.catch_up(part, filled).await?;
        let swapped = self.swap(part, ready).await?;
        let held = held.elapsed();
        Ok(swapped.then_some(Rebuilt { rows, held }))
    }

    /// Step 1: builds the rows of the rebuilt hours, up to the current marks.
    pub async fn fill(&self, part: &Part, on: OnProgress<'_>) -> Result<Filled, Failure> {
        let (roll_up, target, raw) = self.found(part)?;
        let scratch = self.new_scratch(part, "").await?;
        let mut rolled = self.rolled(part).await?;
        // A mark covers all projects, so rows of a single project are not adopted.
        let adopted = match part.project {
            Some(_) => Rolled::default(),
            None => self.overdue_folds(raw, &part.periods, &rolled).await?,
        };
        let before = rolled.clone();
        rolled.join(adopted.0.clone());
        let mut periods = part.periods.clone();
        if !adopted.0.is_empty() {
            periods = self.widened(part, &before, &rolled).await?;
        }
        let unnumbered = self.unnumbered(raw, &periods).await?;
        let gone = self.gone(raw).await?;
        let scope = scope(part, raw.time, &gone.of_projects);
        let hours = self.raw_hours(raw, &periods, &scope).await?;
        let all = hours.values().sum();
        let mut done = 0;
        on(done, all);
        for (chunk, rows) in chunks(&hours, raw_unit(raw)) {
            let condition = format!(
                "{scope} AND {} AND {}",
                within(raw.time, &chunk),
                rolled.sql()
            );
            self.execute(&target.fill(&scratch, &roll_up.rows_of(target, &condition)))
                .await?;
            done += rows;
            on(done, all);
        }
        Ok(Filled {
            scratch,
            rolled,
            periods,
            adopted,
            unnumbered,
            gone,
            rows: all,
        })
    }

    /// Step 2: blocks folds into the month.
    pub async fn hold(&self, part: &Part) -> Result<(), Failure> {
        let (roll_up, target, _) = self.found(part)?;
        let mut through: Vec<&str> = Vec::new();
        for one in roll_up.targets() {
            through.push(&one.table);
            if one.table == target.table {
                break;
            }
        }
        self.holder.hold(&part.target, part.month, &through).await
    }

    /// Step 3: adds the rows that folds have rolled up since step 1, and the rows that are kept as they are.
    pub async fn catch_up(&self, part: &Part, filled: Filled) -> Result<Ready, Failure> {
        let (roll_up, target, raw) = self.found(part)?;
        let Filled {
            scratch,
            rolled,
            periods,
            adopted,
            unnumbered,
            gone,
            ..
        } = filled;
        // Must be read first, so that any later write is detected.
        let state = self.month_state(part).await?;
        let mut now = self.rolled(part).await?;
        now.join(adopted.0.clone());
        if now != rolled {
            let condition = format!(
                "{} AND {} AND {} AND NOT ({})",
                scope(part, raw.time, &gone.of_projects),
                within(raw.time, &periods),
                now.sql(),
                rolled.sql()
            );
            self.execute(&target.fill(&scratch, &roll_up.rows_of(target, &condition)))
                .await?;
        }
        for (log, number) in self.adopting_logs(&adopted).await? {
            self.execute(&target.fill_mark(&scratch, part.month, (&log, number)))
                .await?;
        }
        let time = target.time();
        let scope = scope(part, time, &gone.of_projects);
        let rebuilt = format!("{scope} AND {}", within(time, &periods));
        let whole = self.rest(part, &rebuilt).await?;
        self.attach(&whole, part.month, &scratch).await?;
        self.drop_scratch(&scratch).await?;
        Ok(Ready {
            scratch: whole,
            periods,
            state,
            unnumbered,
            gone,
        })
    }

    /// Read for each part, because raw rows may be dropped during a rebuild.
    async fn gone(&self, raw: &RawTable) -> Result<Gone, Failure> {
        Ok(self.holder.clickhouse.kept().await?.gone(raw.name))
    }

    /// Step 4: swaps the new rows in. Returns false and changes nothing if the month has changed.
    pub async fn swap(&self, part: &Part, ready: Ready) -> Result<bool, Failure> {
        let (_, _, raw) = self.found(part)?;
        let claim = (&*part.target, part.month);
        let same = self.unnumbered(raw, &ready.periods).await? == ready.unnumbered
            && self.gone(raw).await? == ready.gone
            && self.month_state(part).await? == ready.state;
        if !(same && self.holder.lasts(claim).await?) {
            return Ok(false);
        }
        let swap = if self.has_rows(&ready.scratch).await? {
            format!("REPLACE PARTITION {} FROM {}", part.month, ready.scratch)
        } else {
            // ClickHouse rejects a REPLACE PARTITION from an empty partition.
            format!("DROP PARTITION {}", part.month)
        };
        let (database, target) = (self.database(), &part.target);
        let swap = format!("ALTER TABLE `{database}`.`{target}` {swap}");
        self.execute(&swap).await?;
        // The check before the swap is not atomic with it: if this process was paused in between, the hold may have expired before
        // the swap.
        let lasted = self.holder.lasts(claim).await?;
        self.drop_scratch(&ready.scratch).await?;
        if !lasted {
            tracing::warn!(
                target = part.target,
                month = part.month,
                "the hold of a rebuild expired during the swap; the month will be rebuilt again"
            );
        }
        Ok(lasted)
    }

    /// Allows folds into a part's month again.
    pub async fn release(&self, part: &Part) -> Result<(), Failure> {
        let claim = (&*part.target, part.month);
        self.holder.release(Some(claim)).await
    }

    fn database(&self) -> &str {
        self.holder.clickhouse.database()
    }

    async fn execute(&self, sql: &str) -> Result<(), Failure> {
        let query = self.holder.clickhouse.client()?.query_raw(sql);
        let query = SETTINGS.into_iter().fold(query, |query, (name, value)| {
            query.with_setting(name, value)
        });
        Ok(query.execute().await?)
    }
}

/// Returns the signal of a roll-up.
fn signal(table: &str) -> &str {
    RollUpTable::named(table).map_or(table, |table| table.definition.signal)
}

fn text(at: i64) -> String {
    unjank_protocol::Timestamp::from_micros(at.saturating_mul(1_000_000)).to_string()
}

/// Splits hours into chunks for one statement each, in order: as few hours as reach `CHUNK` rows.
fn chunks(hours: &BTreeMap<i64, u64>, unit: i64) -> Vec<(Vec<Period>, u64)> {
    let mut chunks = Vec::new();
    let (mut chunk, mut rows) = (BTreeSet::new(), 0);
    for (&at, &more) in hours {
        chunk.insert(at);
        rows += more;
        if rows >= CHUNK {
            chunks.push((joined(&std::mem::take(&mut chunk), unit), rows));
            rows = 0;
        }
    }
    if !chunk.is_empty() {
        chunks.push((joined(&chunk, unit), rows));
    }
    chunks
}
