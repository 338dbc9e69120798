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
use super::stack_text::{self, STACK};
use super::value::KeyValue;
use super::wire::Value;

/// The maximum number of attributes and of log entries of an event. The checks of events drop further ones.
pub(super) const MOST: usize = 64;

/// The attributes that have no field, with those of the scope: enough for most events, so that their list is allocated once.
const USUAL: usize = 8;

const CONNECTION: &str = "network.connection.type";
const GENERATION: &str = "network.connection.subtype";

const CONNECTIONS: [(&str, Network); 4] = [
    ("wifi", Network::Wifi),
    ("wired", Network::Ethernet),
    ("unavailable", Network::None),
    ("cell", Network::Cellular),
];

/// The names of the semantic conventions, and those that Android (`1xRTT`) and iOS (`WCDMA`, `HRPD`) have besides.
const GENERATIONS: [(&str, Network); 23] = [
    ("gprs", Network::Cellular2g),
    ("edge", Network::Cellular2g),
    ("cdma", Network::Cellular2g),
    ("gsm", Network::Cellular2g),
    ("iden", Network::Cellular2g),
    ("cdma2000_1xrtt", Network::Cellular2g),
    ("1xrtt", Network::Cellular2g),
    ("umts", Network::Cellular3g),
    ("wcdma", Network::Cellular3g),
    ("hsdpa", Network::Cellular3g),
    ("hsupa", Network::Cellular3g),
    ("hspa", Network::Cellular3g),
    ("hspap", Network::Cellular3g),
    ("evdo_0", Network::Cellular3g),
    ("evdo_a", Network::Cellular3g),
    ("evdo_b", Network::Cellular3g),
    ("ehrpd", Network::Cellular3g),
    ("hrpd", Network::Cellular3g),
    ("td_scdma", Network::Cellular3g),
    ("lte", Network::Cellular4g),
    ("lte_ca", Network::Cellular4g),
    ("nr", Network::Cellular5g),
    ("nrnsa", Network::Cellular5g),
];

/// Looks a name up without regard to case: systems write `LTE`, the semantic conventions `lte`.
fn network_named(names: &[(&str, Network)], name: &str) -> Option<Network> {
    let named = names
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name));
    named.map(|(_, network)| *network)
}

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

impl<'a> Exception<'a> {
    /// The type, or the name that the semantic conventions give to an event with an exception. `None` if there is no exception.
    pub(super) fn name(&self) -> Option<Text<'a>> {
        let Self {
            kind,
            message,
            stack,
        } = self;
        if !kind.is_empty() {
            return Some(kind.clone());
        }
        let is_known = !message.is_empty() || !stack.is_empty();
        is_known.then(|| "exception".into())
    }
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
        let Short(attributes, _) = Short::deserialize(deserializer)?;
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
        match key.as_str() {
            STACK => stack_text::cut(&mut value),
            _ => cut(&mut value),
        }
        cut(&mut key);
        match key.as_str() {
            "app.screen.name" | "screen.name" => self.page = value,
            "thread.name" => self.thread = value,
            "session.id" => self.session_id = Some(id(&value)),
            "user.id" | "enduser.id" => self.user_id = Some(value),
            "event.name" => self.event_name = value,
            CONNECTION => self.connection = value,
            GENERATION => self.generation = value,
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
            STACK => self.exception.stack = value,
            name => {
                self.is_request |= matches!(
                    name,
                    "http.request.method" | "http.method" | "url.full" | "http.url"
                );
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

    /// The network. A type or subtype that is none of the known ones stays an attribute.
    pub(super) fn take_network(&mut self) -> Network {
        let (connection, generation) = (
            std::mem::take(&mut self.connection),
            std::mem::take(&mut self.generation),
        );
        let of_connection = network_named(&CONNECTIONS, &connection);
        let of_generation = network_named(&GENERATIONS, &generation);
        let is_cellular = of_connection == Some(Network::Cellular);
        for (name, value, is_read) in [
            (CONNECTION, connection, of_connection.is_some()),
            (
                GENERATION,
                generation,
                is_cellular && of_generation.is_some(),
            ),
        ] {
            if !is_read && !value.is_empty() && !value.eq_ignore_ascii_case("unknown") {
                self.others.push((name.into(), value));
            }
        }
        let of_cellular = of_generation.filter(|_| is_cellular);
        of_cellular.or(of_connection).unwrap_or_default()
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
            network: self.take_network(),
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
            (STACK, stack_text::shortened(stack, TEXT)),
        ];
        for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
            self.others.push((name.into(), value));
        }
    }

    /// Keeps as attributes what metrics have no field for.
    pub(super) fn keep_place(&mut self) {
        let Code {
            class,
            function,
            file,
            line,
        } = std::mem::take(&mut self.code);
        let line = match line {
            0 => Text::default(),
            line => line.to_string().into(),
        };
        let parts = [
            ("thread.name", std::mem::take(&mut self.thread)),
            ("code.namespace", class),
            ("code.function.name", function),
            ("code.file.path", file),
            ("code.line.number", line),
        ];
        for (name, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
            self.others.push((name.into(), value));
        }
    }

    /// Keeps the name of an event as an attribute of what has another name.
    pub(super) fn keep_event_name(&mut self) {
        let name = std::mem::take(&mut self.event_name);
        if !name.is_empty() {
            self.others.push(("event.name".into(), name));
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

    use super::*;
    use crate::otlp::Kind;
    use crate::otlp::bounds::{attribute, of, text};

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
    fn networks_are_named_in_any_case_and_an_unknown_name_stays_an_attribute() {
        for (connection, generation, network, kept) in [
            ("cell", "LTE", Network::Cellular4g, ["", ""]),
            ("cell", "lte_ca", Network::Cellular4g, ["", ""]),
            ("cell", "NR", Network::Cellular5g, ["", ""]),
            ("cell", "NRNSA", Network::Cellular5g, ["", ""]),
            ("cell", "HSPA", Network::Cellular3g, ["", ""]),
            ("cell", "WCDMA", Network::Cellular3g, ["", ""]),
            ("cell", "HRPD", Network::Cellular3g, ["", ""]),
            ("cell", "EDGE", Network::Cellular2g, ["", ""]),
            ("cell", "1xRTT", Network::Cellular2g, ["", ""]),
            ("Cell", "IWLAN", Network::Cellular, ["", "IWLAN"]),
            ("cell", "UNKNOWN", Network::Cellular, ["", ""]),
            ("wifi", "", Network::Wifi, ["", ""]),
            ("wifi", "LTE", Network::Wifi, ["", "LTE"]),
            ("vpn", "", Network::Unknown, ["vpn", ""]),
            ("unknown", "", Network::Unknown, ["", ""]),
        ] {
            let attributes = [text(CONNECTION, connection), text(GENERATION, generation)];
            let span = json!({"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13", "attributes": attributes});
            let request = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
            of(Kind::Traces, &request, |read| {
                let batches = read.unwrap().batches;
                let span = &batches[0].spans[0];
                assert_eq!(span.network, network, "{connection} {generation}");
                let values =
                    [CONNECTION, GENERATION].map(|name| attribute(span, name).unwrap_or_default());
                assert_eq!(values, kept, "{connection} {generation}");
            });
        }
    }

    #[test]
    fn what_an_event_has_no_field_for_stays_an_attribute() {
        let names = [
            "thread.name",
            "code.namespace",
            "code.function.name",
            "code.file.path",
            "code.line.number",
            "exception.type",
            "exception.message",
            "event.name",
        ];
        let sent = json!(names.map(|name| text(name, "7")));
        let point = json!({"asInt": 1, "attributes": sent});
        let data = json!({"name": "load", "gauge": {"dataPoints": [point]}});
        let request = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [data]}]}]});
        let kept = |Attributes(attributes): &Attributes<'_>| -> Vec<String> {
            let names = attributes.iter().map(|(name, _)| name.to_string());
            names.collect()
        };
        of(Kind::Metrics, &request, |read| {
            let batches = read.unwrap().batches;
            assert_eq!(kept(&batches[0].metrics[0].attributes), names);
        });
        let span = json!({"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13", "attributes": sent});
        let request = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
        of(Kind::Traces, &request, |read| {
            let batches = read.unwrap().batches;
            assert_eq!(kept(&batches[0].spans[0].attributes), names[5..]);
        });
        let record = json!({"eventName": "tap", "attributes": sent});
        let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]});
        of(Kind::Logs, &request, |read| {
            let batches = read.unwrap().batches;
            assert_eq!(batches[0].spans[0].name.as_str(), "tap");
            assert_eq!(kept(&batches[0].spans[0].attributes), names[5..]);
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
