//! Sums by day, network and source, in limited space.

use std::collections::BTreeMap;
use std::sync::Arc;

use unjank_protocol::{Day, Limits, Network, Text, Traffic};

use super::sources::OTHER;

const DAYS: usize = 16;
const ROWS: usize = 256;
const OTHER_ROWS: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amounts {
    pub(super) tx_bytes: u64,
    pub(super) rx_bytes: u64,
    pub(super) requests: u64,
    pub(super) failed_requests: u64,
}

#[derive(Debug, Default)]
pub(super) struct Rows(BTreeMap<(Day, Network, Arc<str>), Amounts>);

impl Rows {
    /// Adds amounts. Returns how many requests were dropped, because they did not fit or to make room.
    pub(super) fn add(
        &mut self,
        day: Day,
        network: Network,
        source: &Arc<str>,
        amounts: Amounts,
    ) -> u64 {
        if let Some(row) = self.0.get_mut(&(day, network, source.clone())) {
            row.add(amounts);
            return 0;
        }
        let (fits, lost) = self.make_room_for(day);
        if !fits {
            return amounts.requests;
        }
        let source = if self.0.len() < ROWS {
            source.clone()
        } else {
            Arc::from(OTHER)
        };
        let full = self.0.len() >= ROWS.saturating_add(OTHER_ROWS);
        let key = (day, network, source);
        if full && !self.0.contains_key(&key) {
            return lost.saturating_add(amounts.requests);
        }
        self.0.entry(key).or_default().add(amounts);
        lost
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn events(&self) -> Vec<Traffic<'static>> {
        let rows = self.0.iter();
        rows.map(|((day, network, source), amounts)| Traffic {
            day: *day,
            source: Text::from(source.to_string()),
            network: *network,
            tx_bytes: amounts.tx_bytes,
            rx_bytes: amounts.rx_bytes,
            requests: amounts.requests,
            failed_requests: amounts.failed_requests,
        })
        .collect()
    }

    /// Makes room for rows of a day. Returns whether they fit, and how many requests of the oldest day were dropped.
    fn make_room_for(&mut self, day: Day) -> (bool, u64) {
        let mut days: Vec<_> = self.0.keys().map(|(day, _, _)| *day).collect();
        days.dedup();
        if days.len() < DAYS || days.contains(&day) {
            return (true, 0);
        }
        let Some(oldest) = days.first().filter(|oldest| **oldest < day) else {
            return (false, 0);
        };
        let mut lost = 0_u64;
        self.0.retain(|(day, _, _), amounts| {
            let goes = day == oldest;
            lost = lost.saturating_add(if goes { amounts.requests } else { 0 });
            !goes
        });
        (true, lost)
    }
}

impl Amounts {
    fn add(&mut self, other: Self) {
        self.tx_bytes = sum(self.tx_bytes, other.tx_bytes);
        self.rx_bytes = sum(self.rx_bytes, other.rx_bytes);
        self.requests = sum(self.requests, other.requests);
        self.failed_requests = sum(self.failed_requests, other.failed_requests);
    }
}

/// Leaves out a number that is too large to be true: the server would reject the whole row.
fn sum(all: u64, more: u64) -> u64 {
    if more > Limits::LARGEST_NUMBER {
        return all;
    }
    all.saturating_add(more).min(Limits::LARGEST_NUMBER)
}
