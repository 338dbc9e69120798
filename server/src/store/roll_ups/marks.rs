//! The marks of a month of a roll-up: the folds that it contains, by log.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::RollUpTable;
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::range_number::Number;
use crate::store::raw_tables::Month;

/// A mark and its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The id of the log, or [`unknown_log`].
    pub(crate) log: String,
    pub(crate) bits: u32,
    pub(crate) number: Number,
}

const UNKNOWN: &str = "log ";

/// Returns the name of a log of which only the bits in numbers are known.
pub(crate) fn unknown_log(bits: u32) -> String {
    format!("{UNKNOWN}{bits:08x}")
}

fn bits_of(log: &str) -> Option<u32> {
    match log.strip_prefix(UNKNOWN) {
        Some(bits) => u32::from_str_radix(bits, 16).ok(),
        None => Uuid::parse_str(log).ok().map(Number::log_bits),
    }
}

/// The last number that is rolled up, by the 32 bits of the log that are part of a number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rolled(pub(crate) BTreeMap<u32, Number>);

impl Rolled {
    /// Returns a condition on raw rows that are rolled up.
    pub(crate) fn sql(&self) -> String {
        if self.0.is_empty() {
            return "range_id = 0".to_owned();
        }
        let logs: Vec<String> = self.0.keys().map(|log| Number::sql_of_log(*log)).collect();
        let marks: Vec<String> = self.0.values().map(|mark| mark.sql()).collect();
        format!(
            "range_id <= arrayElement([{}], indexOf([{}], {}))",
            marks.join(", "),
            logs.join(", "),
            Number::LOG_SQL
        )
    }

    /// Keeps the later number for each log.
    pub(crate) fn join(&mut self, numbers: impl IntoIterator<Item = (u32, Number)>) {
        for (log, number) in numbers {
            let known = self.0.entry(log).or_default();
            *known = number.max(*known);
        }
    }
}

/// The columns of a table's marks.
pub(crate) struct MarkColumns {
    /// The name of the log.
    pub(crate) log: &'static str,
    pub(crate) number: &'static str,
    /// Dates the month of the mark.
    pub(crate) time: &'static str,
    /// The condition that marks of whole months meet.
    pub(crate) condition: &'static str,
}

impl MarkColumns {
    pub(crate) fn for_table(table: &str) -> Self {
        match RollUpTable::named(table) {
            Some(table) => Self {
                log: "app_id",
                number: table.mark_column(),
                time: table.time,
                condition: "true",
            },
            // `outcomes`, which also has marks of single ranges.
            None => Self {
                log: "signal",
                number: "source",
                time: "hour",
                condition: "reason = ''",
            },
        }
    }
}

impl ClickHouse {
    /// Reads the marks of all logs in a month (`None`: in all months). In `outcomes`, a log that has marks of single ranges only gets
    /// the number 0.
    pub(crate) async fn all_marks(
        &self,
        table: &str,
        month: Option<Month>,
    ) -> Result<Vec<Mark>, Failure> {
        let MarkColumns {
            log,
            number,
            time,
            condition,
        } = MarkColumns::for_table(table);
        let of_month = month.map_or(String::new(), |month| {
            format!(" AND toYYYYMM({time}) = {month}")
        });
        let sql = format!(
            "SELECT toString({log}) AS log, maxIf({number}, {condition}) FROM `{}`.`{table}` \
             WHERE project = ''{of_month} GROUP BY log",
            self.database()
        );
        let marks = self
            .client()?
            .query_raw(&sql)
            .fetch_all::<(String, u128)>()
            .await?;
        let marks = marks.into_iter().filter_map(|(log, mark)| {
            Some(Mark {
                bits: bits_of(&log)?,
                number: Number::from_value(mark),
                log,
            })
        });
        Ok(marks.collect())
    }
}
