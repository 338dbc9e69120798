//! Traffic: sources, days, bounds, and exactly-once delivery to a server that remembers every batch.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use unjank_monitors::{StateError, TrafficMeter, Transfer};
use unjank_protocol::{Network, Timestamp, Traffic, config};

fn config() -> config::Traffic {
    let sources = [
        ("api", "*.meituan.com"),
        ("cdn", "*.meituan.net"),
        ("maps", "*"),
    ];
    config::Traffic {
        sources: sources
            .map(|(source, host)| config::TrafficSource {
                source: source.to_owned(),
                hosts: vec![host.to_owned()],
            })
            .into(),
        ..config::Traffic::default()
    }
}

fn time(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

fn to<'a>(host: &'a str, mime_type: &'a str) -> Transfer<'a> {
    Transfer {
        host,
        mime_type,
        network: Network::Wifi,
        tx_bytes: 100,
        rx_bytes: 1_000,
        answered: true,
    }
}

#[test]
fn a_number_of_bytes_that_cannot_be_true_is_left_out() {
    let mut meter = TrafficMeter::new(&config());
    let unknown = Transfer {
        tx_bytes: u64::MAX,
        ..to("p0.meituan.net", "")
    };
    for transfer in [unknown, to("p0.meituan.net", "")] {
        meter.count(&transfer, Timestamp::default(), 0);
    }
    let rows = meter.take_deltas("t");
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].tx_bytes, rows[0].rx_bytes, rows[0].requests),
        (100, 2_000, 2)
    );
}

#[test]
fn the_source_is_that_of_the_host_then_that_of_the_type() {
    let mut config = config();
    config.sources.pop();
    for (host, mime_type, source) in [
        ("waimai.meituan.com", "application/json", "api"),
        ("WAIMAI.meituan.COM", "", "api"),
        // A host with a source keeps it, whatever it serves.
        ("waimai.meituan.com", "text/html; charset=utf-8", "api"),
        ("p0.meituan.net", "Text/CSS", "cdn"),
        ("news.example.org", "Text/HTML; charset=utf-8", "web"),
        ("tile.example.org", "image/png", "other"),
        ("tile.example.org", "", "other"),
    ] {
        let mut meter = TrafficMeter::new(&config);
        // The second request finds the host in the cache.
        for _ in 0..2 {
            meter.count(&to(host, mime_type), Timestamp::default(), 0);
        }
        let rows = meter.take_deltas("t");
        let sources: Vec<_> = rows.iter().map(|row| &*row.source).collect();
        assert_eq!(sources, [source], "{host} {mime_type}");
    }
}

#[test]
fn the_first_source_that_matches_a_host_counts_its_requests() {
    let mut meter = TrafficMeter::new(&config());
    for (host, mime_type) in [
        ("p0.meituan.net", "image/webp"),
        ("tile.example.org", "image/png"),
        ("tile.example.org", "text/html"),
    ] {
        meter.count(&to(host, mime_type), Timestamp::default(), 0);
    }
    let rows = meter.take_deltas("t");
    let mut sources: Vec<_> = rows
        .iter()
        .map(|row| (&*row.source, row.requests))
        .collect();
    sources.sort_unstable();
    assert_eq!(sources, [("cdn", 1), ("maps", 2)]);
}

#[test]
fn the_day_is_the_devices_own() {
    let mut meter = TrafficMeter::new(&config());
    let transfer = to("waimai.meituan.com", "");
    // Shanghai around midnight, then a flight to New York, then a clock set back by a year.
    meter.count(&transfer, time("2026-11-20T15:59:59Z"), 8 * 3_600);
    meter.count(&transfer, time("2026-11-20T16:00:00Z"), 8 * 3_600);
    meter.count(&transfer, time("2026-11-21T03:00:00Z"), -5 * 3_600);
    meter.count(&transfer, time("2025-11-20T12:00:00Z"), 0);
    let rows = meter.take_deltas("t");
    let days: Vec<_> = rows
        .iter()
        .map(|row| (row.day.to_string(), row.requests))
        .collect();
    let expected = [("2025-11-20", 1), ("2026-11-20", 2), ("2026-11-21", 1)];
    assert_eq!(
        days,
        expected.map(|(day, requests)| (day.to_owned(), requests))
    );
}

#[test]
fn each_network_has_a_row_of_its_own() {
    let mut meter = TrafficMeter::new(&config());
    for network in [
        Network::Wifi,
        Network::Cellular4g,
        Network::Cellular3g,
        Network::Wifi,
    ] {
        let transfer = Transfer {
            network,
            ..to("waimai.meituan.com", "")
        };
        meter.count(&transfer, time("2026-11-20T12:00:00Z"), 0);
    }
    let rows = meter.take_deltas("t");
    let mut counted: Vec<_> = rows
        .iter()
        .map(|row| (row.network.as_str(), row.requests))
        .collect();
    counted.sort_unstable();
    assert_eq!(
        counted,
        [("cellular_3g", 1), ("cellular_4g", 1), ("wifi", 2)]
    );
}

#[test]
fn a_request_without_a_response_counts_its_bytes_and_as_failed() {
    let mut meter = TrafficMeter::new(&config());
    let lost = Transfer {
        rx_bytes: 0,
        answered: false,
        ..to("waimai.meituan.com", "")
    };
    meter.count(&lost, time("2026-11-20T12:00:00Z"), 0);
    meter.count(
        &to("waimai.meituan.com", ""),
        time("2026-11-20T12:00:00Z"),
        0,
    );
    let rows = serde_json::to_value(meter.take_deltas("t")).unwrap();
    let expected = serde_json::json!([{"day": "2026-11-20", "source": "api", "network": "wifi", "tx_bytes": 200,
        "rx_bytes": 1000, "requests": 2, "failed_requests": 1}]);
    assert_eq!(rows, expected);
}

#[test]
fn excess_sources_become_other_and_the_oldest_day_is_dropped() {
    let sources = (0..100).map(|number| config::TrafficSource {
        source: format!("s{number}"),
        hosts: vec![format!("h{number}")],
    });
    let config = config::Traffic {
        sources: sources.collect(),
        ..config::Traffic::default()
    };
    let mut meter = TrafficMeter::new(&config);
    let day = |day: i64| Timestamp::from_micros(day * 86_400_000_000);
    for number in 0..300 {
        let host = format!("h{}", number % 100);
        meter.count(&to(&host, ""), day(20_000 + number / 100), 0);
    }
    assert_eq!(meter.take_dropped(), 0);
    let rows = meter.take_deltas("t");
    assert_eq!(rows.len(), 257);
    assert_eq!(
        rows.iter()
            .find(|row| &*row.source == "other")
            .unwrap()
            .requests,
        44
    );

    for number in 0..20 {
        meter.count(&to("h1", ""), day(20_000 + number), 0);
    }
    meter.count(&to("h1", ""), day(3), 0);
    assert_eq!(meter.take_dropped(), 5, "four old days and one even older");
    assert_eq!(meter.take_deltas("u").len(), 16);
}

#[test]
fn saved_bytes_have_a_version() {
    let mut meter = TrafficMeter::new(&config());
    meter.count(
        &to("waimai.meituan.com", ""),
        time("2026-11-20T12:00:00Z"),
        0,
    );
    drop(meter.take_deltas("batch-1"));
    meter.count(&to("p0.meituan.net", ""), time("2026-11-20T13:00:00Z"), 0);
    let saved = meter.save();
    // Written by version 1: every later version has to read it.
    let expected = r#"{"version":1,"open":[{"day":"2026-11-20","source":"cdn","network":"wifi","tx_bytes":100,"rx_bytes":1000,"requests":1,"failed_requests":0}],"taken":[{"token":"batch-1","rows":[{"day":"2026-11-20","source":"api","network":"wifi","tx_bytes":100,"rx_bytes":1000,"requests":1,"failed_requests":0}]}]}"#;
    assert_eq!(std::str::from_utf8(&saved).unwrap(), expected);
    let restored = TrafficMeter::restore(&config(), &saved).unwrap();
    assert_eq!(restored.save(), saved);
    assert_eq!(restored.outstanding().collect::<Vec<_>>(), ["batch-1"]);

    let error = |bytes: &[u8]| TrafficMeter::restore(&config(), bytes).unwrap_err();
    assert_eq!(error(&saved[..saved.len() - 1]), StateError::Damaged);
    assert_eq!(error(b""), StateError::Damaged);
    assert_eq!(error(br#"{"version":2,"open":7}"#), StateError::Version(2));
}

#[derive(Clone, Debug)]
enum Step {
    Count(u64, usize, i64),
    Save,
    /// Where the process dies during an upload: nowhere, before the save, before queueing, before the confirmation, or before the
    /// save after it. Or the queue rejects the batch.
    Upload(Fate),
    /// The oldest queued batch is sent, and the response may be lost.
    Send {
        answer: bool,
    },
    Crash,
}

#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
enum Fate {
    DiesTaken,
    DiesSaved,
    DiesQueued,
    DiesConfirmed,
    Lives,
    Refused,
}

/// A device: its memory, its disk, and what the server has.
struct Device {
    meter: TrafficMeter,
    disk: Vec<u8>,
    queue: BTreeMap<u64, Vec<Traffic<'static>>>,
    stored: BTreeMap<String, u64>,
    seen: BTreeSet<u64>,
    counted: u64,
    unsaved: u64,
    lost: u64,
    last_token: u64,
}

impl Device {
    fn save(&mut self) {
        self.disk = self.meter.save();
        self.unsaved = 0;
    }

    /// The process dies, restarts, and handles outstanding tokens as documented.
    fn restart(&mut self) {
        self.lost += self.unsaved;
        self.unsaved = 0;
        self.meter = TrafficMeter::restore(&config(), &self.disk).unwrap();
        let outstanding: Vec<u64> = self
            .meter
            .outstanding()
            .map(|token| token.parse().unwrap())
            .collect();
        for token in outstanding {
            let rows = self.meter.take_deltas(&token.to_string());
            self.queue.entry(token).or_insert(rows);
            self.meter.confirm(&token.to_string());
        }
        self.save();
    }

    fn upload(&mut self, fate: Fate) {
        self.last_token += 1;
        let token = self.last_token.to_string();
        let rows = self.meter.take_deltas(&token);
        if fate == Fate::DiesTaken {
            return self.restart();
        }
        self.save();
        if fate == Fate::DiesSaved {
            return self.restart();
        }
        if fate == Fate::Refused {
            self.meter.put_back(&token);
            return;
        }
        if !rows.is_empty() {
            self.queue.insert(self.last_token, rows);
        }
        if fate == Fate::DiesQueued {
            return self.restart();
        }
        self.meter.confirm(&token);
        if fate == Fate::DiesConfirmed {
            // Uploaded at once: when the process restarts, only the server knows the batch.
            self.send(true);
            return self.restart();
        }
        self.save();
    }

    fn send(&mut self, answer: bool) {
        let Some((token, rows)) = self.queue.first_key_value() else {
            return;
        };
        if self.seen.insert(*token) {
            for row in rows {
                *self.stored.entry(row.source.to_string()).or_default() += row.rx_bytes;
            }
        }
        if answer {
            self.queue.pop_first();
        }
    }
}

fn some_step() -> impl Strategy<Value = Step> {
    use Fate::{DiesConfirmed, DiesQueued, DiesSaved, DiesTaken, Lives, Refused};
    let fates = vec![
        DiesTaken,
        DiesSaved,
        DiesQueued,
        DiesConfirmed,
        Lives,
        Refused,
    ];
    prop_oneof![
        4 => (1_u64..1_000, 0_usize..3, 0_i64..4).prop_map(|(bytes, host, day)| Step::Count(bytes, host, day)),
        1 => Just(Step::Save),
        2 => prop::sample::select(fates).prop_map(Step::Upload),
        2 => any::<bool>().prop_map(|answer| Step::Send { answer }),
        1 => Just(Step::Crash),
    ]
}

proptest! {
    #[test]
    fn every_count_arrives_once_except_those_unsaved_at_a_crash(steps in prop::collection::vec(some_step(), 1..80)) {
        let meter = TrafficMeter::new(&config());
        let mut device = Device {
            disk: meter.save(), meter, queue: BTreeMap::new(), stored: BTreeMap::new(), seen: BTreeSet::new(),
            counted: 0, unsaved: 0, lost: 0, last_token: 0,
        };
        for step in steps {
            match step {
                Step::Count(bytes, host, day) => {
                    let host = ["a.meituan.com", "b.meituan.net", "c.example.org"][host];
                    let transfer = Transfer { rx_bytes: bytes, ..to(host, "") };
                    device.meter.count(&transfer, Timestamp::from_micros(day * 86_400_000_000), 0);
                    device.counted += bytes;
                    device.unsaved += bytes;
                }
                Step::Save => device.save(),
                Step::Upload(fate) => device.upload(fate),
                Step::Send { answer } => device.send(answer),
                Step::Crash => device.restart(),
            }
        }
        device.upload(Fate::Lives);
        while !device.queue.is_empty() {
            device.send(true);
        }
        prop_assert_eq!(device.stored.values().sum::<u64>() + device.lost, device.counted);
        prop_assert_eq!(device.meter.take_dropped(), 0);
    }
}
