//! Simulates app starts and page loads.

use unjank_protocol::{
    AppStart, AppStartKind, LaunchKind, PageLoad, PageOutcome, PageRequest, Phase, Text,
};

use super::{Session, Visit, micros, small};

/// Phases of a cold start, with their shares of its duration.
const PHASES: &[(&str, f64)] = &[
    ("process", 0.16),
    ("application", 0.34),
    ("activity", 0.22),
    ("first_frame", 0.28),
];

impl Session<'_> {
    /// Adds the app start. Returns its duration in microseconds.
    pub(super) fn start_of_the_app(&mut self) -> i64 {
        let (kind, median) = match self.random.unit() {
            share if share < 0.45 => (AppStartKind::Cold, 920.0 * self.version.cold_start),
            share if share < 0.8 => (AppStartKind::Warm, 390.0),
            _ => (AppStartKind::Hot, 130.0),
        };
        let ms = self.random.log_normal(median * self.slowness(), 0.22);
        let skipped = if kind == AppStartKind::Cold { 0 } else { 2 };
        let parts = PHASES.get(skipped..).unwrap_or_default();
        let whole: f64 = parts.iter().map(|(_, share)| share).sum();
        let phases = parts.iter().map(|(name, share)| Phase {
            name: Text::from(*name),
            duration_ms: small(ms * share / whole),
        });
        let start = AppStart {
            kind,
            start: self.time(self.begin),
            duration_ms: micros(ms),
            page: Text::from("FeedActivity"),
            network: self.network,
            phases: phases.collect(),
            sample_rate: 1.0,
        };
        self.batch.app_starts.push(start);
        micros(ms * 1_000.0)
    }

    pub(super) fn load(&mut self, visit: &Visit) {
        let page = visit.page;
        let launch = if visit.first { 1.0 } else { 0.6 };
        let slowness = self.slowness() * launch;
        let t1 = self.random.log_normal(page.t1_ms * slowness, 0.25);
        let worse = if self.blocks_checkout(page) { 1.7 } else { 1.0 };
        let t3 = self.random.log_normal(page.t3_ms * worse * slowness, 0.25);
        let begin = t1 * 0.4;
        let requests = self.requests(visit, begin);
        let t2 = requests
            .iter()
            .map(|request| f64::from(request.offset_ms) + f64::from(request.duration_ms) - begin)
            .fold(0.0, f64::max);
        let outcome = match self.random.unit() {
            share if share < 0.93 => PageOutcome::Completed,
            share if share < 0.98 => PageOutcome::Aborted,
            _ => PageOutcome::Failed,
        };
        let completed = outcome == PageOutcome::Completed;
        let load = PageLoad {
            page: Text::from(page.name),
            start: self.time(visit.at),
            t1_ms: Some(micros(t1)),
            t2_ms: (outcome != PageOutcome::Aborted).then_some(micros(t2)),
            t3_ms: completed.then_some(micros(t3)),
            total_ms: micros(t1.max(begin + t2) + if completed { t3 } else { 0.0 }),
            launch: if visit.first {
                LaunchKind::Cold
            } else {
                LaunchKind::Warm
            },
            outcome,
            network: self.network,
            uptime_ms: self.uptime_ms(visit.at),
            requests,
            sample_rate: 1.0,
        };
        self.batch.page_loads.push(load);
    }

    fn requests(&mut self, visit: &Visit, begin: f64) -> Vec<PageRequest<'static>> {
        let mut offset = begin;
        let mut requests = Vec::with_capacity(visit.page.requests.len());
        for (path, median) in visit.page.requests {
            let took = self
                .random
                .log_normal(median * self.network_slowness(), 0.4);
            requests.push(PageRequest {
                path: Text::from(*path),
                offset_ms: i32::try_from(micros(offset)).unwrap_or(i32::MAX),
                duration_ms: small(took),
                status: match self.random.unit() {
                    share if share < 0.975 => 200,
                    share if share < 0.985 => 404,
                    share if share < 0.993 => 503,
                    _ => 0,
                },
            });
            offset += took * 0.15;
        }
        requests
    }
}
