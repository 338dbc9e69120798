//! Determines which raw rows belong to a part, from raw rows and marks.

use std::collections::{BTreeMap, BTreeSet};

use super::plan::{entries, joined, of_month, raw_unit, unit, within};
use super::{Part, Rebuilder};
use crate::store::clickhouse::Failure;
use crate::store::range_number::Number;
use crate::store::raw_tables::RawTable;
use crate::store::roll_ups::marks::{Mark, Rolled, unknown_log};
use crate::store::upkeep::books::{ADOPT_AFTER, Period, start_of};

impl Rebuilder {
    /// Returns what the month has rolled up, by its marks.
    pub(super) async fn rolled(&self, part: &Part) -> Result<Rolled, Failure> {
        let clickhouse = &self.holder.clickhouse;
        let marks = clickhouse.all_marks(&part.target, Some(part.month)).await?;
        let recent = |mark: &&Mark| {
            mark.log != unknown_log(mark.bits) && mark.number.seconds() >= self.now - ADOPT_AFTER
        };
        let mut logs = BTreeSet::new();
        for mark in marks.iter().filter(recent) {
            if !logs.insert(mark.bits) {
                return Err(Failure::Later(format!(
                    "two servers that write to {} have the same 32 bits in their numbers (one is {}), \
                     so a rebuild cannot distinguish their rows: stop one of them for six hours",
                    part.target, mark.log
                )));
            }
        }
        let mut rolled = Rolled::default();
        let marks = marks.into_iter();
        rolled.join(marks.map(|mark| (mark.bits, mark.number.last_of_fold())));
        Ok(rolled)
    }

    /// Returns the last fold of each log that should have been rolled up long ago but is not.
    pub(super) async fn overdue_folds(
        &self,
        raw: &RawTable,
        periods: &[Period],
        rolled: &Rolled,
    ) -> Result<Rolled, Failure> {
        let sql = format!(
            "SELECT {} AS log, max(range_id) FROM `{}`.`{}` WHERE {} AND NOT ({}) AND {} < {} GROUP BY log",
            Number::LOG_SQL,
            self.database(),
            raw.name,
            within(raw.time, periods),
            rolled.sql(),
            Number::MILLIS_SQL,
            (self.now - ADOPT_AFTER) * 1_000
        );
        let logs = self.ask::<(u32, u128)>(&sql).await?.into_iter();
        let last = |number| Number::from_value(number).fold().last_of_fold();
        let mut overdue_folds = Rolled::default();
        overdue_folds.join(logs.map(|(log, number)| (log, last(number))));
        Ok(overdue_folds)
    }

    /// Returns the part's periods plus all others of the month in which adopted folds have rows, because a mark covers the whole
    /// month.
    pub(super) async fn widened(
        &self,
        part: &Part,
        before: &Rolled,
        rolled: &Rolled,
    ) -> Result<Vec<Period>, Failure> {
        let (roll_up, target, raw) = self.found(part)?;
        let sql = format!(
            "SELECT DISTINCT {} FROM `{}`.`{}` WHERE {} AND {} AND NOT ({})",
            start_of(raw.time, raw_unit(raw)),
            self.database(),
            raw.name,
            within(raw.time, &[of_month(part.month)]),
            rolled.sql(),
            before.sql()
        );
        let found: BTreeSet<i64> = self.ask::<i64>(&sql).await?.into_iter().collect();
        let mut wanted = self.entries_kept(roll_up, target, &joined(&found, raw_unit(raw)));
        wanted.extend(entries(target, &part.periods));
        Ok(joined(&wanted, unit(target)))
    }

    /// Counts the rows that older servers or people inserted without a number.
    pub(super) async fn unnumbered(
        &self,
        raw: &RawTable,
        periods: &[Period],
    ) -> Result<u64, Failure> {
        let sql = format!(
            "SELECT count() FROM `{}`.`{}` WHERE {} AND range_id = 0",
            self.database(),
            raw.name,
            within(raw.time, periods)
        );
        Ok(self.ask::<u64>(&sql).await?.into_iter().sum())
    }

    /// Returns the hours (days for a daily table) that have raw rows, with their number.
    pub(super) async fn raw_hours(
        &self,
        raw: &RawTable,
        periods: &[Period],
        scope: &str,
    ) -> Result<BTreeMap<i64, u64>, Failure> {
        let sql = format!(
            "SELECT {} AS at, count() FROM `{}`.`{}` WHERE {scope} AND {} GROUP BY at",
            start_of(raw.time, raw_unit(raw)),
            self.database(),
            raw.name,
            within(raw.time, periods)
        );
        Ok(self.ask::<(i64, u64)>(&sql).await?.into_iter().collect())
    }

    /// Returns the logs whose folds are adopted. Each range of a log has left its mark in `outcomes`. The retry of a dead letter
    /// has its own log; if it was interrupted, the id of that log is unknown.
    pub(super) async fn adopting_logs(
        &self,
        adopted: &Rolled,
    ) -> Result<Vec<(String, Number)>, Failure> {
        if adopted.0.is_empty() {
            return Ok(Vec::new());
        }
        let logs = self.holder.clickhouse.all_marks("outcomes", None).await?;
        let mut names: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for mark in logs {
            names.entry(mark.bits).or_default().push(mark.log);
        }
        let adopted = adopted.0.iter().flat_map(|(bits, number)| {
            let names_of_bits = names.remove(bits);
            let logs = names_of_bits.unwrap_or_else(|| vec![unknown_log(*bits)]);
            logs.into_iter().map(|log| (log, *number))
        });
        Ok(adopted.collect())
    }
}
