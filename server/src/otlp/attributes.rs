//! The attributes of spans, log records and data points for which events have a field. Names are those of the semantic conventions 1.44
//! (`app`, `code`, `exception`, `network`, `session`, `thread`, `user`), and the older ones in use.

use serde::{Deserialize, Deserializer};
use unjank_protocol::{
    Attributes, Code, Network, Span, SpanId, SpanKind, SpanStatus, Text, Timestamp, TraceId,
    whole_number,
};
use uuid::Uuid;

use super::Unreadable;
use super::attribute_values::{SAMPLE_RATE, TEXT, cut, id, sample_rate};
use super::message::{Field, Raw, Short, bytes};
use super::resource::{Scope, Sender};
use super::value::KeyValue;
use super::wire::Value;

/// The maximum number of attributes of an event. The checks of events drop further attributes.
const MOST: usize = 64;

/// The attributes that have no field, with those of the scope: enough for most events, so that their list is allocated once.
const USUAL: usize = 8;

/// The most bytes of a stack, of which 128 frames are kept.
pub(super) const STACK: usize = 64 << 10;
/// The most bytes of the stacks of all threads as JSON, which cannot be read without its end.
const STACKS: usize = 1 << 20;

/// The attributes of one event.
#[derive(Debug, Default)]
pub(super) struct Known<'a> {
    pub(super) page: Text<'a>,
    pub(super) thread: Text<'a>,
    pub(super) code: Code<'a>,
    pub(super) session_id: Option<Uuid>,
    pub(super) user_id: Option<Text<'a>>,
    pub(super) event_name: Text<'a>,
    pub(super) exception: Exception<'a>,
    pub(super) is_request: bool,
    pub(super) sample_rate: Option<f64>,
    connection: Text<'a>,
    generation: Text<'a>,
    /// The number of attributes so far.
    read: usize,
    /// All others, as sent.
    pub(super) others: Vec<(Text<'a>, Text<'a>)>,
}

#[derive(Debug, Default)]
pub(super) struct Exception<'a> {
    pub(super) kind: Text<'a>,
    pub(super) message: Text<'a>,
    pub(super) stack: Text<'a>,
}

impl<'a> Field<'a> for Known<'a> {
    fn read(&mut self, value: Value<'a>) -> Result<(), Unreadable> {
        let attribute = bytes(value)?;
        if self.read < Short::<KeyValue<'a>>::MOST {
            self.add(Raw::Proto(attribute).decode()?);
        }
        Ok(())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Known<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Short(attributes) = Short::deserialize(deserializer)?;
        let mut known = Self::default();
        attributes.into_iter().for_each(|one| known.add(one));
        Ok(known)
    }
}

impl<'a> Known<'a> {
    /// Adds an attribute as sent.
    fn add(&mut self, KeyValue { mut key, value }: KeyValue<'a>) {
        self.read += 1;
        let mut value = value.0;
        let is_stack = key.as_str() == "exception.stacktrace";
        cut(&mut key);
        value.truncate(match (is_stack, value.starts_with('{')) {
            (true, true) => STACKS,
            (true, false) => STACK,
            (false, _) => TEXT,
        });
        match key.as_str() {
            "app.screen.name" | "screen.name" => self.page = value,
            "thread.name" => self.thread = value,
            "session.id" => self.session_id = Some(id(&value)),
            "user.id" | "enduser.id" => self.user_id = Some(value),
            "event.name" => self.event_name = value,
            "network.connection.type" => self.connection = value,
            "network.connection.subtype" => self.generation = value,
            "code.function.name" | "code.function" => self.code.function = value,
            "code.namespace" => self.code.class = value,
            "code.file.path" | "code.filepath" => self.code.file = value,
            "code.line.number" | "code.lineno" => {
                let line = whole_number(value.trim()).and_then(|line| u32::try_from(line).ok());
                self.code.line = line.unwrap_or_default();
            }
            SAMPLE_RATE => self.sample_rate = sample_rate(&value),
            "exception.type" => self.exception.kind = value,
            "exception.message" => self.exception.message = value,
            "exception.stacktrace" => self.exception.stack = value,
            name => {
                self.is_request |=
                    matches!(name, "http.request.method" | "http.method" | "url.full");
                // The screen that `app.navigation.complete` is about.
                if self.page.is_empty() && name == "app.navigation.destination.name" {
                    self.page = value.clone();
                }
                if self.others.is_empty() {
                    self.others.reserve(USUAL);
                }
                self.others.push((key, value));
            }
        }
    }

    pub(super) fn network(&self) -> Network {
        match (self.connection.as_str(), self.generation.as_str()) {
            ("wifi", _) => Network::Wifi,
            ("wired", _) => Network::Ethernet,
            ("unavailable", _) => Network::None,
            ("cell", "gprs" | "edge" | "cdma" | "gsm" | "iden" | "cdma2000_1xrtt") => {
                Network::Cellular2g
            }
            (
                "cell",
                "umts" | "hsdpa" | "hsupa" | "hspa" | "hspap" | "evdo_0" | "evdo_a" | "evdo_b"
                | "ehrpd" | "td_scdma",
            ) => Network::Cellular3g,
            ("cell", "lte" | "lte_ca") => Network::Cellular4g,
            ("cell", "nr" | "nrnsa") => Network::Cellular5g,
            ("cell", _) => Network::Cellular,
            _ => Network::Unknown,
        }
    }

    /// A span of no duration with the fields that attributes have.
    pub(super) fn into_span(
        mut self,
        (trace_id, span_id): (TraceId, SpanId),
        start: Timestamp,
        scope: &Scope<'a>,
        sender: &Sender<'a>,
    ) -> Span<'a> {
        Span {
            trace_id,
            span_id,
            parent_span_id: None,
            name: Text::default(),
            kind: SpanKind::Manual,
            start,
            duration_us: 0,
            on_main_thread: self.thread.as_str() == "main",
            status: SpanStatus::Unset,
            network: self.network(),
            uptime_ms: 0,
            attributes: self.attributes(scope, sender),
            page: self.page,
            thread: self.thread,
            code: self.code,
            events: Vec::new(),
            sample_rate: 1.,
        }
    }

    /// Keeps the text of an exception as attributes.
    pub(super) fn keep_exception(&mut self) {
        let Exception {
            kind,
            message,
            stack,
        } = std::mem::take(&mut self.exception);
        let parts = [
            ("exception.type", kind),
            ("exception.message", message),
            ("exception.stacktrace", stack),
        ];
        for (name, mut value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
            cut(&mut value);
            self.others.push((name.into(), value));
        }
    }

    /// The attributes of the event, then those of its scope and of its resource. Of those that have one name, the first one counts, but
    /// the name and version of the scope are always its own.
    pub(super) fn attributes(&mut self, scope: &Scope<'a>, sender: &Sender<'a>) -> Attributes<'a> {
        let mut all = std::mem::take(&mut self.others);
        all.reserve_exact(2 + scope.attributes.0.len() + sender.others.len());
        let named = [
            ("otel.scope.name", &scope.name),
            ("otel.scope.version", &scope.version),
        ];
        for (name, value) in named.into_iter().filter(|(_, value)| !value.is_empty()) {
            all.retain(|(known, _)| known.as_str() != name);
            all.push((name.into(), value.clone()));
        }
        let of_scope = scope
            .attributes
            .0
            .iter()
            .map(|one| (&one.key, &one.value.0));
        let of_resource = sender.others.iter().map(|(key, value)| (key, value));
        for (key, value) in of_scope.chain(of_resource) {
            if all.len() > MOST {
                break;
            }
            let is_known = all.iter().any(|(known, _)| known == key);
            if !is_known {
                all.push((key.clone(), value.clone()));
            }
        }
        Attributes(all)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::otlp::Kind;
    use crate::otlp::bounds::{of, text};

    #[test]
    fn an_event_has_its_own_attributes_and_then_those_of_its_scope_under_other_names() {
        let span = json!({"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13",
            "attributes": [text("team", "span"), text("otel.scope.name", "span")]});
        let of_scope = ["team", "otel.scope.tier", "name"];
        let scope =
            json!({"name": "shop.cart", "attributes": of_scope.map(|name| text(name, "scope"))});
        let of_resource = ["team", "tier", "otel.scope.name", "region"];
        let resource = json!({"attributes": of_resource.map(|name| text(name, "resource"))});
        let request = json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": [span]}]}]});
        of(Kind::Traces, &request, |read| {
            let batches = read.unwrap().batches;
            let attributes = batches[0].spans[0].attributes.0.iter();
            let attributes: Vec<_> = attributes
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            let expected = [
                ("team", "span"),
                ("otel.scope.name", "shop.cart"),
                ("otel.scope.team", "scope"),
                ("otel.scope.tier", "scope"),
                ("tier", "resource"),
                ("region", "resource"),
            ];
            assert_eq!(attributes, expected);
        });
    }

    #[test]
    fn data_points_have_no_attribute_for_their_schema() {
        let data = json!({"name": "load", "gauge": {"dataPoints": [{"asInt": 1}]}});
        let scope = json!({"schemaUrl": "https://a.example/1", "metrics": [data]});
        let request = json!({"resourceMetrics": [{"schemaUrl": "https://a.example/2", "scopeMetrics": [scope]}]});
        of(Kind::Metrics, &request, |read| {
            let batches = read.unwrap().batches;
            let mut attributes = batches[0].metrics[0].attributes.0.iter();
            assert!(attributes.all(|(name, _)| name.as_str() != "otel.scope.schema_url"));
        });
    }
}
