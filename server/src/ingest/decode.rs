//! Decodes JSON into a batch and enforces the limits while it reads.
//!
//! One typed pass reads the whole batch. If it fails, a second pass reads event by event, so that one malformed event costs one event.

use std::fmt::{self, Formatter};
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor,
};
use serde_json::error::Category;
use serde_json::value::RawValue;
use unjank_protocol::{
    AtMost, Batch, Limits, Module, NotEmpty, Resource, Signal, WholeNumber, for_each_signal,
};
use uuid::Uuid;

use super::rejections::Rejections;
use super::{Body, Refusal, faults};
use crate::ingest::event_checks::Event;
use crate::ingest::reject::Reject;

/// Memory for the attributes, stacks and other lists inside the events of one batch: enough for 10,000 events with 30 attributes each, or
/// for 90,000 frames.
pub(super) const LISTS_BYTES: usize = 16 << 20;

pub(super) struct Decoded<'a> {
    pub(super) batch: Batch<'a>,
    /// Malformed events.
    pub(super) rejections: Rejections,
}

pub(super) fn decode<'a>(body: &'a Body<'_>, limits: &Limits) -> Result<Decoded<'a>, Refusal> {
    let read = |form, text| Decoder::new(limits, form).run(text);
    // Checking the whole body for UTF-8 once costs less than once for every string.
    let sent = body.as_sent();
    let mut read_once = sent.map(|text| read(Form::Typed, text));
    if may_need_repair(read_once.as_ref())
        && let Some(text) = body.repaired()
    {
        read_once = Some(read(Form::Typed, text));
    }
    match read_once {
        Some(Ok(decoded)) => return Ok(decoded),
        Some(Err(Stop::Refused(refusal))) => return Err(refusal),
        _ => {}
    }
    let text = body.repaired().or(sent).unwrap_or_default();
    read(Form::Raw, text).map_err(|stop| match stop {
        Stop::Refused(refusal) => refusal,
        Stop::Json(error, member) if error.classify() == Category::Data => {
            Refusal::Envelope(faults::in_words(member, &error))
        }
        Stop::Json(error, _) => Refusal::NotJson {
            detail: faults::plain(&error),
            line: error.line(),
            column: error.column(),
        },
    })
}

/// Whether a repair may make the body readable. The resource is decoded separately, so bad characters in it appear as a refusal.
fn may_need_repair(read: Option<&Result<Decoded<'_>, Stop>>) -> bool {
    matches!(
        read,
        None | Some(Err(Stop::Json(..) | Stop::Refused(Refusal::Resource(_))))
    )
}

/// How the decoder reads an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Typed: a malformed event ends the pass.
    Typed,
    /// Each event as raw text first, so that a malformed event is rejected alone.
    Raw,
}

enum Stop {
    Refused(Refusal),
    /// With the name of the member that was read.
    Json(serde_json::Error, &'static str),
}

/// The state of one pass: the decoded data, and the limits.
struct Decoder<'l> {
    limits: &'l Limits,
    form: Form,
    events: usize,
    lists_bytes: usize,
    rejections: Rejections,
    /// The name of the member that is read.
    member: &'static str,
    /// Why the pass ended early.
    refusal: Option<Refusal>,
}

impl<'l> Decoder<'l> {
    fn new(limits: &'l Limits, form: Form) -> Self {
        Self {
            limits,
            form,
            events: 0,
            lists_bytes: 0,
            rejections: Rejections::default(),
            member: "",
            refusal: None,
        }
    }

    fn run(mut self, body: &str) -> Result<Decoded<'_>, Stop> {
        let mut json = serde_json::Deserializer::from_str(body);
        let read = BatchSeed(&mut self).deserialize(&mut json);
        match (self.refusal, read) {
            (Some(refusal), _) => Err(Stop::Refused(refusal)),
            (None, Err(error)) => Err(Stop::Json(error, self.member)),
            (None, Ok(batch)) => {
                json.end().map_err(|error| Stop::Json(error, ""))?;
                let rejections = self.rejections;
                Ok(Decoded { batch, rejections })
            }
        }
    }

    /// Ends the pass with a refusal.
    fn refuse<E: Error>(&mut self, refusal: Refusal) -> E {
        self.refusal = Some(refusal);
        E::custom("refused")
    }

    fn count_event<E: Error>(&mut self) -> Result<(), E> {
        self.events += 1;
        if self.events > self.limits.events {
            let limit = self.limits.events;
            return Err(self.refuse(Refusal::TooManyEvents { limit }));
        }
        Ok(())
    }

    fn count_lists<E: Error>(&mut self, event: &impl Event) -> Result<(), E> {
        self.lists_bytes += event.lists_bytes();
        if self.lists_bytes > LISTS_BYTES {
            let limit = LISTS_BYTES;
            return Err(self.refuse(Refusal::ListsTooLarge { limit }));
        }
        Ok(())
    }

    fn resource<'de, E: Error>(&mut self, raw: &'de RawValue) -> Result<Resource<'de>, E> {
        faults::read(raw.get(), "").map_err(|fault| self.refuse(Refusal::Resource(fault)))
    }

    /// Reads a member of the envelope. The second pass reads it as raw text first, so that a fault names its field.
    fn envelope<'de, V, A>(&mut self, map: &mut A) -> Result<V, A::Error>
    where
        V: Deserialize<'de>,
        A: MapAccess<'de>,
    {
        if self.form == Form::Typed {
            return map.next_value();
        }
        let raw: &'de RawValue = map.next_value()?;
        faults::read(raw.get(), self.member).map_err(|fault| self.refuse(Refusal::Envelope(fault)))
    }

    /// Reads an event from its raw text. Rejects a malformed event and returns `None`.
    fn event<'de, V, E>(&mut self, raw: &'de RawValue, index: u32) -> Result<Option<V>, E>
    where
        V: Event + Deserialize<'de>,
        E: Error,
    {
        match serde_json::from_str::<V>(raw.get()) {
            Ok(event) => self.count_lists(&event).map(|()| Some(event)),
            Err(error) => {
                let detail = if self.rejections.lists_another() {
                    faults::of::<V>(raw.get(), "", &error)
                } else {
                    String::new()
                };
                let reject = Reject::new("invalid_event", detail);
                self.rejections.add_undecoded(V::SIGNAL, index, reject);
                Ok(None)
            }
        }
    }
}

type SplitFrom = AtMost<Uuid, { Batch::MAX_SPLIT_FROM }>;
type Modules<'a> = AtMost<Module<'a>, { Batch::MAX_MODULES }>;

/// A member of the batch object.
#[derive(Clone, Copy)]
enum Member {
    BatchId,
    SentAt,
    Resource,
    SessionId,
    ConfigRevision,
    SplitFrom,
    Modules,
    Events(Signal),
    /// A member of a newer protocol.
    Unknown,
}

impl Member {
    /// A bit per known member.
    fn bit(self) -> u32 {
        match self {
            Self::BatchId => 1,
            Self::SentAt => 1 << 1,
            Self::Resource => 1 << 2,
            Self::SessionId => 1 << 3,
            Self::ConfigRevision => 1 << 4,
            Self::SplitFrom => 1 << 5,
            Self::Modules => 1 << 6,
            Self::Events(signal) => 1 << (7 + signal as u32),
            Self::Unknown => 0,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::BatchId => "batch_id",
            Self::SentAt => "sent_at",
            Self::Resource => "resource",
            Self::SessionId => "session_id",
            Self::ConfigRevision => "config_revision",
            Self::SplitFrom => "split_from",
            Self::Modules => "modules",
            Self::Events(signal) => signal.as_str(),
            Self::Unknown => "",
        }
    }
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_identifier(MemberVisitor)
    }
}

struct MemberVisitor;

impl Visitor<'_> for MemberVisitor {
    type Value = Member;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Member, E> {
        Ok(match name {
            "batch_id" => Member::BatchId,
            "sent_at" => Member::SentAt,
            "resource" => Member::Resource,
            "session_id" => Member::SessionId,
            "config_revision" => Member::ConfigRevision,
            "split_from" => Member::SplitFrom,
            "modules" => Member::Modules,
            other => match Signal::from_name(other) {
                Signal::Other => Member::Unknown,
                signal => Member::Events(signal),
            },
        })
    }
}

/// Reads the envelope and its lists.
struct BatchSeed<'d, 'l>(&'d mut Decoder<'l>);

impl<'de> DeserializeSeed<'de> for BatchSeed<'_, '_> {
    type Value = Batch<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Batch<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for BatchSeed<'_, '_> {
    type Value = Batch<'de>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Batch<'de>, A::Error> {
        let decoder = self.0;
        let mut batch = Batch::default();
        let (mut batch_id, mut resource, mut seen) = (None, None, 0_u32);
        while let Some(member) = map.next_key::<Member>()? {
            decoder.member = member.name();
            if seen & member.bit() != 0 {
                let twice = format!("`{}` occurs twice", decoder.member);
                return Err(decoder.refuse(Refusal::Envelope(twice)));
            }
            seen |= member.bit();
            match member {
                Member::BatchId => batch_id = decoder.envelope(&mut map)?,
                Member::SentAt => {
                    batch.sent_at = decoder.envelope::<NotEmpty<_>, _>(&mut map)?.0;
                }
                Member::Resource => resource = Some(decoder.resource(map.next_value()?)?),
                Member::SessionId => {
                    let id = decoder.envelope::<NotEmpty<Uuid>, _>(&mut map)?.0;
                    batch.session_id = id.unwrap_or_default();
                }
                Member::ConfigRevision => {
                    batch.config_revision = decoder.envelope::<WholeNumber, _>(&mut map)?.0;
                }
                Member::SplitFrom => {
                    batch.split_from = decoder.envelope::<SplitFrom, _>(&mut map)?.0;
                }
                Member::Modules => {
                    batch.modules = decoder.envelope::<Modules<'de>, _>(&mut map)?.0;
                }
                Member::Events(named) => {
                    for_each_signal!(&mut batch, |signal, events| if signal == named {
                        *events = ReadEvents::read(decoder, &mut map)?;
                    });
                }
                Member::Unknown => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let Some(resource) = resource else {
            return Err(decoder.refuse(Refusal::Resource("it is missing".to_owned())));
        };
        let Some(batch_id) = batch_id else {
            return Err(decoder.refuse(Refusal::Envelope("`batch_id` is missing".to_owned())));
        };
        (batch.resource, batch.batch_id) = (resource, batch_id);
        Ok(batch)
    }
}

/// The events of one signal, read within the limits of the decoder.
trait ReadEvents<'de>: Sized {
    fn read<A: MapAccess<'de>>(decoder: &mut Decoder<'_>, map: &mut A) -> Result<Self, A::Error>;
}

impl<'de, V: Event + Deserialize<'de>> ReadEvents<'de> for Vec<V> {
    fn read<A: MapAccess<'de>>(decoder: &mut Decoder<'_>, map: &mut A) -> Result<Self, A::Error> {
        map.next_value_seed(ListSeed {
            decoder,
            events: PhantomData,
        })
    }
}

impl<'de, V: Event + Deserialize<'de>> ReadEvents<'de> for Option<V> {
    fn read<A: MapAccess<'de>>(decoder: &mut Decoder<'_>, map: &mut A) -> Result<Self, A::Error> {
        if decoder.form == Form::Typed {
            let event: Self = map.next_value()?;
            if let Some(event) = &event {
                decoder.count_event()?;
                decoder.count_lists(event)?;
            }
            return Ok(event);
        }
        let Some(raw) = map.next_value::<Option<&RawValue>>()? else {
            return Ok(None);
        };
        decoder.count_event()?;
        decoder.event(raw, 0)
    }
}

/// Reads a list of events.
struct ListSeed<'d, 'l, V> {
    decoder: &'d mut Decoder<'l>,
    events: PhantomData<V>,
}

impl<'de, V: Event + Deserialize<'de>> DeserializeSeed<'de> for ListSeed<'_, '_, V> {
    type Value = Vec<V>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<V>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, V: Event + Deserialize<'de>> Visitor<'de> for ListSeed<'_, '_, V> {
    type Value = Vec<V>;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<V>, A::Error> {
        let decoder = self.decoder;
        let mut events = Vec::new();
        if decoder.form == Form::Typed {
            while let Some(event) = list.next_element()? {
                decoder.count_event()?;
                decoder.count_lists(&event)?;
                events.push(event);
            }
            return Ok(events);
        }
        let mut index = 0;
        while let Some(raw) = list.next_element()? {
            decoder.count_event()?;
            events.extend(decoder.event(raw, index)?);
            index += 1;
        }
        Ok(events)
    }

    /// Lua has one type for lists and maps, and writes an empty list as an empty map.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<V>, A::Error> {
        match map.next_key::<IgnoredAny>()? {
            None => Ok(Vec::new()),
            Some(_) => Err(Error::invalid_type(Unexpected::Map, &self)),
        }
    }

    fn visit_unit<E: Error>(self) -> Result<Vec<V>, E> {
        Ok(Vec::new())
    }
}
