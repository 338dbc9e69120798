//! An app in Rust that sends spans, log records and metrics with OpenTelemetry's exporters, as protobuf with gzip.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use opentelemetry::logs::{AnyValue, LogRecord as _, Logger as _, LoggerProvider as _, Severity};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::{
    Link, Span as _, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Array, Context, InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_otlp::{
    Compression, ExporterBuildError, LogExporter, MetricExporter, SpanExporter,
    WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::SdkLoggerProvider;
use opentelemetry_sdk::metrics::{SdkMeterProvider, Temporality};
use opentelemetry_sdk::trace::SdkTracerProvider;

/// How long the exporters may take, with their retries: longer than by default, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the app reports to, and as which install.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) url: String,
    pub(crate) key: String,
    pub(crate) install: &'static str,
    pub(crate) session: &'static str,
}

#[derive(Debug, thiserror::Error)]
#[error("no money")]
struct NoMoney;

impl App {
    /// Sends everything. Returns when the exporters have ended.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        self.spans()?;
        self.metrics()?;
        self.logs()?;
        Ok(())
    }

    fn resource(&self) -> Resource {
        Resource::builder()
            .with_service_name("com.example.shop")
            .with_attributes([
                KeyValue::new("service.version", "4.12.0"),
                KeyValue::new("app.installation.id", self.install),
                KeyValue::new("session.id", self.session),
                KeyValue::new("os.name", "android"),
                KeyValue::new("team", "checkout"),
            ])
            .build()
    }

    fn headers(&self) -> HashMap<String, String> {
        HashMap::from([("Authorization".to_owned(), format!("Bearer {}", self.key))])
    }

    fn span_exporter(&self) -> Result<SpanExporter, ExporterBuildError> {
        SpanExporter::builder()
            .with_http()
            .with_endpoint(format!("{}/v1/traces", self.url))
            .with_headers(self.headers())
            .with_compression(Compression::Gzip)
            .with_timeout(PATIENCE)
            .build()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "exporters read the clock of the machine"
    )]
    fn spans(&self) -> anyhow::Result<()> {
        let provider = SdkTracerProvider::builder()
            .with_resource(self.resource())
            .with_batch_exporter(self.span_exporter()?)
            .build();
        let scope = InstrumentationScope::builder("shop.cart").with_version("2.0");
        let tracer = provider.tracer_with_scope(scope.build());
        let names = ["a", "b"].map(StringValue::from).to_vec();
        let checkout = tracer
            .span_builder("checkout")
            .with_attributes([
                KeyValue::new("items", 3),
                KeyValue::new("free", true),
                KeyValue::new("price", 9.5),
                KeyValue::new("names", Value::Array(Array::String(names))),
                KeyValue::new("sizes", Value::Array(Array::I64(vec![1, 2]))),
                KeyValue::new("ratios", Value::Array(Array::F64(vec![0.5]))),
                KeyValue::new("flags", Value::Array(Array::Bool(vec![true, false]))),
            ])
            .start(&tracer);
        let inside = Context::new().with_span(checkout);
        let checkout = inside.span();
        checkout.add_event("paid", vec![KeyValue::new("by", "card")]);
        let mut pay = tracer
            .span_builder("GET /pay")
            .with_kind(SpanKind::Client)
            .with_attributes([KeyValue::new("http.request.method", "GET")])
            .start_with_context(&tracer, &inside);
        pay.record_error(&NoMoney);
        pay.set_status(Status::error("no money"));
        pay.end();
        checkout.set_status(Status::Ok);
        checkout.end();
        let link = Link::with_context(checkout.span_context().clone());
        let receipt = tracer.span_builder("receipt").with_links(vec![link]);
        receipt.start(&tracer).end();
        let eight_days = Duration::from_secs(8 * 24 * 3600);
        let late = tracer.span_builder("late");
        let late = late.with_start_time(SystemTime::now() - eight_days);
        late.start(&tracer).end();
        Ok(provider.shutdown_with_timeout(PATIENCE)?)
    }

    fn metrics(&self) -> anyhow::Result<()> {
        let exporter = MetricExporter::builder()
            .with_http()
            .with_endpoint(format!("{}/v1/metrics", self.url))
            .with_headers(self.headers())
            .with_compression(Compression::Gzip)
            .with_timeout(PATIENCE)
            .with_temporality(Temporality::Delta)
            .build()?;
        let provider = SdkMeterProvider::builder()
            .with_resource(self.resource())
            .with_periodic_exporter(exporter)
            .build();
        let meter = provider.meter("shop.cart");
        let taps = meter.u64_counter("taps").with_unit("{tap}").build();
        taps.add(7, &[KeyValue::new("screen", "cart")]);
        let load = meter.f64_histogram("load").with_unit("ms");
        let load = load.with_boundaries(vec![10.0, 100.0]).build();
        for value in [4.0, 6.0, 50.0] {
            load.record(value, &[]);
        }
        Ok(provider.shutdown_with_timeout(PATIENCE)?)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "exporters read the clock of the machine"
    )]
    fn logs(&self) -> anyhow::Result<()> {
        let exporter = LogExporter::builder()
            .with_http()
            .with_endpoint(format!("{}/v1/logs", self.url))
            .with_headers(self.headers())
            .with_compression(Compression::Gzip)
            .with_timeout(PATIENCE)
            .build()?;
        let provider = SdkLoggerProvider::builder()
            .with_resource(self.resource())
            .with_batch_exporter(exporter)
            .build();
        let logger = provider.logger("shop");
        let emit = |severity, body: &'static str, attributes: &[(&'static str, &'static str)]| {
            let mut record = logger.create_log_record();
            record.set_timestamp(SystemTime::now());
            record.set_severity_number(severity);
            record.set_body(AnyValue::from(body));
            record.add_attributes(attributes.iter().copied());
            logger.emit(record);
        };
        emit(Severity::Warn, "nearly empty", &[]);
        let exception = [
            ("exception.type", "KeyError"),
            ("exception.message", "cart"),
            ("exception.stacktrace", "at a (b.rs:1:2)"),
        ];
        emit(Severity::Error, "no cart", &exception);
        Ok(provider.shutdown_with_timeout(PATIENCE)?)
    }
}
