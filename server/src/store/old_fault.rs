//! Bugs, most of them of earlier versions. The simulation enables one at a time and proves that it finds the bug.

/// A bug, by what the code did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OldFault {
    /// After a crash, blocks were resent with their tokens, without a check of the stored rows.
    TokensAreProof,
    /// A restored data folder drew numbers that were in use already.
    NumbersRepeat,
    /// The ledger of a lost log was applied to the new log.
    LedgerOfAnotherLog,
    /// A block that was stored and then reported as rejected was resent record by record under new numbers.
    RefusedIsNotStored,
    /// After a failure, a fold was rolled up again from its first view, deduplicated by tokens alone.
    FoldsBeginAgain,
    /// State in memory changed before it was durable.
    StateBeforeSave,
    /// Blocks with different columns had the same number in one table.
    LayoutsShareNumbers,
    /// After a rejected block, each frame of a record was sent by itself, under the same number as the other frames of its table.
    FramesShareNumbers,
    /// The claims of a server that is gone were released while its INSERT was running.
    ReleasedWhileInserting,
    /// Servers did not claim batches.
    #[cfg(test)]
    ClaimsIgnored,
    /// A server claimed batches while a command had the lease on its log.
    #[cfg(test)]
    LeaseIgnored,
    /// A running server did not compare its ledger with ClickHouse after a command had drained a copy of its log.
    #[cfg(test)]
    DrainedLearnsNothing,
    /// A backup let the server delete records while the tables were copied.
    #[cfg(test)]
    BackupsDoNotHold,
    /// A backup copied the tables in the order in which they are filled.
    #[cfg(test)]
    BackupsCopyInOrder,
}

#[cfg(not(test))]
pub(super) const fn is_back(_: OldFault) -> bool {
    false
}

#[cfg(test)]
thread_local! {
    static BACK: std::cell::Cell<Option<OldFault>> = const { std::cell::Cell::new(None) };
}

#[cfg(test)]
pub(super) fn is_back(fault: OldFault) -> bool {
    BACK.get() == Some(fault)
}

/// Enables a bug on this thread.
#[cfg(test)]
pub(super) fn put_back(fault: Option<OldFault>) {
    BACK.set(fault);
}
