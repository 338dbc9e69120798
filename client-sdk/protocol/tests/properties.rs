//! Properties that hold for every input: written values are read back unchanged, and hostile text never panics.

use proptest::prelude::*;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use unjank_protocol::{
    Attributes, Batch, Code, Day, Frame, Histogram, Jank, JankEnd, JankKind, JankStrategy, Metric,
    Network, Resource, Span, SpanEvent, SpanId, SpanKind, SpanStatus, Text, Timestamp, TraceId,
    Traffic,
};
use uuid::Uuid;

fn text() -> impl Strategy<Value = Text<'static>> {
    ".{0,20}".prop_map(Text::from)
}

/// The years that RFC 3339 can represent: 0000 to 9999.
fn timestamp() -> impl Strategy<Value = Timestamp> {
    (-62_167_219_200_000_000_i64..=253_402_300_799_999_999).prop_map(Timestamp::from_micros)
}

fn network() -> impl Strategy<Value = Network> {
    proptest::sample::select(Network::ALL)
}

fn attributes() -> impl Strategy<Value = Attributes<'static>> {
    proptest::collection::vec((text(), text()), 0..4).prop_map(Attributes)
}

prop_compose! {
    fn code()(class in text(), function in text(), file in text(), line in any::<u32>()) -> Code<'static> {
        Code { class, function, file, line }
    }
}

prop_compose! {
    fn span()(
        ids in (1..=u128::MAX, 1..=u64::MAX, proptest::option::of(1..=u64::MAX)),
        names in (text(), text(), text()),
        kinds in (proptest::sample::select(SpanKind::ALL), proptest::sample::select(SpanStatus::ALL), network()),
        start in timestamp(), duration_us in any::<i64>(), on_main_thread: bool, uptime_ms: u64,
        code in code(), attributes in attributes(),
        events in proptest::collection::vec((timestamp(), text()), 0..3),
        sample_rate in 0.0..=1.0_f64,
    ) -> Span<'static> {
        Span {
            trace_id: TraceId(ids.0), span_id: SpanId(ids.1), parent_span_id: ids.2.map(SpanId),
            name: names.0, thread: names.1, page: names.2, kind: kinds.0, status: kinds.1, network: kinds.2,
            start, duration_us, on_main_thread, uptime_ms, code, attributes,
            events: events.into_iter().map(|(time, name)| SpanEvent { time, name }).collect(),
            sample_rate,
        }
    }
}

prop_compose! {
    fn jank()(
        start in timestamp(), duration_ms: i64, page in text(), foreground: bool, stack_missing in text(),
        strategy in any::<(u32, u32, u32)>(), kind in proptest::sample::select(JankKind::ALL),
        ended in proptest::sample::select(JankEnd::ALL), network in network(),
        frames in proptest::collection::vec((text(), text(), 0..i64::MAX, any::<bool>(), proptest::option::of(any::<u64>())), 0..4),
    ) -> Jank<'static> {
        let stack = frames.into_iter().map(|(class, function, line, native, offset)| Frame { class, function, line, native, offset, ..Frame::default() });
        Jank {
            kind, page, start, duration_ms, ended, thread: Text::from("main"), foreground,
            strategy: JankStrategy { threshold_ms: strategy.0, count: strategy.1, period_ms: strategy.2 },
            uptime_ms: 1, network, stack: stack.collect(), stack_missing, samples: vec![], run_log: vec![], sample_rate: 1.0,
        }
    }
}

prop_compose! {
    fn batch()(
        ids in any::<(u128, u128, u128)>(), sent_at in proptest::option::of(timestamp()), app_id in text(), build: u64,
        spans in proptest::collection::vec(span(), 0..3), janks in proptest::collection::vec(jank(), 0..2),
        days in proptest::collection::vec((-700_000..2_900_000_i32, network(), any::<u64>()), 0..3),
        values in proptest::collection::vec((timestamp(), -1e300..1e300_f64), 0..3),
        split_from in proptest::collection::vec(any::<u128>().prop_map(Uuid::from_u128), 0..3),
        hist in proptest::collection::vec(any::<(u32, u32)>(), 0..3), load_address: Option<u64>,
    ) -> Batch<'static> {
        Batch {
            batch_id: Uuid::from_u128(ids.0), sent_at, session_id: Uuid::from_u128(ids.1), config_revision: Some(build), split_from,
            resource: Resource { app_id, build, install_id: Uuid::from_u128(ids.2), ..Resource::default() },
            modules: vec![unjank_protocol::Module { name: Text::from("libshop.so"), build_id: Text::from("67e9247c"), load_address }],
            spans, janks,
            traffic: days.into_iter().map(|(day, network, tx_bytes)| Traffic {
                day: Day::from_days(day), source: Text::from("api"), network, tx_bytes, rx_bytes: 0, requests: 0, failed_requests: 0,
            }).collect(),
            metrics: values.into_iter().map(|(time, value)| Metric {
                name: Text::from("m"), time, value, min: None, max: Some(value), count: None, page: Text::default(), uptime_ms: 0,
                network: Network::Wifi, attributes: Attributes::default(), sample_rate: 1.0,
            }).collect(),
            frame_windows: vec![unjank_protocol::FrameWindow {
                page: Text::default(), start: Timestamp::from_micros(0), duration_ms: 1, refresh_hz: 60, frames_drawn: 1, frames_dropped: 0,
                slow_frames: 0, frozen_frames: 0, longest_drop: 0, jank_ms: 0, delay_ms: 0, uptime_ms: 0, network: Network::Unknown,
                frame_time_hist: Histogram(hist), sample_rate: 0.5,
            }],
            page_loads: vec![], app_starts: vec![], recompositions: vec![], sdk_health: None,
        }
    }
}

proptest! {
    #[test]
    fn a_written_batch_is_read_back_unchanged(batch in batch()) {
        let json = serde_json::to_string(&batch).unwrap();
        prop_assert_eq!(serde_json::from_str::<Batch<'_>>(&json).unwrap(), batch);
    }

    #[test]
    fn unknown_fields_change_nothing(batch in batch(), name in "x_[a-z]{1,8}", number: i64) {
        let json = serde_json::to_string(&batch).unwrap();
        let unknown = format!(r#""{name}":{{"deep":[{number},null]}},"#);
        let json = json.replacen('{', &format!("{{{unknown}"), 1);
        let json = json.replace(r#""resource":{"#, &format!(r#""resource":{{{unknown}"#));
        let json = json.replace(r#"{"trace_id":"#, &format!(r#"{{{unknown}"trace_id":"#));
        prop_assert_eq!(serde_json::from_str::<Batch<'_>>(&json).unwrap(), batch);
    }

    #[test]
    fn hostile_text_never_panics(json in "[\\[\\]{}\",:a-z0-9eE+\\\\ .-]{0,200}") {
        let _outcome = serde_json::from_str::<Batch<'_>>(&json).is_ok();
    }

    #[test]
    fn a_damaged_batch_never_panics(batch in batch(), at in any::<proptest::sample::Index>(), byte: u8) {
        let mut json = serde_json::to_vec(&batch).unwrap();
        let at = at.index(json.len());
        json[at] = byte;
        let _outcome = serde_json::from_slice::<Batch<'_>>(&json).is_ok();
    }

    #[test]
    fn times_and_days_are_read_back_unchanged(time in timestamp(), day in -719_528..2_932_896_i32) {
        prop_assert_eq!(Timestamp::parse(&time.to_string()), Some(time));
        prop_assert_eq!(Day::parse(&Day::from_days(day).to_string()), Some(Day::from_days(day)));
    }

    #[test]
    fn times_are_written_as_rfc_3339(time in timestamp(), unit in proptest::sample::select(&[1, 10, 1_000, 100_000, 1_000_000])) {
        let micros = time.as_micros().div_euclid(unit) * unit;
        let expected = OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000).unwrap();
        prop_assert_eq!(Timestamp::from_micros(micros).to_string(), expected.format(&Rfc3339).unwrap());
    }

    #[test]
    fn a_text_is_truncated_to_its_limit_between_characters(long in ".{0,40}", limit in 0..50_usize) {
        let mut text = Text::from(long);
        let is_longer = text.len() > limit;
        prop_assert_eq!(text.truncate(limit), is_longer);
        let fits = text.len() <= limit;
        prop_assert!(fits);
    }
}
