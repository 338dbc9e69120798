//! Requests of OpenTelemetry (OTLP 1.11) as batches: `traces`, `logs` and `metrics`, as protobuf or JSON.
//!
//! A request has the events of many resources and sessions, and a batch those of one, so a request becomes several batches with the id of
//! the request. Each file says which names it reads. What has no field of its own is kept as an attribute.

mod attribute_values;
mod attributes;
mod distribution;
mod grpc_message;
mod logs;
mod message;
mod metric_kit;
mod metrics;
mod old_http_names;
mod request;
mod resource;
mod scalars;
mod spans;
mod stack_text;
mod value;
mod wire;

#[cfg(test)]
mod bounds;

use std::collections::HashMap;

use sha2::{Digest, Sha256};
use unjank_foundation::ids::hashed_id;
use unjank_protocol::{Attributes, Batch, Jank, Metric, Signal, Span, SpanEvent, Text};
use uuid::Uuid;

pub use self::grpc_message::{NotOneMessage, PREFIX, only_message};

use self::message::{Raw, from_json, from_proto};
use self::request::{Export, OfScope};
use self::resource::{Scope, Sender};
use crate::ingest::{Body, MOST_BATCHES, Reject};

/// What a request contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Traces,
    Logs,
    Metrics,
}

/// How a request is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Protobuf,
    Json,
}

/// A request that cannot be read, with nothing stored of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("the body is not a request of OTLP: {0}")]
    Malformed(String),
    #[error("the request has more than {limit} {what}: send fewer at a time")]
    TooMany { what: &'static str, limit: usize },
}

impl Unreadable {
    fn proto(detail: &str) -> Self {
        Self::Malformed(detail.to_owned())
    }

    fn json(error: &serde_json::Error) -> Self {
        Self::Malformed(error.to_string().chars().take(200).collect())
    }
}

/// The events of a request.
#[derive(Debug, Default)]
pub struct Request<'a> {
    pub batches: Vec<Batch<'a>>,
    /// Events that cannot be read.
    pub undecoded: Vec<(Signal, Reject)>,
}

/// Memory for the attributes of all events, with those that they share: enough for 10,000 events with 30 attributes each.
const ATTRIBUTES_BYTES: usize = 32 << 20;

/// Reads a request. `most_events` limits the events of all resources.
pub fn read<'a>(
    body: &'a Body<'_>,
    kind: Kind,
    form: Form,
    most_events: usize,
) -> Result<Request<'a>, Unreadable> {
    // A retry has the same bytes, so their hash is the id of the batch.
    let hash = Sha256::new()
        .chain_update([kind as u8])
        .chain_update(body.bytes())
        .finalize();
    let batch_id = hashed_id(&hash);
    let reader = |export| Reader::new(kind, batch_id, most_events).run(export);
    if form == Form::Protobuf {
        return reader(from_proto(body.bytes())?);
    }
    let read = |text| reader(from_json(text)?);
    let sent = body.as_sent().map(read);
    match sent {
        Some(Ok(request)) if request.undecoded.is_empty() => return Ok(request),
        _ => {}
    }
    match (body.repaired(), sent) {
        (Some(repaired), _) => read(repaired),
        (None, Some(sent)) => sent,
        (None, None) => Err(Unreadable::proto("it is not UTF-8")),
    }
}

/// Collects events into batches.
struct Reader<'a> {
    kind: Kind,
    batch_id: Uuid,
    room: Room,
    request: Request<'a>,
    /// The batch of each resource, session and user.
    places: HashMap<Place<'a>, usize>,
    /// Most events have the place of the one before.
    last: Option<(Place<'a>, usize)>,
}

/// The number of a resource in the request, the session and the user.
type Place<'a> = (usize, Uuid, Text<'a>);

impl From<Unreadable> for Reject {
    fn from(error: Unreadable) -> Self {
        let detail = match error {
            // Lines and columns are those of the event, which nobody can find in the body.
            Unreadable::Malformed(detail) => {
                let detail = detail.split(" at line ").next().unwrap_or_default();
                format!("the event cannot be read: {detail}")
            }
            Unreadable::TooMany { .. } => error.to_string(),
        };
        Self::new("invalid_event", detail)
    }
}

/// One event, and the session and user that it names itself.
struct Found<'a> {
    event: Event<'a>,
    session_id: Option<Uuid>,
    user_id: Option<Text<'a>>,
}

enum Event<'a> {
    Span(Box<Span<'a>>),
    Jank(Box<Jank<'a>>),
    Metric(Box<Metric<'a>>),
}

impl Event<'_> {
    /// The memory that its lists and the texts of its attributes take.
    fn bytes(&self) -> usize {
        match self {
            Self::Span(span) => {
                bytes_of(&span.attributes) + span.events.len() * size_of::<SpanEvent<'_>>()
            }
            Self::Metric(metric) => bytes_of(&metric.attributes),
            Self::Jank(jank) => size_of_val(&*jank.stack),
        }
    }
}

fn bytes_of(Attributes(attributes): &Attributes<'_>) -> usize {
    let texts = attributes
        .iter()
        .map(|(key, value)| key.len() + value.len());
    size_of_val(attributes.as_slice()) + texts.sum::<usize>()
}

/// What a request may still take.
struct Room {
    most_events: usize,
    events: usize,
    bytes: usize,
}

impl Room {
    /// Takes room for events with attributes of so many bytes in all. Ask before they are copied.
    fn take(&mut self, events: usize, bytes: usize) -> Result<(), Unreadable> {
        self.events = self.events.saturating_add(events);
        self.bytes = self.bytes.saturating_add(bytes);
        let (what, limit) = if self.events > self.most_events {
            ("events", self.most_events)
        } else if self.bytes > ATTRIBUTES_BYTES {
            ("bytes of attributes", ATTRIBUTES_BYTES)
        } else {
            return Ok(());
        };
        Err(Unreadable::TooMany { what, limit })
    }
}

impl<'a> Reader<'a> {
    fn new(kind: Kind, batch_id: Uuid, most_events: usize) -> Self {
        Self {
            kind,
            batch_id,
            room: Room {
                most_events,
                events: 0,
                bytes: 0,
            },
            request: Request::default(),
            places: HashMap::new(),
            last: None,
        }
    }

    fn run(mut self, export: Export<'a>) -> Result<Request<'a>, Unreadable> {
        for (index, resource) in export.resources.items()?.into_iter().enumerate() {
            let of_resource = resource.decode()?;
            let sender = Sender::new(of_resource.resource);
            let schema = of_resource.schema_url;
            for scope in of_resource.scopes.items()? {
                let OfScope {
                    mut scope,
                    items,
                    schema_url,
                } = scope.decode()?;
                scope.0.prefix_names();
                let has_schema = self.kind != Kind::Metrics;
                let schemas = has_schema.then(|| [schema_url, schema.clone()]);
                scope.0.add_schema(schemas.iter().flatten());
                scope.0.cut_texts();
                let mut items = items.items()?.into_iter();
                items.try_for_each(|item| self.item(item, &scope.0, (index, &sender)))?;
            }
        }
        Ok(self.request)
    }

    fn item(
        &mut self,
        item: Raw<'a>,
        scope: &Scope<'a>,
        from: (usize, &Sender<'a>),
    ) -> Result<(), Unreadable> {
        let (_, sender) = from;
        match self.kind {
            Kind::Traces => {
                let span = spans::span(item, scope, sender);
                if let Ok(found) = &span {
                    metric_kit::metrics(found)
                        .try_for_each(|metric| self.add(Ok(metric), Signal::Metrics, from))?;
                }
                self.add(span, Signal::Spans, from)
            }
            Kind::Logs => {
                let unique = self
                    .batch_id
                    .as_u128()
                    .wrapping_add(self.room.events as u128);
                self.add(
                    logs::event(item, scope, sender, unique),
                    Signal::Spans,
                    from,
                )
            }
            Kind::Metrics => {
                let points = metrics::points(item, scope, sender, &mut self.room)?;
                points
                    .into_iter()
                    .try_for_each(|point| self.put(point, Signal::Metrics, from))
            }
        }
    }

    fn add(
        &mut self,
        found: Result<Found<'a>, Reject>,
        signal: Signal,
        from: (usize, &Sender<'a>),
    ) -> Result<(), Unreadable> {
        let bytes = found.as_ref().map_or(0, |found| found.event.bytes());
        self.room.take(1, bytes)?;
        self.put(found, signal, from)
    }

    /// Puts an event for which there is room into its batch.
    fn put(
        &mut self,
        found: Result<Found<'a>, Reject>,
        signal: Signal,
        (index, sender): (usize, &Sender<'a>),
    ) -> Result<(), Unreadable> {
        let Found {
            event,
            session_id,
            user_id,
        } = match found {
            Ok(found) => found,
            Err(reject) => {
                self.request.undecoded.push((signal, reject));
                // A request with no valid event has a batch, too, so that its events are counted.
                self.batch((index, sender.session_id, &sender.resource.user_id), sender)?;
                return Ok(());
            }
        };
        let session_id = session_id.unwrap_or(sender.session_id);
        let user_id = user_id.as_ref().unwrap_or(&sender.resource.user_id);
        let batch = self.batch((index, session_id, user_id), sender)?;
        match event {
            Event::Span(span) => batch.spans.push(*span),
            Event::Jank(jank) => batch.janks.push(*jank),
            Event::Metric(metric) => batch.metrics.push(*metric),
        }
        Ok(())
    }

    fn batch(
        &mut self,
        (index, session_id, user_id): (usize, Uuid, &Text<'a>),
        sender: &Sender<'a>,
    ) -> Result<&mut Batch<'a>, Unreadable> {
        let batches = &mut self.request.batches;
        if let Some(((of_resource, session, user), at)) = &self.last
            && (*of_resource, *session, user) == (index, session_id, user_id)
        {
            return Ok(&mut batches[*at]);
        }
        let place = (index, session_id, user_id.clone());
        let at = match self.places.get(&place) {
            Some(at) => *at,
            None if batches.len() == MOST_BATCHES => {
                let what = "resources, sessions and users";
                return Err(Unreadable::TooMany {
                    what,
                    limit: MOST_BATCHES,
                });
            }
            None => {
                let mut resource = sender.resource.clone();
                resource.user_id = place.2.clone();
                batches.push(Batch {
                    batch_id: self.batch_id,
                    resource,
                    session_id: place.1,
                    ..Batch::default()
                });
                self.places.insert(place.clone(), batches.len() - 1);
                batches.len() - 1
            }
        };
        self.last = Some((place, at));
        Ok(&mut batches[at])
    }
}
