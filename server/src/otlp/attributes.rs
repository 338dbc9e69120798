//! The attributes of spans, log records and data points for which events have a field. Names are those of the semantic conventions 1.44
//! (`app`, `code`, `exception`, `network`, `session`, `thread`, `user`), and the older ones in use.

use serde::{Deserialize, Deserializer};
use unjank_protocol::{
    Attributes, Code, Network, Span, SpanId, SpanKind, SpanStatus, Text, Timestamp, TraceId,
};
use uuid::Uuid;

use super::Unreadable;
use super::message::{Field, Raw, Short, bytes};
use super::resource::{Scope, Sender, id};
use super::value::KeyValue;
use super::wire::Value;

/// The rate at which the app samples, if its sampler does not write it into the trace state. A name of our own: there is none for it.
pub(super) const SAMPLE_RATE: &str = "unjank.sample_rate";

/// The most attributes of an event. Further ones are cut when it is checked.
const MOST: usize = 64;

/// The most bytes of a text, as the protocol has it. Texts are cut before anything copies them: those of a resource are copied for each event.
pub(super) const TEXT: usize = 1024;
/// The most bytes of a stack, of which 128 frames are kept.
const STACK: usize = 64 << 10;

pub(super) fn cut(text: &mut Text<'_>) {
    text.truncate(TEXT);
}

/// A sample rate, or `None` if it is missing. What is no number is `NaN`, with which the event is rejected: a rate of 1 would count wrong.
pub(super) fn sample_rate(text: &str) -> Option<f64> {
    let is_sent = !text.trim().is_empty();
    is_sent.then(|| text.trim().parse().unwrap_or(f64::NAN))
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
        value.truncate(if is_stack { STACK } else { TEXT });
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
                self.code.line = value.parse().unwrap_or_default();
            }
            SAMPLE_RATE => self.sample_rate = sample_rate(&value),
            "exception.type" => self.exception.kind = value,
            "exception.message" => self.exception.message = value,
            "exception.stacktrace" => self.exception.stack = value,
            name => {
                self.is_request |=
                    matches!(name, "http.request.method" | "http.method" | "url.full");
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

    /// The attributes of the event, then those of its scope and of its resource. An event that has a name keeps its own value.
    pub(super) fn attributes(&mut self, scope: &Scope<'a>, sender: &Sender<'a>) -> Attributes<'a> {
        let mut all = std::mem::take(&mut self.others);
        let own = all.len();
        all.reserve_exact(2 + scope.attributes.0.len() + sender.others.len());
        let named = [
            ("otel.scope.name", &scope.name),
            ("otel.scope.version", &scope.version),
        ];
        for (name, value) in named.into_iter().filter(|(_, value)| !value.is_empty()) {
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
            let is_own = all.iter().take(own).any(|(own, _)| own == key);
            if !is_own {
                all.push((key.clone(), value.clone()));
            }
        }
        Attributes(all)
    }
}
