//! Bytes by source and network, summed over the days of a run.

use unjank_protocol::Traffic;

/// The traffic of one source on one kind of network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    pub source: String,
    pub network: &'static str,
    pub tx_bytes: u64,
    pub rx_bytes: u64,
    pub requests: u64,
    /// Requests that got no response.
    pub failed_requests: u64,
}

pub(super) fn add(all: &mut Vec<Bytes>, traffic: &Traffic<'_>) {
    let (source, network) = (traffic.source.as_str(), traffic.network.as_str());
    let place = all
        .iter()
        .position(|one| one.source == source && one.network == network);
    let place = place.unwrap_or_else(|| {
        all.push(Bytes {
            source: source.to_owned(),
            network,
            ..Bytes::default()
        });
        all.len() - 1
    });
    let one = &mut all[place];
    one.tx_bytes = one.tx_bytes.saturating_add(traffic.tx_bytes);
    one.rx_bytes = one.rx_bytes.saturating_add(traffic.rx_bytes);
    one.requests = one.requests.saturating_add(traffic.requests);
    one.failed_requests = one.failed_requests.saturating_add(traffic.failed_requests);
}

/// Returns the traffic, largest first.
pub(super) fn sorted(mut all: Vec<Bytes>) -> Vec<Bytes> {
    let weight = |one: &Bytes| one.tx_bytes.saturating_add(one.rx_bytes);
    all.sort_by(|one, other| {
        weight(other)
            .cmp(&weight(one))
            .then_with(|| (&one.source, one.network).cmp(&(&other.source, other.network)))
    });
    all
}
