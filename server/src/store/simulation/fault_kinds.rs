//! The kinds of faults, and how a fault ends.

use std::sync::Arc;

use tokio::time::sleep;

use super::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    Kill,
    PowerCut,
    DiskFails,
    DiskFull,
    StoreRestarts,
    StoreFails,
    StoreSlow,
    TableAway,
    Refused,
    LostLog,
    LostLedger,
    OlderLedger,
    OlderFolder,
    /// A backup is restored.
    Restored,
    TooLarge,
    /// A graceful restart.
    Stop,
    /// An operator retries a dead letter.
    Retry,
    /// The process stops and continues later.
    Paused,
    ControlAway,
    ControlFails,
    /// One server cannot reach ClickHouse.
    StoreAway,
    LateInserts,
    /// A server is lost, a copy of its log is drained, and the server comes back.
    Drained,
    /// A copy of a log is drained whose server runs without the control database.
    CutOff,
}

impl Fault {
    pub(super) const ALL: [Self; 17] = [
        Self::Kill,
        Self::PowerCut,
        Self::DiskFails,
        Self::DiskFull,
        Self::StoreRestarts,
        Self::StoreFails,
        Self::StoreSlow,
        Self::TableAway,
        Self::Refused,
        Self::LostLog,
        Self::LostLedger,
        Self::OlderLedger,
        Self::OlderFolder,
        Self::TooLarge,
        Self::Stop,
        Self::Retry,
        Self::Restored,
    ];

    /// The faults of servers that share a control database.
    pub(super) const SHARED: [Self; 19] = [
        Self::Kill,
        Self::PowerCut,
        Self::DiskFails,
        Self::DiskFull,
        Self::StoreRestarts,
        Self::StoreFails,
        Self::StoreSlow,
        Self::TableAway,
        Self::LostLedger,
        Self::OlderLedger,
        Self::TooLarge,
        Self::Stop,
        Self::Paused,
        Self::ControlAway,
        Self::ControlFails,
        Self::StoreAway,
        Self::LateInserts,
        Self::Drained,
        Self::CutOff,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kill => "process killed",
            Self::PowerCut => "power cut",
            Self::DiskFails => "disk fails",
            Self::DiskFull => "disk full",
            Self::StoreRestarts => "ClickHouse killed",
            Self::StoreFails => "ClickHouse fails at random",
            Self::StoreSlow => "ClickHouse slow",
            Self::TableAway => "table away",
            Self::Refused => "content refused",
            Self::LostLog => "log lost",
            Self::LostLedger => "ledger lost",
            Self::OlderLedger => "older ledger restored",
            Self::OlderFolder => "older folder restored",
            Self::Restored => "backup restored",
            Self::TooLarge => "batches too large",
            Self::Stop => "server stopped",
            Self::Retry => "dead letter retried",
            Self::Paused => "process paused",
            Self::ControlAway => "control database unreachable",
            Self::ControlFails => "control database fails at random",
            Self::StoreAway => "ClickHouse unreachable",
            Self::LateInserts => "INSERTs end late",
            Self::Drained => "lost log drained",
            Self::CutOff => "log of a running server drained",
        }
    }
}

/// Ends a fault after a while: at most one of these times, in milliseconds.
pub(super) fn end_later(world: &Arc<World>, longest: &[u64], end: fn(&World)) {
    let longest = world.chance.pick(longest);
    let (world, wait) = (Arc::clone(world), world.chance.millis(500, longest));
    tokio::spawn(async move {
        sleep(wait).await;
        end(&world);
    });
}
