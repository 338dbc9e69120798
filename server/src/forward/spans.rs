//! Spans as a request of OTLP: the reverse of `otlp::spans`, `otlp::attributes` and `otlp::resource`. Spans are encoded after their texts are
//! scrubbed.

use std::cell::LazyCell;
use std::mem;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::resource::v1::Resource as OtlpResource;
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link, SpanKind as OtlpKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as OtlpSpan, Status};
use prost::Message as _;
use unjank_protocol::{Batch, Network, Resource, Span, SpanKind, SpanStatus, Timestamp};
use uuid::Uuid;

use super::attributes::AttributeList;
use super::functions::{CLASS, FILE, FUNCTION, is_key};
use super::{Forward, Kind, Piece, REQUEST_BYTES, REQUEST_EVENTS};

/// The project that forwarded a span. A span that has it is not forwarded again, so that collectors that forward to each other end.
const PROJECT: &str = "unjank.project";

/// Attributes that have a field of their own in OTLP.
const FIELDS: [&str; 5] = [
    "span.kind",
    "otel.status_description",
    "otel.links",
    "otel.scope.name",
    "otel.scope.version",
];

/// What a span takes in a request besides its own bytes: the lengths of the messages around it.
const AROUND_SPAN: usize = 32;

impl Forward {
    /// Returns the spans that match the setting, as requests.
    #[must_use]
    pub fn spans(&self, project: &str, batches: &[Batch<'_>]) -> Vec<Piece> {
        let mut requests = Requests::default();
        for batch in batches {
            let chosen = batch.spans.iter();
            let chosen =
                chosen.filter(|span| self.matches(span) && attribute(span, PROJECT).is_empty());
            let resource = LazyCell::new(|| resource(project, &batch.resource));
            requests.is_new_resource = true;
            for span in chosen {
                requests.add(&resource, scope(span), encode(span, batch));
                requests.has_keys |= is_key(&span.code.function);
            }
        }
        requests.cut();
        requests.done
    }
}

/// Puts spans into requests of a bounded size.
#[derive(Default)]
struct Requests {
    done: Vec<Piece>,
    open: Vec<ResourceSpans>,
    bytes: usize,
    events: u64,
    /// Whether the next span has another resource than the one before.
    is_new_resource: bool,
    has_keys: bool,
}

impl Requests {
    fn add(&mut self, resource: &OtlpResource, scope: InstrumentationScope, span: OtlpSpan) {
        let around = resource.encoded_len() + scope.encoded_len() + AROUND_SPAN;
        let bytes = span.encoded_len() + AROUND_SPAN;
        let is_full = self.bytes + around + bytes > REQUEST_BYTES || self.events == REQUEST_EVENTS;
        if is_full {
            self.cut();
        }
        if mem::take(&mut self.is_new_resource) || self.open.is_empty() {
            self.open.push(ResourceSpans {
                resource: Some(resource.clone()),
                ..ResourceSpans::default()
            });
            self.bytes += around;
        }
        let Some(last) = self.open.last_mut() else {
            return;
        };
        let scopes = &mut last.scope_spans;
        // Only the last one is compared: a request may have a scope for each of its spans.
        match scopes.last_mut() {
            Some(last) if last.scope.as_ref() == Some(&scope) => last.spans.push(span),
            _ => {
                self.bytes += scope.encoded_len() + AROUND_SPAN;
                scopes.push(ScopeSpans {
                    scope: Some(scope),
                    spans: vec![span],
                    ..ScopeSpans::default()
                });
            }
        }
        self.bytes += bytes;
        self.events += 1;
    }

    /// Ends the open request.
    fn cut(&mut self) {
        let resource_spans = mem::take(&mut self.open);
        let events = mem::take(&mut self.events);
        let has_keys = mem::take(&mut self.has_keys);
        self.bytes = 0;
        if events > 0 {
            self.done.push(Piece {
                kind: Kind::Spans,
                body: ExportTraceServiceRequest { resource_spans }.encode_to_vec(),
                events,
                has_keys,
            });
        }
    }
}

fn resource(project: &str, own: &Resource<'_>) -> OtlpResource {
    let mut list = AttributeList::default();
    list.text("service.name", &own.app_id);
    list.text("service.version", &own.app_version);
    if own.build > 0 {
        list.text("app.build_id", &own.build.to_string());
    }
    list.text("app.installation.id", &own.install_id.to_string());
    list.text("os.name", &own.os_name);
    list.text("os.version", &own.os_version);
    list.text("device.model.name", &own.device_model);
    list.text("device.manufacturer", &own.device_manufacturer);
    list.text("browser.language", &own.locale);
    list.text("deployment.environment.name", &own.mode);
    list.text("telemetry.sdk.name", &own.sdk_name);
    list.text("telemetry.sdk.version", &own.sdk_version);
    list.text("unjank.channel", &own.channel);
    list.text("unjank.device_class", &own.device_class);
    list.text(PROJECT, project);
    OtlpResource {
        attributes: list.into_inner(),
        ..OtlpResource::default()
    }
}

fn attribute<'s>(span: &'s Span<'_>, name: &str) -> &'s str {
    let mut all = span.attributes.0.iter();
    let found = all.find(|(key, _)| key.as_str() == name);
    found.map_or("", |(_, value)| value.as_str())
}

/// Returns the name that an attribute of a span has among the attributes of its scope, if it is one of these.
fn name_in_scope(key: &str) -> Option<&str> {
    let name = key.strip_prefix("otel.scope.")?;
    (!["name", "version", "schema_url"].contains(&name)).then_some(name)
}

fn scope(span: &Span<'_>) -> InstrumentationScope {
    let mut list = AttributeList::default();
    for (key, value) in &span.attributes.0 {
        if let Some(name) = name_in_scope(key) {
            list.stored(name, value);
        }
    }
    InstrumentationScope {
        name: attribute(span, "otel.scope.name").to_owned(),
        version: attribute(span, "otel.scope.version").to_owned(),
        attributes: list.into_inner(),
        ..InstrumentationScope::default()
    }
}

fn encode(span: &Span<'_>, batch: &Batch<'_>) -> OtlpSpan {
    let nanos = |time: Timestamp| u64::try_from(time.as_micros()).unwrap_or_default() * 1_000;
    let start = nanos(span.start);
    let parent = span.parent_span_id.map(|id| id.0.to_be_bytes().to_vec());
    let events = span.events.iter().map(|event| Event {
        time_unix_nano: nanos(event.time),
        name: event.name.as_str().to_owned(),
        ..Event::default()
    });
    OtlpSpan {
        trace_id: span.trace_id.0.to_be_bytes().to_vec(),
        span_id: span.span_id.0.to_be_bytes().to_vec(),
        parent_span_id: parent.unwrap_or_default(),
        name: span.name.as_str().to_owned(),
        kind: kind(span) as i32,
        start_time_unix_nano: start,
        end_time_unix_nano: start + u64::try_from(span.duration_us).unwrap_or_default() * 1_000,
        attributes: attributes(span, batch).into_inner(),
        events: events.collect(),
        links: links(attribute(span, "otel.links")),
        status: status(span),
        ..OtlpSpan::default()
    }
}

fn kind(span: &Span<'_>) -> OtlpKind {
    match attribute(span, "span.kind") {
        "server" => OtlpKind::Server,
        "client" => OtlpKind::Client,
        "producer" => OtlpKind::Producer,
        "consumer" => OtlpKind::Consumer,
        _ if span.kind == SpanKind::Network => OtlpKind::Client,
        _ => OtlpKind::Internal,
    }
}

fn status(span: &Span<'_>) -> Option<Status> {
    let code = match span.status {
        SpanStatus::Ok => StatusCode::Ok,
        SpanStatus::Error => StatusCode::Error,
        _ => return None,
    };
    Some(Status {
        code: code as i32,
        message: attribute(span, "otel.status_description").to_owned(),
    })
}

fn attributes(span: &Span<'_>, batch: &Batch<'_>) -> AttributeList {
    let mut list = AttributeList::default();
    if batch.session_id != Uuid::nil() {
        list.text("session.id", &batch.session_id.to_string());
    }
    list.text("user.id", &batch.resource.user_id);
    list.text("app.screen.name", &span.page);
    list.text("thread.name", &span.thread);
    let (connection, generation) = network(span.network);
    list.text("network.connection.type", connection);
    list.text("network.connection.subtype", generation);
    list.text(CLASS, &span.code.class);
    list.text(FUNCTION, &span.code.function);
    list.text(FILE, &span.code.file);
    if span.code.line > 0 {
        list.number("code.line.number", span.code.line.into());
    }
    list.text("unjank.span.kind", span.kind.as_str());
    if span.status == SpanStatus::Cancelled {
        list.text("unjank.span.status", span.status.as_str());
    }
    if span.sample_rate < 1.0 {
        list.float("unjank.sample_rate", span.sample_rate);
    }
    for (key, value) in &span.attributes.0 {
        if !FIELDS.contains(&key.as_str()) && name_in_scope(key).is_none() {
            list.stored(key, value);
        }
    }
    list
}

/// Returns the type of a network, and of a mobile one a usual technology of its generation.
fn network(network: Network) -> (&'static str, &'static str) {
    match network {
        Network::Wifi => ("wifi", ""),
        Network::Ethernet => ("wired", ""),
        Network::Cellular2g => ("cell", "edge"),
        Network::Cellular3g => ("cell", "umts"),
        Network::Cellular4g => ("cell", "lte"),
        Network::Cellular5g => ("cell", "nr"),
        Network::Cellular => ("cell", ""),
        Network::None => ("unavailable", ""),
        _ => ("", ""),
    }
}

/// Reads links from `<trace id>-<span id>`, separated by blanks.
fn links(text: &str) -> Vec<Link> {
    let links = text.split(' ').filter_map(|link| {
        let (trace_id, span_id) = link.split_once('-')?;
        let trace_id = u128::from_str_radix(trace_id, 16).ok()?;
        let span_id = u64::from_str_radix(span_id, 16).ok()?;
        Some(Link {
            trace_id: trace_id.to_be_bytes().to_vec(),
            span_id: span_id.to_be_bytes().to_vec(),
            ..Link::default()
        })
    });
    links.collect()
}
