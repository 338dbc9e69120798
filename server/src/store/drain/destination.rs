//! The operations that the writer needs from ClickHouse.
//!
//! While ClickHouse remembers a token, it ignores a repeated block with that token. A token is a first guard and not a proof: ClickHouse may have a
//! token without its rows, or rows without their token. In doubt, the writer queries the numbers in the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

use unjank_database::ClaimStore;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use crate::records::native::Block;
use crate::store::clickhouse::Failure;
use crate::store::range_number::Number;
use crate::store::raw_tables::{Day, Month, RawTable};
use crate::store::roll_ups::fold::{RollUp, Step};

/// A batch that ClickHouse has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StoredBatch {
    pub(crate) batch_id: Uuid,
    /// The range that stored it.
    pub(crate) number: Number,
    pub(crate) received_at: UnixTime,
}

/// The requested batches that ClickHouse has.
#[derive(Debug, Default)]
pub(crate) struct StoredBatches {
    pub(crate) whole: Vec<StoredBatch>,
    /// Batches that a device split. ClickHouse has a half of each.
    pub(crate) cut: Vec<Uuid>,
}

/// A block for a table.
pub(crate) struct Insert<'b> {
    pub(crate) table: &'b str,
    pub(crate) block: Block<'b>,
    pub(crate) token: String,
    /// The range of the rows.
    pub(crate) number: Number,
    /// If set, only the rows of these periods are inserted.
    pub(crate) only: Option<(&'static RawTable, BTreeSet<Day>)>,
}

pub(crate) trait Destination: Clone + Send + Sync + 'static {
    /// Where servers that share this destination claim batches.
    type Claims: ClaimStore;

    /// Returns which of `ids` the table `batches` has for the project.
    fn stored_batches(
        &self,
        project: &str,
        ids: &[Uuid],
    ) -> impl Future<Output = Result<StoredBatches, Failure>> + Send;

    /// Inserts a block. Each period of the table gets one part, which is stored completely or not at all.
    fn insert(&self, insert: Insert<'_>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Returns the periods in which a table has rows with one of the numbers.
    fn periods_of(
        &self,
        table: &RawTable,
        numbers: &[Number],
    ) -> impl Future<Output = Result<BTreeSet<Day>, Failure>> + Send;

    /// Whether the table has rows of single records of the range, or rows with one of the other numbers.
    fn has_records_of(
        &self,
        table: &RawTable,
        range: Number,
        others: &[Number],
    ) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Returns the ranges of a log that have marks of their own in `outcomes`, by month. Recovery writes such marks.
    fn ranges_with_own_marks(
        &self,
        log_id: Uuid,
    ) -> impl Future<Output = Result<BTreeSet<(Month, Number)>, Failure>> + Send;

    /// Returns the latest number in the marks of a log, by month.
    fn marks(
        &self,
        table: &str,
        log_id: Uuid,
    ) -> impl Future<Output = Result<BTreeMap<Month, Number>, Failure>> + Send;

    /// Returns the roll-ups of all raw tables.
    fn roll_ups(&self) -> impl Future<Output = Result<Vec<RollUp>, Failure>> + Send;

    /// Returns the folds of a log whose numbers are greater than `after` and which have rows in the table.
    fn folds_after(
        &self,
        table: &RawTable,
        log_id: Uuid,
        after: Number,
    ) -> impl Future<Output = Result<BTreeSet<Number>, Failure>> + Send;

    /// Returns the months in which a fold has rows in a table.
    fn months_of(
        &self,
        table: &RawTable,
        fold: Number,
    ) -> impl Future<Output = Result<BTreeSet<Month>, Failure>> + Send;

    /// Rolls up the rows of a fold in some months.
    fn roll_up(&self, step: &Step<'_>) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Whether a query of an earlier attempt at the fold or range is still running.
    fn has_running_queries(
        &self,
        number: Number,
    ) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Kills the queries that an earlier process of a log left running. Returns whether any is still running.
    fn kill_queries(&self, log_id: Uuid) -> impl Future<Output = Result<bool, Failure>> + Send;

    /// Rolls up the fold of an older server.
    fn roll_up_old(
        &self,
        fold: u64,
        log_id: Uuid,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}
