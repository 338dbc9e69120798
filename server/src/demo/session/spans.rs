//! Simulates traces: an operation and its steps. A step takes its own time plus the time of the steps that it waits for.

use unjank_protocol::{
    Attributes, Code, Span, SpanEvent, SpanId, SpanKind, SpanStatus, Text, TraceId,
};

use super::{Session, Visit, micros};
use crate::demo::operations::{INSERT_ORDER, Operation, RunsOn, Step};

/// Share of traces that include methods.
const METHODS: f64 = 0.1;
const MAIN: &str = "main";

/// A trace that is being generated.
struct Trace {
    id: TraceId,
    methods: bool,
    page: &'static str,
}

/// The surroundings of a step.
#[derive(Clone, Copy)]
struct Around {
    span: SpanId,
    thread: &'static str,
    at: i64,
}

impl Session<'_> {
    pub(super) fn trace(&mut self, operation: Operation, visit: &Visit) {
        let trace = Trace {
            id: TraceId(u128::from(self.random.bits() | 1) << 64 | u128::from(self.random.bits())),
            methods: self.random.chance(METHODS) && !self.install.is_ios(),
            page: visit.page.name,
        };
        let start = visit.at + micros(self.random.unit() * 0.8 * visit.length as f64);
        let (own, steps) = operation.steps();
        let around = Around {
            span: self.span_id(),
            thread: MAIN,
            at: start + micros(self.own_time(own) / 2.0),
        };
        let mut end = self.run_all(&trace, steps, around);
        if operation == Operation::Checkout && !self.install.is_ios() {
            end = self.insert_order(&trace, Around { at: end, ..around });
        }
        let duration = end - start + micros(self.own_time(own) / 2.0);
        let failed = self.random.chance(0.012);
        let mut root = self.span(&trace, around.span, start, duration);
        root.name = Text::from(operation.name());
        root.status = if failed {
            SpanStatus::Error
        } else {
            SpanStatus::Ok
        };
        root.attributes = self.attributes();
        if self.random.chance(0.2) {
            root.events = self.marks(start, duration);
        }
        self.batch.spans.push(root);
    }

    /// Adds the order's insertion, on the thread that the version uses for it.
    fn insert_order(&mut self, trace: &Trace, around: Around) -> i64 {
        let place = if self.version.writes_orders_on_main {
            RunsOn::Here
        } else {
            INSERT_ORDER.place
        };
        let step = Step {
            place,
            ..INSERT_ORDER
        };
        self.run(trace, &step, around)
    }

    fn run_all(&mut self, trace: &Trace, steps: &[Step], mut around: Around) -> i64 {
        for step in steps {
            for _ in 0..step.times {
                around.at = self.run(trace, step, around);
            }
        }
        around.at
    }

    /// Adds a step with its nested steps. Returns the time at which the enclosing step continues.
    fn run(&mut self, trace: &Trace, step: &Step, around: Around) -> i64 {
        // On iOS, only requests are traced automatically.
        let kept = match step.kind {
            SpanKind::Method => trace.methods,
            SpanKind::Init => !self.install.is_ios(),
            _ => true,
        };
        let thread = match step.place {
            RunsOn::Here => around.thread,
            RunsOn::Awaited(thread) | RunsOn::Aside(thread) => thread,
        };
        let own = match step.kind {
            SpanKind::Network => self.network_time(step.own_us),
            _ => self.own_time(step.own_us),
        };
        let inner = Around {
            span: if kept { self.span_id() } else { around.span },
            thread,
            at: around.at + micros(own * 0.3),
        };
        let end = self.run_all(trace, step.inside, inner) + micros(own * 0.7);
        if kept {
            let span = self.step_span(trace, step, inner.span, around, thread, end);
            self.batch.spans.push(span);
        }
        match step.place {
            RunsOn::Aside(_) => around.at,
            RunsOn::Here | RunsOn::Awaited(_) => end,
        }
    }

    fn step_span(
        &mut self,
        trace: &Trace,
        step: &Step,
        id: SpanId,
        around: Around,
        thread: &'static str,
        end: i64,
    ) -> Span<'static> {
        let mut span = self.span(trace, id, around.at, end - around.at);
        span.parent_span_id = Some(around.span);
        span.kind = step.kind;
        span.thread = Text::from(thread);
        span.on_main_thread = thread == MAIN;
        match step.kind {
            SpanKind::Network => {
                span.name = Text::from(step.class);
                if self.random.chance(0.015) {
                    span.status = SpanStatus::Error;
                }
            }
            kind => {
                span.name = match kind {
                    SpanKind::Init => Text::from(step.class),
                    _ => Text::from(full_name(step)),
                };
                span.code = code(step);
            }
        }
        if step.kind == SpanKind::Method {
            span.sample_rate = METHODS;
        }
        span
    }

    fn span(&self, trace: &Trace, id: SpanId, start: i64, duration: i64) -> Span<'static> {
        Span {
            trace_id: trace.id,
            span_id: id,
            parent_span_id: None,
            name: Text::default(),
            kind: SpanKind::Manual,
            start: self.time(start),
            duration_us: duration,
            thread: Text::from(MAIN),
            on_main_thread: true,
            status: SpanStatus::Ok,
            page: Text::from(trace.page),
            network: self.network,
            uptime_ms: self.uptime_ms(start),
            code: Code::default(),
            attributes: Attributes::default(),
            events: Vec::new(),
            sample_rate: 1.0,
        }
    }

    fn span_id(&mut self) -> SpanId {
        SpanId(self.random.bits().max(1))
    }

    fn own_time(&mut self, median: f64) -> f64 {
        self.random.log_normal(median * self.slowness(), 0.3)
    }

    fn network_time(&mut self, median: f64) -> f64 {
        self.random
            .log_normal(median * self.network_slowness(), 0.35)
    }

    fn attributes(&mut self) -> Attributes<'static> {
        let mut pairs = Vec::new();
        if self.random.chance(0.5) {
            let items = self.random.between(1, 24).to_string();
            pairs.push((Text::from("items"), Text::from(items)));
        }
        if self.random.chance(0.25) {
            let variant = *self.random.pick(&["control", "new_feed", "one_tap"]);
            pairs.push((Text::from("experiment"), Text::from(variant)));
        }
        Attributes(pairs)
    }

    fn marks(&mut self, start: i64, duration: i64) -> Vec<SpanEvent<'static>> {
        ["validated", "first_byte"]
            .iter()
            .zip([0.1, 0.5])
            .map(|(name, share)| SpanEvent {
                time: self.time(start + micros(duration as f64 * share)),
                name: Text::from(*name),
            })
            .collect()
    }
}

fn full_name(step: &Step) -> String {
    let joint = if step.class.contains("::") { "::" } else { "." };
    format!("{}{joint}{}", step.class, step.function)
}

fn code(step: &Step) -> Code<'static> {
    let simple = step.class.rsplit('.').next().unwrap_or(step.class);
    let native = simple.contains("::");
    Code {
        class: Text::from(step.class),
        function: Text::from(step.function),
        file: if native {
            Text::from("rank.rs")
        } else {
            Text::from(format!("{simple}.kt"))
        },
        line: step.line,
    }
}
