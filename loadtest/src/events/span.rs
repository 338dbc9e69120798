//! Generates traces of about ten spans. Most spans are traced automatically. A child lies within its parent's time.

use unjank_protocol::{
    Attributes, Code, Span, SpanEvent, SpanId, SpanKind, SpanStatus, Text, Timestamp, TraceId,
};
use unjank_random::Random;

use super::{Scene, micros};
use crate::vocabulary::THREADS;

pub(super) fn some<'a>(scene: &Scene<'a>, count: usize, random: &mut Random) -> Vec<Span<'a>> {
    let mut spans = Vec::with_capacity(count);
    while spans.len() < count {
        let size = usize::try_from(random.between(2, 18)).unwrap_or(2);
        add_trace(&mut spans, scene, size.min(count), count, random);
    }
    spans
}

fn add_trace<'a>(
    spans: &mut Vec<Span<'a>>,
    scene: &Scene<'a>,
    size: usize,
    count: usize,
    random: &mut Random,
) {
    let first = spans.len();
    let trace_id = TraceId(u128::from(random.bits() | 1) << 64 | u128::from(random.bits()));
    spans.push(root(scene, trace_id, random));
    while spans.len() < (first + size).min(count) {
        let last = (spans.len() - 1) as u64;
        // Usually a child of the newest span, sometimes of an older one, so that the trees are deep and have some branches.
        let parent = if random.chance(0.6) {
            last
        } else {
            random.between(first as u64, last)
        };
        let parent = &spans[usize::try_from(parent).unwrap_or(first)];
        let child = child(scene, parent, random);
        spans.push(child);
    }
}

fn root<'a>(scene: &Scene<'a>, trace_id: TraceId, random: &mut Random) -> Span<'a> {
    let page = scene.vocabulary.page(random);
    let (kind, name) = if random.chance(0.3) {
        (SpanKind::Page, page.name.as_str())
    } else {
        (SpanKind::Manual, scene.vocabulary.operation(random))
    };
    let duration = random.long_tail(90_000.0 * scene.device.slowness(), 1.0, 30_000_000);
    let begin = scene.moment(random);
    let start = begin.time.shifted(-micros(duration));
    Span {
        trace_id,
        span_id: span_id(random),
        parent_span_id: None,
        name: Text::from(name),
        kind,
        start,
        duration_us: micros(duration),
        thread: Text::from("main"),
        on_main_thread: true,
        status: status(random),
        page: Text::from(page.name.as_str()),
        network: scene.device.network,
        uptime_ms: begin.uptime_ms,
        code: Code::default(),
        attributes: attributes(random),
        events: logs(start, duration, random),
        sample_rate: 1.0,
    }
}

fn child<'a>(scene: &Scene<'a>, parent: &Span<'a>, random: &mut Random) -> Span<'a> {
    let space = parent.duration_us.unsigned_abs();
    let offset = random.below(space / 2 + 1);
    let duration = random.below(space - offset + 1);
    let main = parent.on_main_thread && random.chance(0.8);
    let call = random.unit();
    let function = scene.vocabulary.function(random);
    let (kind, name, code) = if call < 0.08 {
        (
            SpanKind::Network,
            scene.vocabulary.path(random),
            Code::default(),
        )
    } else {
        let code = Code {
            class: Text::from(function.class.as_str()),
            function: Text::from(function.function.as_str()),
            file: Text::from(function.file.as_str()),
            line: function.line,
        };
        if call < 0.16 {
            (SpanKind::Init, function.class.as_str(), code)
        } else {
            (SpanKind::Method, function.full_name.as_str(), code)
        }
    };
    Span {
        trace_id: parent.trace_id,
        span_id: span_id(random),
        parent_span_id: Some(parent.span_id),
        name: Text::from(name),
        kind,
        start: parent.start.shifted(micros(offset)),
        duration_us: micros(duration),
        thread: Text::from(if main { "main" } else { random.pick(THREADS) }),
        on_main_thread: main,
        status: status(random),
        page: parent.page.clone(),
        network: parent.network,
        uptime_ms: parent.uptime_ms + offset / 1_000,
        code,
        attributes: if random.chance(0.08) {
            attributes(random)
        } else {
            Attributes::default()
        },
        events: Vec::new(),
        sample_rate: if kind == SpanKind::Method { 0.1 } else { 1.0 },
    }
}

fn span_id(random: &mut Random) -> SpanId {
    SpanId(random.bits().max(1))
}

fn status(random: &mut Random) -> SpanStatus {
    if random.chance(0.02) {
        SpanStatus::Error
    } else {
        SpanStatus::Ok
    }
}

fn attributes<'a>(random: &mut Random) -> Attributes<'a> {
    let mut pairs = Vec::new();
    if random.chance(0.5) {
        pairs.push((
            Text::from("items"),
            Text::from(random.between(1, 40).to_string()),
        ));
    }
    if random.chance(0.3) {
        pairs.push((
            Text::from("experiment"),
            Text::from(*random.pick(&["control", "new_feed", "fast_cart"])),
        ));
    }
    if random.chance(0.15) {
        pairs.push((
            Text::from("request_id"),
            Text::from(format!("{:016x}", random.bits())),
        ));
    }
    Attributes(pairs)
}

fn logs<'a>(start: Timestamp, duration: u64, random: &mut Random) -> Vec<SpanEvent<'a>> {
    if !random.chance(0.25) {
        return Vec::new();
    }
    ["validated", "first_byte"]
        .iter()
        .map(|name| SpanEvent {
            time: start.shifted(micros(random.below(duration + 1))),
            name: Text::from(*name),
        })
        .collect()
}
