//! Spans as a request of OpenTelemetry, as an instrumented app sends them.

use anyhow::{Result, ensure};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span, Status, span::Event, span::SpanKind, status::StatusCode,
};
use unjank_protocol::{Batch, SpanStatus, Timestamp};

/// Returns the spans of a batch as a request.
pub(crate) fn request(batch: &Batch<'_>) -> Result<ExportTraceServiceRequest> {
    ensure!(
        batch.events() == batch.spans.len(),
        "OpenTelemetry gets spans only"
    );
    let resource = &batch.resource;
    let attributes = [
        ("service.name", resource.app_id.as_str()),
        ("service.version", &resource.app_version),
        ("app.installation.id", &resource.install_id.to_string()),
        ("session.id", &batch.session_id.to_string()),
        ("os.name", &resource.os_name),
        ("os.version", &resource.os_version),
        ("device.model.name", &resource.device_model),
        ("device.manufacturer", &resource.device_manufacturer),
        ("telemetry.sdk.name", "opentelemetry"),
        ("telemetry.sdk.language", "java"),
        ("telemetry.sdk.version", "1.6.0"),
    ];
    let attributes = attributes.map(|(key, value)| text(key, value));
    let scope = InstrumentationScope {
        name: "com.example.shop".to_owned(),
        version: "1.6.0".to_owned(),
        ..InstrumentationScope::default()
    };
    Ok(ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: attributes.into(),
                ..Resource::default()
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(scope),
                spans: batch.spans.iter().map(span).collect(),
                ..ScopeSpans::default()
            }],
            ..ResourceSpans::default()
        }],
    })
}

fn span(span: &unjank_protocol::Span<'_>) -> Span {
    let code = &span.code;
    let named = [
        ("app.screen.name", span.page.as_str()),
        ("thread.name", &span.thread),
        ("code.namespace", &code.class),
        ("code.function.name", &code.function),
        ("code.file.path", &code.file),
    ];
    let own = span.attributes.0.iter();
    let own = own.map(|(key, value)| (key.as_str(), value.as_str()));
    let named = named.into_iter().filter(|(_, value)| !value.is_empty());
    let mut attributes: Vec<_> = named
        .chain(own)
        .map(|(key, value)| text(key, value))
        .collect();
    if code.line > 0 {
        let line = any_value::Value::IntValue(code.line.into());
        attributes.push(attribute("code.line.number", line));
    }
    let status = match span.status {
        SpanStatus::Ok => StatusCode::Ok,
        SpanStatus::Error => StatusCode::Error,
        _ => StatusCode::Unset,
    };
    Span {
        trace_id: span.trace_id.0.to_be_bytes().into(),
        span_id: span.span_id.0.to_be_bytes().into(),
        parent_span_id: span
            .parent_span_id
            .map_or_else(Vec::new, |id| id.0.to_be_bytes().into()),
        name: span.name.as_str().to_owned(),
        kind: SpanKind::Internal.into(),
        start_time_unix_nano: nanos(span.start),
        end_time_unix_nano: nanos(span.start.shifted(span.duration_us)),
        attributes,
        events: span.events.iter().map(event).collect(),
        status: Some(Status {
            code: status.into(),
            ..Status::default()
        }),
        ..Span::default()
    }
}

fn event(event: &unjank_protocol::SpanEvent<'_>) -> Event {
    Event {
        time_unix_nano: nanos(event.time),
        name: event.name.as_str().to_owned(),
        ..Event::default()
    }
}

fn nanos(time: Timestamp) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or_default() * 1_000
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, any_value::Value::StringValue(value.to_owned()))
}

fn attribute(key: &str, value: any_value::Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
