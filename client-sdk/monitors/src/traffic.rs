//! Bytes by local natural day, source and network, handed out for upload exactly once.
//!
//! # Source
//! The source is the first entry of `traffic.sources` with a glob that matches the host. A response of another host has the source
//! `web` if its type is one of `web_mime_types`. Everything else is `other`.
//!
//! # Day
//! The day on the device's own calendar when the request is counted. Whatever happens to the clock or the time zone, a request is
//! counted once, on the day that the device showed at that time. A day may get several rows, which add up.
//!
//! # Exactly once
//! 1. [`take_deltas`](TrafficMeter::take_deltas) moves the counts under a token, the `batch_id` of the batch that will carry
//!    them.
//! 2. The caller keeps the bytes from [`save`](TrafficMeter::save) on disk, queues the batch, calls
//!    [`confirm`](TrafficMeter::confirm) and saves again. If the batch was not queued, it calls
//!    [`put_back`](TrafficMeter::put_back).
//!
//! After a restart, [`outstanding`](TrafficMeter::outstanding) returns the tokens that are neither confirmed nor put back. If the
//! batch of a token is still queued, confirm it. Otherwise it is unknown whether the batch was already sent, so take the rows
//! again **under the same token** and queue them again. The rows are the same, and the server remembers a `batch_id` for seven
//! days, so they count once in either case. Put a token back only if its batch certainly never left the device.
//!
//! A crash loses only what was counted since the last save, and counts nothing twice.
//!
//! # Bounds
//! 256 waiting rows; further sources are counted as `other`, for which 64 more rows are kept. 16 days; the oldest is dropped,
//! which the server would reject anyway. 4 outstanding tokens; while there are that many, nothing is taken. The sources of 256
//! hosts are cached; more only cost time. [`take_dropped`](TrafficMeter::take_dropped) counts dropped requests.

mod rows;
mod sources;
mod state;

use unjank_protocol::{Day, Network, Timestamp, Traffic, config};

use self::rows::{Amounts, Rows};
use self::sources::Sources;
pub use self::state::StateError;

const OUTSTANDING: usize = 4;

/// One request, with or without a response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfer<'a> {
    /// The host of the request, without a port.
    pub host: &'a str,
    /// The `Content-Type` of the response, which may have parameters; empty if there is none.
    pub mime_type: &'a str,
    /// The network that carried the request.
    pub network: Network,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Whether there was a response, of any status. A request without one counts as failed, and still cost the user bytes.
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
/// assert_eq!(meter.take_deltas("batch-2"), [], "handed out twice");
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
    /// Creates a meter for a new install.
    #[must_use]
    pub fn new(config: &config::Traffic) -> Self {
        Self {
            sources: Sources::new(config),
            open: Rows::default(),
            taken: Vec::new(),
            dropped: 0,
        }
    }

    /// Restores a meter from what [`save`](Self::save) returned.
    ///
    /// # Errors
    /// If the bytes are damaged or of a newer version. Start with a new meter then.
    pub fn restore(config: &config::Traffic, saved: &[u8]) -> Result<Self, StateError> {
        let mut meter = Self::new(config);
        meter.take_up(saved)?;
        Ok(meter)
    }

    /// Adds what [`save`](Self::save) returned to what this meter has counted since.
    ///
    /// # Errors
    /// If the bytes are damaged or of a newer version. The meter does not change then.
    pub fn take_up(&mut self, saved: &[u8]) -> Result<(), StateError> {
        let (open, taken) = state::read(saved)?;
        for row in &open {
            self.add(row);
        }
        self.taken.extend(taken);
        Ok(())
    }

    /// Returns everything that is counted and not confirmed, as versioned JSON, to be kept across restarts.
    #[must_use]
    pub fn save(&self) -> Vec<u8> {
        state::write(self.open.events(), &self.taken)
    }

    /// Sets the sources from the next request on. Earlier counts keep their source.
    pub fn set_config(&mut self, config: &config::Traffic) {
        self.sources = Sources::new(config);
    }

    /// Counts a request at the wall time `now`. Local time is `utc_offset_s` seconds ahead of UTC.
    pub fn count(&mut self, transfer: &Transfer<'_>, now: Timestamp, utc_offset_s: i32) {
        let local = now.shifted(i64::from(utc_offset_s).saturating_mul(1_000_000));
        let source = self.sources.entry(transfer.host, transfer.mime_type);
        let amounts = Amounts {
            tx_bytes: transfer.tx_bytes,
            rx_bytes: transfer.rx_bytes,
            requests: 1,
            failed_requests: u64::from(!transfer.answered),
        };
        let lost = self
            .open
            .add(Day::containing(local), transfer.network, &source, amounts);
        self.dropped = self.dropped.saturating_add(lost);
    }

    /// Takes what was counted since the last call, to be sent in the batch `token`. Empty if there is nothing, or if four batches
    /// are outstanding. An outstanding token gets the same rows again.
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

    /// Forgets the rows of a batch that is durable elsewhere. An unknown token does nothing.
    pub fn confirm(&mut self, token: &str) {
        self.taken.retain(|(taken, _)| taken != token);
    }

    /// Returns the rows of a batch to the counts, because it never left the device and never will. An unknown token does nothing.
    pub fn put_back(&mut self, token: &str) {
        let Some(position) = self.taken.iter().position(|(taken, _)| taken == token) else {
            return;
        };
        let (_, rows) = self.taken.remove(position);
        for row in &rows {
            self.add(row);
        }
    }

    /// Returns the tokens that are neither confirmed nor put back, oldest first.
    pub fn outstanding(&self) -> impl Iterator<Item = &str> {
        self.taken.iter().map(|(token, _)| token.as_str())
    }

    /// Returns the number of requests dropped since the last call.
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
