//! Traffic: bytes by natural day, source and network, counted over all requests and sent once.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use unjank_monitors::{TrafficMeter, Transfer};
use unjank_protocol::{Network, Signal, Traffic};
use uuid::Uuid;

use crate::client::{self, Shared};
use crate::clock::{age_us, wall_clock};
use crate::losses::Reason;
use crate::uplink::OLDEST_US;

/// A request that is over, answered or not: what [`traffic()`] counts.
///
/// ```
/// // One that was sent and never answered cost the user bytes as well.
/// let lost = unjank::Transferred { host: "cdn.example.com", tx_bytes: 380, ..unjank::Transferred::default() };
/// assert!(!lost.answered);
/// unjank::traffic(lost);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred<'t> {
    /// The host it was for: by it the remote configuration says the source.
    pub host: &'t str,
    /// The answer's MIME type; empty when there was no answer.
    pub mime_type: &'t str,
    /// Bytes sent, heads included as far as known.
    pub tx_bytes: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Whether an answer came.
    pub answered: bool,
}

/// Counts a request, by local day, source and network. Nothing while nothing is collected. Sums are kept in the
/// [`crate::Config::data_dir`], and are sent once.
///
/// ```
/// unjank::traffic(unjank::Transferred {
///     host: "api.example.com",
///     mime_type: "application/json",
///     tx_bytes: 412,
///     rx_bytes: 20_480,
///     answered: true,
/// });
/// ```
pub fn traffic(transferred: Transferred<'_>) {
    client::with(|shared| {
        if shared.settings.load().collects() {
            count(shared, transferred);
        }
    });
}

fn count(shared: &Shared, transferred: Transferred<'_>) {
    let transfer = Transfer {
        host: transferred.host,
        mime_type: transferred.mime_type,
        network: shared.network(),
        tx_bytes: transferred.tx_bytes,
        rx_bytes: transferred.rx_bytes,
        answered: transferred.answered,
    };
    let offset = shared.utc_offset_s.load(Ordering::Relaxed);
    shared
        .meters
        .traffic()
        .count(&transfer, wall_clock(), offset);
}

/// Says how far local time is ahead of UTC, in seconds, negative west of Greenwich: days of traffic are the user's days. Asked of the
/// system at [`crate::init`], which does not answer while there are other threads, and then it is 0; call it after `init` and when
/// the time zone changes. Nothing before `init`.
///
/// ```
/// unjank::set_utc_offset(5 * 3_600 + 1_800); // India
/// ```
pub fn set_utc_offset(seconds: i32) {
    if let Some(shared) = client::installed() {
        shared.utc_offset_s.store(seconds, Ordering::Relaxed);
    }
}

/// What the system says at the start, 0 where it does not tell.
pub(crate) fn utc_offset_s() -> i32 {
    time::UtcOffset::current_local_offset().map_or(0, time::UtcOffset::whole_seconds)
}

/// The counts as they outlive the process.
pub(crate) struct Ledger {
    file: Option<PathBuf>,
    /// What stands in the file, as far as known: most batches come without new traffic.
    written: Vec<u8>,
    /// What an earlier process counted is not known yet: it must not be overwritten.
    unread: bool,
}

impl Ledger {
    /// Takes up what an earlier process counted.
    pub(crate) fn open(file: Option<PathBuf>, shared: &Shared) -> Self {
        let mut ledger = Self {
            file,
            written: Vec::new(),
            unread: true,
        };
        ledger.read(shared);
        ledger
    }

    /// Takes up what an earlier process counted, if the disk did not give it before. Answers whether it does now.
    pub(crate) fn read(&mut self, shared: &Shared) -> bool {
        let Some(file) = self.file.as_ref().filter(|_| self.unread) else {
            return false;
        };
        let lost = match std::fs::read(file) {
            // What another program or a later version wrote cannot be counted.
            Ok(saved) => shared.meters.traffic().take_up(&saved).is_err(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(_) if age_us(file).is_ok_and(|age| age > OLDEST_US) => true,
            Err(_) => return false,
        };
        if lost {
            shared.losses.add(Signal::Traffic, Reason::DiskFailed, 1);
        }
        self.unread = false;
        true
    }

    /// Batches whose rows were taken and are not known to be kept.
    pub(crate) fn outstanding(meter: &TrafficMeter) -> Vec<Uuid> {
        let tokens = meter.outstanding();
        tokens.filter_map(|token| token.parse().ok()).collect()
    }

    /// The rows for a batch of that id: the same for the same id, until it is confirmed. On disk before they are answered.
    pub(crate) fn take(&mut self, batch_id: Uuid, shared: &Shared) -> Vec<Traffic<'static>> {
        let token = batch_id.to_string();
        let mut meter = shared.meters.traffic();
        let again = meter.outstanding().any(|one| one == token);
        let rows = meter.take_deltas(&token);
        drop(meter);
        // Taken before, they were written down then, and may have been sent: they stay with their batch.
        if again || rows.is_empty() || self.save(shared) {
            return rows;
        }
        // Rows that are not known to be taken would be sent again after a crash.
        shared.meters.traffic().put_back(&token);
        Vec::new()
    }

    /// The batch is kept elsewhere now.
    pub(crate) fn confirm(&mut self, batch_id: Uuid, shared: &Shared) {
        shared.meters.traffic().confirm(&batch_id.to_string());
        self.save(shared);
    }

    /// Answers whether the counts are durable, as far as there is a disk. One that does not take them costs what was counted
    /// since, if the process dies.
    pub(crate) fn save(&mut self, shared: &Shared) -> bool {
        let Some(file) = &self.file else { return true };
        if self.unread {
            return false;
        }
        let saved = shared.meters.traffic().save();
        if self.written == saved {
            return true;
        }
        let durable = durably(file, &saved).is_ok();
        if durable {
            self.written = saved;
        }
        durable
    }

    /// Forgets everything that was counted.
    pub(crate) fn clear(&mut self, shared: &Shared) {
        let config = &shared.settings.load().document.traffic;
        *shared.meters.traffic() = TrafficMeter::new(config);
        self.written.clear();
        self.unread = false;
        if let Some(file) = &self.file {
            // It may never have been there.
            let _absent = std::fs::remove_file(file).is_err();
        }
    }
}

fn durably(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = file.with_extension("new");
    let mut written = File::create(&new)?;
    written.write_all(bytes)?;
    written.sync_data()?;
    std::fs::rename(&new, file)?;
    // Without it the old file may be back after a power failure, when its rows are on their way already.
    #[cfg(unix)]
    if let Some(folder) = file.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Said so in batches: the network is known.
pub(crate) fn is_cellular(network: Network) -> bool {
    matches!(
        network,
        Network::Cellular
            | Network::Cellular2g
            | Network::Cellular3g
            | Network::Cellular4g
            | Network::Cellular5g
    )
}
