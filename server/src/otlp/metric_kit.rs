//! What `MetricKit` of opentelemetry-swift sends: the numbers that Apple collects about an app in a day, as attributes of one span, and stacks
//! in JSON. Names are those of its `README.md` and `StackTraceFormat.md`.

use serde::Deserialize;
use unjank_protocol::{Attributes, Frame, Metric, Span, Text};

use super::{Event, Found};

const PAYLOAD: &str = "MXMetricPayload";
const PREFIX: &str = "metrickit.";
/// Numbers that describe the payload or the device.
const NOT_MEASURED: [&str; 3] = ["metadata.", "timestamp_", "latest_application_version"];

/// The numbers of a payload as metrics. The span stays a span.
///
/// Makes each metric when it is asked for: together they may take much more memory than their span.
pub(super) fn metrics<'a>(found: &Found<'a>) -> impl Iterator<Item = Found<'a>> {
    let span = match &found.event {
        Event::Span(span) if span.name.as_str() == PAYLOAD => Some(span.as_ref()),
        _ => None,
    };
    let metrics = span.into_iter().flat_map(metrics_of);
    metrics.map(move |metric| Found {
        event: Event::Metric(Box::new(metric)),
        session_id: found.session_id,
        user_id: found.user_id.clone(),
    })
}

fn metrics_of<'a>(span: &Span<'a>) -> impl Iterator<Item = Metric<'a>> {
    let Attributes(all) = &span.attributes;
    let others = all.iter().filter(|(name, _)| !name.starts_with(PREFIX));
    let others: Vec<_> = others.cloned().collect();
    let numbers = all
        .iter()
        .filter_map(|(name, value)| Some((name, measured(name, value)?)));
    numbers.map(move |(name, value)| Metric {
        name: name.clone(),
        time: span.start.shifted(span.duration_us),
        value,
        min: None,
        max: None,
        count: None,
        page: Text::default(),
        uptime_ms: 0,
        network: span.network,
        attributes: Attributes(others.clone()),
        sample_rate: span.sample_rate,
    })
}

fn measured(name: &str, value: &str) -> Option<f64> {
    let name = name.strip_prefix(PREFIX)?;
    if NOT_MEASURED.iter().any(|start| name.starts_with(*start)) {
        return None;
    }
    value.parse().ok().filter(|number: &f64| number.is_finite())
}

#[derive(Deserialize)]
struct CallStacks<'a> {
    #[serde(borrow, rename = "callStacks")]
    stacks: Vec<CallStack<'a>>,
}

#[derive(Deserialize)]
struct CallStack<'a> {
    /// Whether the stack is that of the thread at fault.
    #[serde(default, rename = "threadAttributed")]
    is_at_fault: Option<bool>,
    /// The innermost first.
    #[serde(borrow, rename = "callStackFrames")]
    frames: Vec<CallFrame<'a>>,
}

#[derive(Deserialize)]
struct CallFrame<'a> {
    #[serde(borrow, rename = "binaryName")]
    module: Text<'a>,
    #[serde(borrow, rename = "binaryUUID")]
    build_id: Text<'a>,
    #[serde(rename = "offsetAddress")]
    offset: u64,
}

/// The stack of the thread at fault, else the first one. `None` if the text is no such JSON.
pub(super) fn call_stack(text: &str, most_frames: usize) -> Option<Vec<Frame<'static>>> {
    if !text.starts_with('{') {
        return None;
    }
    let CallStacks { mut stacks } = serde_json::from_str(text).ok()?;
    let at_fault = stacks
        .iter()
        .position(|stack| stack.is_at_fault == Some(true));
    let chosen = at_fault.unwrap_or(0);
    let frames = (chosen < stacks.len()).then(|| stacks.swap_remove(chosen).frames)?;
    let own = |text: Text<'_>| Text::from(text.into_cow().into_owned());
    let frames = (0_u64..).zip(frames).take(most_frames);
    let frames = frames.map(|(place, frame)| Frame {
        module: own(frame.module),
        build_id: own(frame.build_id),
        // Callers are at the instruction after their call.
        offset: Some(frame.offset.saturating_sub(place.min(1))),
        ..Frame::default()
    });
    Some(frames.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::otlp::Kind;
    use crate::otlp::bounds::{of, text};

    #[test]
    fn a_hang_of_many_threads_keeps_the_stack_of_the_thread_at_fault() {
        let frame = |offset: usize| json!({"binaryName": "Shop", "binaryUUID": "70b89f27-1634-3580-a695-57cdb41d7743", "offsetAddress": offset});
        let frames = |thread: usize| {
            (0..40)
                .map(|place| frame(1_000 * thread + place))
                .collect::<Vec<_>>()
        };
        let stack = |thread: usize| json!({"threadAttributed": thread == 39, "callStackFrames": frames(thread)});
        let stacks: Vec<_> = (0..40).map(stack).collect();
        let stacks = json!({"callStacks": stacks}).to_string();
        assert!(stacks.len() > 100_000);
        let record = json!({"eventName": "metrickit.diagnostic.hang", "attributes": [text("exception.stacktrace", &stacks)]});
        let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]});
        of(Kind::Logs, &request, |read| {
            let batches = read.unwrap().batches;
            let stack = &batches[0].janks[0].stack;
            assert_eq!((stack.len(), stack[0].offset), (40, Some(39_000)));
        });
    }

    #[test]
    fn metrics_have_the_sample_rate_of_their_span() {
        let span = json!({"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13", "name": "MXMetricPayload",
            "traceState": "ot=th:c", "attributes": [text("metrickit.cpu.cpu_time", "2.5"), text("metrickit.gpu.time", "1")]});
        let request = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
        of(Kind::Traces, &request, |read| {
            let batches = read.unwrap().batches;
            let metrics = batches[0].metrics.iter();
            let rates: Vec<_> = metrics.map(|metric| metric.sample_rate).collect();
            assert_eq!(rates, [0.25, 0.25]);
        });
    }
}
