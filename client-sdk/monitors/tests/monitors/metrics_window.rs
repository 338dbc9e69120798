//! Samples of monitors.

use std::collections::BTreeMap;

use proptest::prelude::*;
use unjank_monitors::{MetricWindows, Scene, Series, Uptime};
use unjank_protocol::config::{Document, Monitor};

fn at(millis: u64) -> Uptime {
    Uptime::from_millis(millis)
}

fn windows() -> MetricWindows {
    let cpu = Monitor { interval_ms: 1_000 };
    MetricWindows::new(
        &BTreeMap::from([("cpu".to_owned(), cpu)]),
        Scene::new("Feed"),
    )
}

#[test]
fn a_single_sample_is_sent_unchanged_and_several_are_aggregated() {
    let mut windows = windows();
    assert_eq!(windows.sample("cpu", "cpu_percent", 10.0, at(100)), None);
    let one = windows
        .sample("cpu", "cpu_percent", 20.0, at(1_100))
        .unwrap();
    assert_eq!(
        (one.value, one.min, one.max, one.count, one.uptime_ms),
        (10.0, None, None, None, 100)
    );
    assert_eq!(windows.sample("cpu", "cpu_percent", 40.0, at(1_600)), None);
    let several = windows.set_scene(at(1_700), Scene::new("Cart"));
    assert_eq!(
        (several[0].value, several[0].min, several[0].max),
        (30.0, Some(20.0), Some(40.0))
    );
    assert_eq!(
        (several[0].count, &*several[0].page, several[0].uptime_ms),
        (Some(2), "Feed", 1_700)
    );
    assert_eq!(windows.flush(at(2_000)), []);
}

#[test]
fn samples_of_a_monitor_that_is_off_are_ignored() {
    let mut windows = windows();
    assert_eq!(windows.sample("fps", "fps", 60.0, at(0)), None);
    assert_eq!(windows.sample("cpu", "cpu_percent", 1.0, at(0)), None);
    windows.set_config(&BTreeMap::new());
    assert_eq!(windows.flush(at(10)), []);
    assert_eq!(
        windows.take_dropped(),
        0,
        "ignored samples should not be counted"
    );
}

#[test]
fn samples_that_are_not_finite_or_do_not_fit_are_counted() {
    let mut windows = windows();
    for value in [f64::NAN, f64::INFINITY] {
        assert_eq!(windows.sample("cpu", "cpu_percent", value, at(0)), None);
    }
    for number in 0..70 {
        assert_eq!(windows.sample("cpu", &number.to_string(), 1.0, at(0)), None);
    }
    assert_eq!(
        (windows.flush(at(1)).len(), windows.take_dropped()),
        (64, 8)
    );
}

proptest! {
    #[test]
    fn no_sample_is_lost_and_the_value_is_the_mean(samples in prop::collection::vec((-1e308_f64..1e308, 0_u64..700), 1..100)) {
        let mut windows = windows();
        let mut now = 0;
        let mut events = Vec::new();
        for (value, pause) in &samples {
            now += pause;
            events.extend(windows.sample("cpu", "m", *value, at(now)));
        }
        events.extend(windows.flush(at(now)));
        prop_assert_eq!(events.iter().map(|event| event.count.unwrap_or(1)).sum::<u64>(), samples.len() as u64);
        let mut values = samples.iter().map(|(value, _)| *value);
        for event in &events {
            let count = event.count.unwrap_or(1);
            let own: Vec<f64> = values.by_ref().take(usize::try_from(count).unwrap()).collect();
            let mean: f64 = own.iter().map(|value| value / own.len() as f64).sum();
            let largest = own.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
            prop_assert!((event.value - mean).abs() <= largest * 1e-9, "{} is not {mean}", event.value);
            prop_assert!(event.min.is_none_or(|min| min <= event.value) && event.max.is_none_or(|max| event.value <= max));
        }
    }
}

#[test]
fn samples_with_different_attributes_are_aggregated_apart() {
    let mut metrics = MetricWindows::new(&Document::default().monitors, Scene::new("Feed"));
    let mut sample = |attributes: &[(&str, &str)], value: f64, now: u64| {
        let series = Series {
            monitor: "memory",
            metric: "cache_bytes",
            attributes,
        };
        assert!(
            metrics
                .sample_of(series, value, Uptime::from_millis(now))
                .is_none()
        );
    };
    sample(&[("cache", "images"), ("tier", "1")], 10.0, 0);
    sample(&[("tier", "1"), ("cache", "images")], 30.0, 100);
    sample(&[("cache", "texts")], 7.0, 200);
    sample(&[], 5.0, 300);
    let events = metrics.poll(Uptime::from_millis(5_300));
    let read: Vec<_> = events
        .iter()
        .map(|event| {
            let names = event.attributes.0.iter();
            let names: Vec<_> = names
                .map(|(name, value)| format!("{}={}", &**name, &**value))
                .collect();
            (names.join(" "), event.value, event.count)
        })
        .collect();
    let expected = [
        ("cache=images tier=1".to_owned(), 20.0, Some(2)),
        ("cache=texts".to_owned(), 7.0, None),
        (String::new(), 5.0, None),
    ];
    assert_eq!(read, expected);
}
