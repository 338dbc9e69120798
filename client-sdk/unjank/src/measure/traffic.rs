//! Traffic: bytes by natural day, source and network, summed over all requests and sent once.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use unjank_monitors::{TrafficMeter, Transfer};
use unjank_protocol::{Network, Signal, Traffic};
use uuid::Uuid;

use super::client::{self, Shared};
use crate::clock::{age_us, wall_clock};
use crate::deliver::backlog::OLDEST_US;
use crate::deliver::losses::Reason;

/// A finished request, with or without a response, as [`traffic()`] counts it.
///
/// ```
/// // A request without a response cost the user bytes as well.
/// let lost = unjank::Transferred { host: "cdn.example.com", tx_bytes: 380, ..unjank::Transferred::default() };
/// assert!(!lost.answered);
/// unjank::traffic(lost);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred<'t> {
    /// The host of the request. The remote configuration maps it to a source.
    pub host: &'t str,
    /// The MIME type of the response; empty if there was none.
    pub mime_type: &'t str,
    /// Bytes sent, including headers as far as they are known.
    pub tx_bytes: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Whether a response arrived.
    pub answered: bool,
}

/// Counts a finished request, by local day, source and network. Traffic is never sampled: sessions that send nothing else send it, too.
/// Does nothing while collection is switched off, and for hosts that an HTTP layer counts (`http::TraceLayer`). The sums are kept in
/// [`crate::Config::data_dir`], and each is sent once.
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
        #[cfg(feature = "tower")]
        if shared.measured_hosts.contains(transferred.host) {
            // An HTTP layer counts it.
            return;
        }
        count(shared, transferred);
    });
}

/// Counts a request, unless the settings leave traffic out.
pub(crate) fn count(shared: &Shared, transferred: Transferred<'_>) {
    if !shared.settings.load().counts_traffic() {
        return;
    }
    crate::live::count_request(&transferred);
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

/// Sets how far local time is ahead of UTC, in seconds; negative west of Greenwich. Traffic is summed over the user's own days.
///
/// [`crate::init`] asks the system for the offset, but the system does not report it while the process has other threads, and
/// then the offset is 0. Call this after `init`, and whenever the time zone changes. Does nothing before `init`.
///
/// ```
/// unjank::set_utc_offset(5 * 3_600 + 1_800); // India
/// ```
pub fn set_utc_offset(seconds: i32) {
    if let Some(shared) = client::installed() {
        shared.utc_offset_s.store(seconds, Ordering::Relaxed);
    }
}

/// The counts, kept on disk so that they outlive the process.
pub(crate) struct Ledger {
    file: Option<PathBuf>,
    /// The content of the file, as far as it is known. Most batches come without new traffic.
    written: Vec<u8>,
    /// The counts of an earlier process have not been read yet, so the file must not be overwritten.
    unread: bool,
}

impl Ledger {
    /// Loads the counts of an earlier process.
    pub(crate) fn open(file: Option<PathBuf>, shared: &Shared) -> Self {
        let mut ledger = Self {
            file,
            written: Vec::new(),
            unread: true,
        };
        ledger.read(shared);
        ledger
    }

    /// Loads the counts of an earlier process, if reading them failed before. Returns whether that worked now.
    pub(crate) fn read(&mut self, shared: &Shared) -> bool {
        let Some(file) = self.file.as_ref().filter(|_| self.unread) else {
            return false;
        };
        let lost = match std::fs::read(file) {
            // Counts that another program or a later version wrote cannot be used.
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

    /// Returns the batches whose rows were taken and are not known to be kept.
    pub(crate) fn outstanding(meter: &TrafficMeter) -> Vec<Uuid> {
        let tokens = meter.outstanding();
        tokens.filter_map(|token| token.parse().ok()).collect()
    }

    /// Takes the rows for a batch: the same rows for the same id, until it is confirmed. They are on disk before they are
    /// returned.
    pub(crate) fn take(&mut self, batch_id: Uuid, shared: &Shared) -> Vec<Traffic<'static>> {
        let token = batch_id.to_string();
        let mut meter = shared.meters.traffic();
        let again = meter.outstanding().any(|one| one == token);
        let rows = meter.take_deltas(&token);
        drop(meter);
        // Rows that were taken before are already on disk and may have been sent, so they stay with their batch.
        if again || rows.is_empty() || self.save(shared) {
            return rows;
        }
        // If it is not on disk that the rows were taken, a crash would send them twice.
        shared.meters.traffic().put_back(&token);
        Vec::new()
    }

    /// Forgets the rows of a batch that is now kept elsewhere.
    pub(crate) fn confirm(&mut self, batch_id: Uuid, shared: &Shared) {
        shared.meters.traffic().confirm(&batch_id.to_string());
        self.save(shared);
    }

    /// Saves the counts. Returns whether they are durable, or there is no disk. If saving fails and the process dies, the counts
    /// since the last save are lost.
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

    /// Deletes all counts.
    pub(crate) fn clear(&mut self, shared: &Shared) {
        let config = &shared.settings.load().document.traffic;
        *shared.meters.traffic() = TrafficMeter::new(config);
        self.written.clear();
        self.unread = false;
        if let Some(file) = &self.file {
            // The file may not exist.
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
    // Without this, the old file may reappear after a power failure, when its rows have already been sent.
    #[cfg(unix)]
    if let Some(folder) = file.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Returns whether the network is known to be a cellular one.
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
