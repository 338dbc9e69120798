//! Bytes by local natural day, source and network, handed out for upload exactly once.
//!
//! # Source
//! The first entry of `traffic.sources` with a glob that matches the host. An answer of one of `web_mime_types` is `web`,
//! whichever host it came from: a host that serves an API and pages is told apart by what it answers (Hertz). What
//! nothing claims is `other`.
//!
//! # Day
//! The day on the device's own calendar when the request is counted. Whatever happens to the clock or the time zone, a
//! request is counted once, on the day that the device then believed in; a day may get rows twice, and they add up.
//!
//! # Exactly once
//! 1. [`take_deltas`](TrafficMeter::take_deltas) moves what was counted under a token, the `batch_id` of the batch that
//!    is to carry it.
//! 2. The caller keeps [`save`](TrafficMeter::save)d bytes on disk, then queues the batch, then
//!    [`confirm`](TrafficMeter::confirm)s and saves again. A batch that was not queued is
//!    [`put_back`](TrafficMeter::put_back).
//!
//! After a restart [`outstanding`](TrafficMeter::outstanding) names the tokens that are neither confirmed nor put back.
//! For each: if the batch is still queued, confirm; otherwise nobody knows whether it was sent already, so take it again
//! **under the same token** and queue it again. The rows are the same, and the server knows a `batch_id` for seven days:
//! counted once, either way. Putting back is only right when the batch surely never left the device.
//!
//! What a crash loses: what was counted since the last save, never more. What it counts twice: nothing.
//!
//! # Bounds
//! 256 rows wait; a further source is counted as `other`, for which 64 more rows are kept. 16 days; the oldest goes, which
//! a server would refuse anyway. 4 tokens outstanding; while there are that many, nothing is taken. 256 hosts are
//! remembered with their source; more only cost time. Requests that went are counted by
//! [`take_dropped`](TrafficMeter::take_dropped).

mod rows;
mod sources;
mod state;

use unjank_protocol::{Day, Network, Timestamp, Traffic, config};

use self::rows::{Amounts, Rows};
use self::sources::Sources;
pub use self::state::StateError;

const OUTSTANDING: usize = 4;

/// One request, answered or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer<'a> {
    /// The host it went to, without port.
    pub host: &'a str,
    /// The answer's `Content-Type`, parameters allowed; empty without one.
    pub mime_type: &'a str,
    /// The network it took.
    pub network: Network,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Whether it was answered, with whatever status. A request that was not is a failed one: it cost the user bytes.
    pub answered: bool,
}

/// Counts every request of the app.
///
/// ```
/// use unjank_monitors::{TrafficMeter, Transfer};
/// use unjank_protocol::{Network, Timestamp, config};
///
/// let config = config::Traffic {
///     sources: vec![config::TrafficSource { source: "api".into(), hosts: vec!["*.example.com".into()] }],
///     ..config::Traffic::default()
/// };
/// let mut meter = TrafficMeter::new(&config);
/// let transfer = Transfer { host: "api.example.com", network: Network::Wifi, tx_bytes: 300, rx_bytes: 2_000, answered: true,
///     ..Transfer::default() };
/// let noon = Timestamp::parse("2026-11-20T12:00:00Z").expect("a time");
/// meter.count(&transfer, noon, 3_600);
/// let rows = meter.take_deltas("batch-1");
/// assert_eq!((rows[0].source.as_str(), rows[0].rx_bytes), ("api", 2_000));
/// assert_eq!(meter.take_deltas("batch-2"), [], "handed out once");
/// meter.confirm("batch-1");
/// ```
#[derive(Debug)]
pub struct TrafficMeter {
    sources: Sources,
    open: Rows,
    taken: Vec<(String, Vec<Traffic<'static>>)>,
    dropped: u64,
}

impl TrafficMeter {
    /// A meter of a new install.
    #[must_use]
    pub fn new(config: &config::Traffic) -> Self {
        Self {
            sources: Sources::new(config),
            open: Rows::default(),
            taken: Vec::new(),
            dropped: 0,
        }
    }

    /// Goes on from what [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// When the bytes are damaged or of a newer version: start anew then.
    pub fn restore(config: &config::Traffic, saved: &[u8]) -> Result<Self, StateError> {
        let mut meter = Self::new(config);
        meter.take_up(saved)?;
        Ok(meter)
    }

    /// Takes up what [`save`](Self::save) wrote, beside what was counted here meanwhile.
    ///
    /// # Errors
    /// When the bytes are damaged or of a newer version: nothing changes then.
    pub fn take_up(&mut self, saved: &[u8]) -> Result<(), StateError> {
        let (open, taken) = state::read(saved)?;
        for row in &open {
            self.add(row);
        }
        self.taken.extend(taken);
        Ok(())
    }

    /// All that is counted and not confirmed, as versioned JSON; to be kept across restarts.
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        state::write(self.open.events(), &self.taken)
    }

    /// Other sources from the next request on. What was counted keeps its source.
    pub fn set_config(&mut self, config: &config::Traffic) {
        self.sources = Sources::new(config);
    }

    /// Counts a request at the wall time `now`, where local time is `utc_offset_s` seconds ahead of UTC.
    pub fn count(&mut self, transfer: &Transfer<'_>, now: Timestamp, utc_offset_s: i32) {
        let local = now.shifted(i64::from(utc_offset_s).saturating_mul(1_000_000));
        let source = self.sources.of(transfer.host, transfer.mime_type);
        let amounts = Amounts {
            tx_bytes: transfer.tx_bytes,
            rx_bytes: transfer.rx_bytes,
            requests: 1,
            failed_requests: u64::from(!transfer.answered),
        };
        let lost = self
            .open
            .add(Day::of(local), transfer.network, &source, amounts);
        self.dropped = self.dropped.saturating_add(lost);
    }

    /// What was counted since the last time, to be sent in the batch `token`. Empty when there is nothing or four batches
    /// are outstanding. A token that is outstanding gets the same rows again.
    #[must_use]
    pub fn take_deltas(&mut self, token: &str) -> Vec<Traffic<'static>> {
        if let Some((_, rows)) = self.taken.iter().find(|(taken, _)| taken == token) {
            return rows.clone();
        }
        if self.taken.len() >= OUTSTANDING || self.open.is_empty() {
            return Vec::new();
        }
        let rows = std::mem::take(&mut self.open).events();
        self.taken.push((token.to_owned(), rows.clone()));
        rows
    }

    /// The batch is durable elsewhere: its rows are forgotten. An unknown token does nothing.
    pub fn confirm(&mut self, token: &str) {
        self.taken.retain(|(taken, _)| taken != token);
    }

    /// The batch never left the device and never will: its rows count as not taken. An unknown token does nothing.
    pub fn put_back(&mut self, token: &str) {
        let Some(position) = self.taken.iter().position(|(taken, _)| taken == token) else {
            return;
        };
        let (_, rows) = self.taken.remove(position);
        for row in &rows {
            self.add(row);
        }
    }

    /// Tokens that were taken and are neither confirmed nor put back, oldest first.
    pub fn outstanding(&self) -> impl Iterator<Item = &str> {
        self.taken.iter().map(|(token, _)| token.as_str())
    }

    /// Requests that found no room, since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }

    fn add(&mut self, row: &Traffic<'_>) {
        let amounts = Amounts {
            tx_bytes: row.tx_bytes,
            rx_bytes: row.rx_bytes,
            requests: row.requests,
            failed_requests: row.failed_requests,
        };
        let source = row.source.as_str().into();
        let lost = self.open.add(row.day, row.network, &source, amounts);
        self.dropped = self.dropped.saturating_add(lost);
    }
}
