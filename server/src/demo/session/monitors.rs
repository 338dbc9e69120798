//! Simulates monitors, traffic, and the SDK's own overhead and losses.

use unjank_protocol::{
    Attributes, Day, Dropped, Metric, SdkHealth, Signal, Text, Timestamp, Traffic,
};
use unjank_random::whole;

use super::{Session, Visit, micros};

/// Sources of traffic, with the usual bytes received, bytes sent, and requests per session.
const SOURCES: &[(&str, f64, f64, f64)] = &[
    ("api", 420_000.0, 95_000.0, 46.0),
    ("cdn", 6_200_000.0, 60_000.0, 74.0),
    ("web", 900_000.0, 40_000.0, 9.0),
];
const MEGABYTE: f64 = 1_048_576.0;

impl Session<'_> {
    pub(super) fn sample(&mut self, visit: &Visit) {
        let points = (visit.length / 40_000_000).clamp(1, 4);
        for number in 1..=points {
            let at = visit.at + visit.length * number / (points + 1);
            let minutes = self.uptime_ms(at) as f64 / 60_000.0;
            let leaked = self.leaks_on(visit.page) * minutes.min(60.0);
            let memory = visit.page.memory_mb * MEGABYTE;
            let memory = self.random.log_normal(memory, 0.09) + leaked + minutes.min(20.0) * 0.2e6;
            self.metric("memory_used_bytes", memory.round(), visit, at);
            let cpu = visit.page.cpu_percent * self.slowness().sqrt();
            let cpu = self.random.log_normal(cpu, 0.35).min(100.0);
            self.metric("cpu_percent", tenths(cpu), visit, at);
            let hz = f64::from(self.install.model.refresh_hz);
            let worse = if self.blocks_checkout(visit.page) {
                2.1
            } else {
                1.0
            };
            let lost = self
                .random
                .log_normal(visit.page.slow_share * worse * self.slowness(), 0.4);
            self.metric("fps", tenths(hz * (1.0 - lost.min(0.8))), visit, at);
        }
        if self.random.chance(0.3) {
            let at = self.moment(visit);
            let charge = 8.0 + self.random.unit() * 90.0;
            self.metric("battery", charge.round(), visit, at);
        }
    }

    fn metric(&mut self, name: &'static str, value: f64, visit: &Visit, at: i64) {
        let metric = Metric {
            name: Text::from(name),
            time: self.time(at),
            value,
            min: None,
            max: None,
            count: None,
            page: Text::from(visit.page.name),
            uptime_ms: self.uptime_ms(at),
            network: self.network,
            attributes: Attributes::default(),
            sample_rate: 1.0,
        };
        self.batch.metrics.push(metric);
    }

    /// Adds the data that is only known at the end of the session.
    pub(super) fn finish(&mut self, ended: i64) {
        // The calendar day in the user's time zone.
        let here = self
            .time(ended)
            .shifted(self.install.hours_ahead * 3_600_000_000);
        let day = Day::containing(Timestamp::from_micros(here.as_micros()));
        for (source, received, sent, requests) in SOURCES {
            if *source == "web" && !self.random.chance(0.35) {
                continue;
            }
            let much = self.install.appetite;
            let requests = whole(self.random.log_normal(requests * much.sqrt(), 0.4));
            let traffic = Traffic {
                day,
                source: Text::from(*source),
                network: self.network,
                tx_bytes: whole(self.random.log_normal(sent * much, 0.4)),
                rx_bytes: whole(self.random.log_normal(received * much, 0.5)),
                requests,
                failed_requests: whole(
                    requests as f64 * 0.012 * self.network_slowness() * self.random.unit() * 2.0,
                ),
            };
            self.batch.traffic.push(traffic);
        }
        if self.random.chance(0.6) {
            self.batch.sdk_health = Some(self.health());
        }
    }

    fn health(&mut self) -> SdkHealth<'static> {
        let mut dropped = Vec::new();
        if self.random.chance(0.06) {
            dropped.push(Dropped {
                signal: Signal::Spans,
                reason: Text::from("queue_full"),
                count: self.random.between(3, 240),
            });
        }
        if self.random.chance(0.04) {
            dropped.push(Dropped {
                signal: Signal::Metrics,
                reason: Text::from("rate_limited"),
                count: self.random.between(1, 60),
            });
        }
        if self.random.chance(0.01) {
            dropped.push(Dropped {
                signal: Signal::Janks,
                reason: Text::from("refused"),
                count: 1,
            });
        }
        let events = self.batch.events() as f64;
        SdkHealth {
            dropped,
            overhead_us: whole(self.random.log_normal(events * 34.0 * self.slowness(), 0.3)),
            queue_bytes: whole(self.random.log_normal(9_000.0, 1.0)),
            upload_bytes: whole(self.random.log_normal(events * 62.0, 0.2)),
        }
    }
}

fn tenths(value: f64) -> f64 {
    micros(value * 10.0) as f64 / 10.0
}
