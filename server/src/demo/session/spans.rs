//! Simulates traces as the SDK makes them: an operation and its steps. A step takes its own time plus the time of the steps that it waits
//! for.

use unjank_protocol::{
    Attributes, Code, Span, SpanEvent, SpanId, SpanKind, SpanStatus, Text, TraceId,
};

use super::{Session, Visit, micros};
use crate::demo::operations::{Does, INSERT_ORDER, Operation, RunsOn, Step};

/// Share of traces that include functions. The SDK draws once per trace, so a trace has all of them or none.
const FUNCTIONS: f64 = 0.1;
const MAIN: &str = "main";

/// A trace that is being generated.
struct Trace {
    id: TraceId,
    functions: bool,
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
            functions: self.random.chance(FUNCTIONS) && !self.install.is_ios(),
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
            end = self.insert_order(&trace, Around { at: end, ..around }, visit);
        }
        let duration = end - start + micros(self.own_time(own) / 2.0);
        let failed = self.random.chance(0.012);
        let mut root = self.span(&trace, around.span, start, duration);
        root.name = Text::from(operation.name());
        root.code = called_in("Operations.kt", operation.line());
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

    /// Adds the order's insertion, on the thread that the version uses for it. If it blocks the main thread for long, adds a jank, too.
    fn insert_order(&mut self, trace: &Trace, around: Around, visit: &Visit) -> i64 {
        let place = if self.version.writes_orders_on_main {
            RunsOn::Here
        } else {
            INSERT_ORDER.place
        };
        let blocking = self.blocking_insertion(visit);
        let own_us = blocking.map_or(INSERT_ORDER.own_us, |stack| {
            stack.median_ms * 1_000.0 / self.slowness().sqrt()
        });
        let step = Step {
            place,
            own_us,
            ..INSERT_ORDER
        };
        let end = self.run(trace, &step, around);
        if let Some(stack) = blocking {
            let duration_ms = (end - around.at) / 1_000;
            self.push_jank(visit, stack, (around.at, duration_ms.clamp(300, 19_000)));
        }
        end
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
        // The iOS app has spans of operations and requests only.
        let kept = match step.does {
            Does::Function => trace.functions,
            Does::Construction => !self.install.is_ios(),
            Does::Request => true,
        };
        let thread = match step.place {
            RunsOn::Here => around.thread,
            RunsOn::Awaited(thread) | RunsOn::Aside(thread) => thread,
        };
        let own = match step.does {
            Does::Request => self.network_time(step.own_us),
            Does::Function | Does::Construction => self.own_time(step.own_us),
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
        span.kind = step.does.kind();
        span.thread = Text::from(thread);
        span.on_main_thread = thread == MAIN;
        match step.does {
            Does::Request => {
                let is_answered = !self.random.chance(0.015);
                span.name = Text::from(step.class);
                span.code = called_in("HttpClient.kt", 88);
                span.attributes = of_request(step.class, is_answered);
                span.status = if is_answered {
                    SpanStatus::Ok
                } else {
                    SpanStatus::Error
                };
            }
            Does::Construction => {
                span.name = Text::from(step.class);
                span.code = code(step);
            }
            Does::Function => {
                span.name = Text::from(full_name(step));
                span.code = code(step);
                span.sample_rate = FUNCTIONS;
            }
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
            status: SpanStatus::Unset,
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

/// Returns the class and the function, without its parameters.
fn full_name(step: &Step) -> String {
    let joint = if step.class.contains("::") { "::" } else { "." };
    let function = step.function.split('(').next().unwrap_or_default();
    format!("{}{joint}{function}", step.class)
}

/// Returns the place of a call that begins a span.
fn called_in(file: &'static str, line: u32) -> Code<'static> {
    Code {
        file: Text::from(file),
        line,
        ..Code::default()
    }
}

/// The host of the demo's requests.
const HOST: &str = "api.shop.example";

/// Returns the attributes of a request such as `GET /home/feed`.
fn of_request(name: &'static str, is_answered: bool) -> Attributes<'static> {
    let (method, path) = name.split_once(' ').unwrap_or_default();
    let mut pairs = vec![
        (Text::from("http.request.method"), Text::from(method)),
        (Text::from("server.address"), Text::from(HOST)),
        (Text::from("url.path"), Text::from(path)),
    ];
    if is_answered {
        pairs.push((Text::from("http.response.status_code"), Text::from("200")));
    }
    Attributes(pairs)
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
