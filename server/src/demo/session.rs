//! Simulates one session of the app: the pages that the user visits, and the resulting batch.

mod drawing;
mod janks;
mod loading;
mod monitors;
mod spans;

use unjank_protocol::{Batch, Network, Timestamp};
use unjank_random::{Dice, Random, whole};

use super::pages::{CART, CHECKOUT, FEED, LOGIN, PAGES, PRODUCT, Page, SEARCH};
use super::population::{Install, network_slowness};
use super::stacks::Stack;
use super::versions::Version;

/// A session that is being simulated.
pub(super) struct Session<'p> {
    install: &'p Install,
    version: &'static Version,
    stacks: &'p [Stack],
    network: Network,
    random: Random,
    begin: i64,
    batch: Batch<'static>,
}

/// A visit to a page. Times are in microseconds.
struct Visit {
    page: &'static Page,
    at: i64,
    length: i64,
    first: bool,
}

/// The batch of a session, and the time at which the session ended.
pub(super) struct SimulatedSession {
    pub(super) ended: i64,
    pub(super) batch: Batch<'static>,
}

/// Probability of a long session, for example to compare prices.
const LONG_USE: f64 = 0.1;

impl<'p> Session<'p> {
    /// `gone` is the elapsed share of the month.
    pub(super) fn new(
        install: &'p Install,
        stacks: &'p [Stack],
        (begin, gone): (i64, f64),
        mut random: Random,
    ) -> Self {
        let version = install.version(gone);
        Self {
            network: install.network(&mut random),
            version,
            install,
            stacks,
            begin,
            batch: Batch {
                batch_id: random.uuid(),
                resource: install.resource(version),
                session_id: random.uuid(),
                ..Batch::default()
            },
            random,
        }
    }

    pub(super) fn simulate(mut self) -> SimulatedSession {
        let mut at = self.begin + self.start_of_the_app();
        let stretch = if self.random.chance(LONG_USE) {
            9.0
        } else {
            1.0
        };
        let mut page = if self.random.chance(0.08) {
            LOGIN
        } else {
            FEED
        };
        let mut seen = 0_u32;
        for _ in 0..self.random.between(3, 8) {
            let Some(there) = PAGES.get(page) else { break };
            let seconds = self
                .random
                .log_normal(there.seconds * stretch, 0.5)
                .min(1_500.0);
            let visit = Visit {
                page: there,
                at,
                length: micros(seconds * 1e6),
                first: seen & (1 << page) == 0,
            };
            self.stay(&visit);
            at += visit.length;
            seen |= 1 << page;
            page = self.next(page);
        }
        self.finish(at);
        SimulatedSession {
            ended: at,
            batch: self.batch,
        }
    }

    fn stay(&mut self, visit: &Visit) {
        self.load(visit);
        self.draw(visit);
        self.redraw(visit);
        self.sample(visit);
        self.stall(visit);
        for operation in visit.page.operations {
            if self.random.chance(0.75) {
                self.trace(*operation, visit);
            }
        }
    }

    fn next(&mut self, page: usize) -> usize {
        let likely = match page {
            LOGIN => Some((FEED, 0.9)),
            PRODUCT => Some((CART, 0.3)),
            CART => Some((CHECKOUT, 0.6)),
            SEARCH => Some((PRODUCT, 0.6)),
            _ => None,
        };
        match likely {
            Some((page, chance)) if self.random.chance(chance) => page,
            _ => Dice::new(PAGES.iter().map(|page| page.weight)).roll(&mut self.random),
        }
    }

    /// Returns a time as the device reports it, by its own clock.
    fn time(&self, at: i64) -> Timestamp {
        Timestamp::from_micros(at + self.install.clock_ahead_us)
    }

    fn uptime_ms(&self, at: i64) -> u64 {
        u64::try_from((at - self.begin) / 1_000).unwrap_or_default()
    }

    /// Returns the factor by which processing takes longer on this device.
    fn slowness(&self) -> f64 {
        self.install.slowness()
    }

    fn network_slowness(&self) -> f64 {
        network_slowness(self.network)
    }

    /// Returns a random time during a visit.
    fn moment(&mut self, visit: &Visit) -> i64 {
        visit.at + micros(self.random.unit() * visit.length as f64)
    }

    fn blocks_checkout(&self, page: &Page) -> bool {
        self.version.blocks_checkout(self.install.is_ios())
            && PAGES
                .get(CHECKOUT)
                .is_some_and(|checkout| checkout.name == page.name)
    }

    fn leaks_on(&self, page: &Page) -> f64 {
        let leaking = PAGES
            .get(PRODUCT)
            .is_some_and(|product| product.name == page.name);
        if leaking {
            self.version.leak_per_minute
        } else {
            0.0
        }
    }
}

/// Rounds a float to one of the protocol's integers.
fn micros(value: f64) -> i64 {
    i64::try_from(whole(value)).unwrap_or(i64::MAX)
}

fn small(value: f64) -> u32 {
    u32::try_from(whole(value)).unwrap_or(u32::MAX)
}
