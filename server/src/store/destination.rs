//! What the writer asks of ClickHouse: to take rows, and to say what it has.
//!
//! A token makes the same block twice change nothing, as long as ClickHouse remembers it. It is a first guard, no proof: ClickHouse may know
//! a token without its rows, and rows without their token. What is in doubt is asked for by the numbers in the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use uuid::Uuid;

use super::clickhouse::Failure;
use super::fold::{RollUp, Step};
use super::native::Block;
use super::number::Number;
use super::raw::{Day, RawTable};

/// A year and a month: 202611.
pub(super) type Month = u32;

/// A batch that ClickHouse has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredBatch {
    pub(super) batch_id: Uuid,
    /// The range that brought it.
    pub(super) number: Number,
    /// Microseconds since the epoch.
    pub(super) received_at: i64,
}

/// What ClickHouse has of some batches.
#[derive(Debug, Default)]
pub(crate) struct StoredBatches {
    pub(super) whole: Vec<StoredBatch>,
    /// Batches that were cut. ClickHouse has a half of them.
    pub(super) cut: Vec<Uuid>,
}

/// A block for a table.
pub(crate) struct Insert<'b> {
    pub(super) table: &'b str,
    pub(super) block: Block<'b>,
    pub(super) token: String,
    /// The range that the rows are of.
    pub(super) number: Number,
    /// Only rows of these periods.
    pub(super) only: Option<(&'static RawTable, BTreeSet<Day>)>,
}

pub(crate) trait Destination: Clone + Send + Sync + 'static {
    /// Which of `ids` the project's `batches` hold.
    fn stored_batches(
        &self,
        project: &str,
        ids: &[Uuid],
    ) -> impl Future<Output = Result<StoredBatches, Failure>> + Send;

    /// Inserts a block: one part for each period of the table, each all or nothing.
    fn insert(&self, insert: Insert<'_>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// The periods of a table that have rows with the number.
    fn periods_of(
        &self,
        table: &RawTable,
        number: Number,
    ) -> impl Future<Output = Result<BTreeSet<Day>, Failure>> + Send;

    /// Whether the table has rows of records of the range that were sent alone, or rows with one of the other numbers.
    fn has_records_of(
        &self,
        table: &RawTable,
        range: Number,
        others: &[Number],
    ) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Ranges of a log that have marks of their own in `outcomes`, by month. Recoveries write such marks.
    fn counted_alone(
        &self,
        log_id: Uuid,
    ) -> impl Future<Output = Result<BTreeSet<(Month, Number)>, Failure>> + Send;

    /// The last number that a log's mark names, by month.
    fn marks(
        &self,
        table: &str,
        log_id: Uuid,
    ) -> impl Future<Output = Result<BTreeMap<Month, Number>, Failure>> + Send;

    /// The roll-ups of a raw table.
    fn roll_ups(&self) -> impl Future<Output = Result<Vec<RollUp>, Failure>> + Send;

    /// The folds of a log with rows in the table whose numbers are greater than `after`.
    fn folds_after(
        &self,
        table: &RawTable,
        log_id: Uuid,
        after: Number,
    ) -> impl Future<Output = Result<BTreeSet<Number>, Failure>> + Send;

    /// The months in which a fold has rows of a table.
    fn months_of(
        &self,
        table: &RawTable,
        fold: Number,
    ) -> impl Future<Output = Result<BTreeSet<Month>, Failure>> + Send;

    /// Rolls up some months of a fold's rows.
    fn roll_up(&self, step: &Step<'_>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Whether a query of an earlier attempt at the fold or the range is still running.
    fn is_at_work(&self, number: Number) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Kills the queries that an earlier process of a log left running. Returns whether any still runs.
    fn end_attempts(&self, log_id: Uuid) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Rolls up the fold of an older server.
    fn roll_up_old(
        &self,
        fold: u64,
        log_id: Uuid,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}
