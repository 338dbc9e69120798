//! The cost of a recorded span on the calling thread, for unjank and for other libraries, in one run.
//!
//! Run with `make bench-spans`. Every library hands its spans to its own background thread, which drops them; puffin keeps them in the
//! process. fastrace and puffin record in groups: a trace or a frame of 64 spans.
#![allow(clippy::print_stdout, reason = "printing the results is its purpose")]

#[path = "../../unjank/benches/calls/harness.rs"]
mod harness;

use std::hint::black_box;

use opentelemetry::KeyValue;
use opentelemetry::trace::{Span as _, Tracer as _, TracerProvider as _};
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing_subscriber::layer::SubscriberExt as _;

use self::harness::{row, start};

/// Number of spans of a trace of fastrace, and of a frame of puffin.
const GROUP: u32 = 64;

#[derive(Debug)]
struct Dropping;

impl SpanExporter for Dropping {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        drop(batch);
        Ok(())
    }
}

impl fastrace::collector::Reporter for Dropping {
    fn report(&mut self, spans: Vec<fastrace::collector::SpanRecord>) {
        drop(spans);
    }
}

fn unjank_rows() {
    let guard = start(
        r#"{"sampling": {"spans": {"default": 1.0}}, "monitors": {}, "toggles": {"ready": true}}"#,
    );
    let outer = unjank::span("outer");
    row("unjank", "", || {
        drop(black_box(unjank::span("checkout")));
    });
    row("unjank, two attributes", "", || {
        let mut span = unjank::span("checkout");
        span.attribute("items", black_box(3));
        span.attribute("currency", black_box("EUR"));
        drop(black_box(span));
    });
    let subscriber = tracing_subscriber::registry().with(unjank::tracing_layer());
    tracing::subscriber::with_default(subscriber, || {
        row("tracing to unjank", "", || {
            tracing::info_span!("checkout").in_scope(|| black_box(()));
        });
    });
    drop((outer, guard));
}

/// Begins a new trace of fastrace every 64 spans.
fn in_traces(mut span: impl FnMut()) -> impl FnMut() {
    let (mut calls, mut open) = (0, None);
    move || {
        if calls % GROUP == 0 {
            drop(open.take());
            let root = fastrace::Span::root("outer", fastrace::collector::SpanContext::random());
            let guard = root.set_local_parent();
            open = Some((guard, root));
        }
        calls += 1;
        span();
    }
}

fn fastrace_rows() {
    fastrace::set_reporter(Dropping, fastrace::collector::Config::default());
    row(
        "fastrace",
        "",
        in_traces(|| {
            drop(black_box(
                fastrace::local::LocalSpan::enter_with_local_parent("checkout"),
            ));
        }),
    );
    row(
        "fastrace, two attributes",
        "",
        in_traces(|| {
            let span = fastrace::local::LocalSpan::enter_with_local_parent("checkout")
                .with_property(|| ("items", black_box(3).to_string()))
                .with_property(|| ("currency", black_box("EUR")));
            drop(black_box(span));
        }),
    );
    fastrace::flush();
}

fn opentelemetry_rows() {
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(Dropping)
        .build();
    let tracer = provider.tracer("comparison");
    row("opentelemetry", "", || {
        drop(black_box(tracer.start("checkout")));
    });
    row("opentelemetry, two attributes", "", || {
        let mut span = tracer.start("checkout");
        span.set_attribute(KeyValue::new("items", black_box(3)));
        span.set_attribute(KeyValue::new("currency", black_box("EUR")));
        drop(black_box(span));
    });
    let layer = tracing_opentelemetry::layer().with_tracer(tracer);
    let subscriber = tracing_subscriber::registry().with(layer);
    tracing::subscriber::with_default(subscriber, || {
        row("tracing-opentelemetry", "", || {
            tracing::info_span!("checkout").in_scope(|| black_box(()));
        });
    });
    if let Err(error) = provider.shutdown() {
        println!("opentelemetry: {error}");
    }
}

fn puffin_rows() {
    puffin::set_scopes_on(true);
    let mut calls = 0;
    row("puffin (in process)", "", || {
        if calls % GROUP == 0 {
            puffin::GlobalProfiler::lock().new_frame();
        }
        calls += 1;
        puffin::profile_scope!("checkout");
    });
}

fn main() {
    println!("| recorded span | p50 ns | p99 ns | allocations | |\n|---|---|---|---|---|");
    row("two reads of the clock", "", || {
        black_box((std::time::Instant::now(), std::time::Instant::now()));
    });
    unjank_rows();
    fastrace_rows();
    opentelemetry_rows();
    puffin_rows();
}
