//! JSON → batch, within the limits while it reads. One typed pass; only a batch with a bad event pays for a second, event by event.

use std::fmt::{self, Formatter};
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::error::Category;
use serde_json::value::RawValue;
use unjank_protocol::{AtMost, Batch, Limits, Resource};
use uuid::Uuid;

use super::Refusal;
use super::check::{Event, Reject};
use super::rejections::Rejections;

/// Memory for the attributes, stacks and other lists inside the events of one batch: 10,000 events with 30 attributes each, or
/// 90,000 frames.
const LISTS_BYTES: usize = 16 << 20;

pub(super) struct Decoded<'a> {
    pub(super) batch: Batch<'a>,
    /// Events that are not of their signal's form.
    pub(super) rejections: Rejections,
}

pub(super) fn decode<'a>(body: &'a [u8], limits: &Limits) -> Result<Decoded<'a>, Refusal> {
    // Once for the whole body costs less than once for every string.
    let body = std::str::from_utf8(body).map_err(|error| Refusal::NotUtf8(error.valid_up_to()))?;
    match Decoder::new(limits, Form::Typed).run(body) {
        Err(Stop::Json(_)) => Decoder::new(limits, Form::Raw).run(body),
        done => done,
    }
    .map_err(|stop| match stop {
        Stop::Refused(refusal) => refusal,
        Stop::Json(error) if error.classify() == Category::Data => Refusal::Envelope(format!(
            "{} (line {}, column {})",
            plain(&error),
            error.line(),
            error.column()
        )),
        Stop::Json(error) => Refusal::NotJson {
            detail: plain(&error),
            line: error.line(),
            column: error.column(),
        },
    })
}

/// The error without its place, which in a fragment means nothing; bounded, since it quotes the input.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    text.chars().take(200).collect()
}

/// How the decoder reads an event.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// At once: a bad event ends the pass.
    Typed,
    /// As text first, so that a bad event is rejected alone.
    Raw,
}

enum Stop {
    Refused(Refusal),
    Json(serde_json::Error),
}

/// What one pass has read so far, and how much more it may read.
struct Decoder<'l> {
    limits: &'l Limits,
    form: Form,
    events: usize,
    lists_bytes: usize,
    rejections: Rejections,
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
            refusal: None,
        }
    }

    fn run(mut self, body: &str) -> Result<Decoded<'_>, Stop> {
        let mut json = serde_json::Deserializer::from_str(body);
        let read = BatchSeed(&mut self).deserialize(&mut json);
        match (self.refusal, read) {
            (Some(refusal), _) => Err(Stop::Refused(refusal)),
            (None, Err(error)) => Err(Stop::Json(error)),
            (None, Ok(batch)) => {
                json.end().map_err(Stop::Json)?;
                let rejections = self.rejections;
                Ok(Decoded { batch, rejections })
            }
        }
    }

    /// Ends the pass.
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
        serde_json::from_str(raw.get())
            .map_err(|error| self.refuse(Refusal::Resource(plain(&error))))
    }

    fn list<'de, V, A>(&mut self, map: &mut A) -> Result<Vec<V>, A::Error>
    where
        V: Event + Deserialize<'de>,
        A: MapAccess<'de>,
    {
        map.next_value_seed(ListSeed {
            decoder: self,
            events: PhantomData,
        })
    }

    /// Reads the event of a signal that has one at most.
    fn single<'de, V, A>(&mut self, map: &mut A) -> Result<Option<V>, A::Error>
    where
        V: Event + Deserialize<'de>,
        A: MapAccess<'de>,
    {
        let Some(raw) = map.next_value::<Option<&RawValue>>()? else {
            return Ok(None);
        };
        self.count_event()?;
        self.event(raw, 0)
    }

    /// Reads an event from its text. A bad one is rejected.
    fn event<'de, V, E>(&mut self, raw: &'de RawValue, index: u32) -> Result<Option<V>, E>
    where
        V: Event + Deserialize<'de>,
        E: Error,
    {
        match serde_json::from_str::<V>(raw.get()) {
            Ok(event) => self.count_lists(&event).map(|()| Some(event)),
            Err(error) => {
                let reject = Reject::new("invalid_event", plain(&error));
                self.rejections.add_undecoded(V::SIGNAL, index, reject);
                Ok(None)
            }
        }
    }
}

type SplitFrom = AtMost<Uuid, { Batch::MAX_SPLIT_FROM }>;

/// The members of a batch.
#[derive(Clone, Copy, Deserialize)]
#[serde(field_identifier, rename_all = "snake_case")]
enum Field {
    BatchId,
    SentAt,
    Resource,
    SessionId,
    ConfigRevision,
    SplitFrom,
    Spans,
    FrameWindows,
    Janks,
    Traffic,
    PageLoads,
    Metrics,
    AppStarts,
    Recompositions,
    SdkHealth,
    /// Of a newer protocol.
    #[serde(other)]
    Unknown,
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
        f.write_str("a batch")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Batch<'de>, A::Error> {
        let decoder = self.0;
        let mut batch = Batch::default();
        let (mut batch_id, mut resource, mut seen) = (None, None, 0_u32);
        while let Some(field) = map.next_key::<Field>()? {
            let bit = 1 << field as u32;
            if seen & bit != 0 && !matches!(field, Field::Unknown) {
                return Err(Error::custom("a member occurs twice"));
            }
            seen |= bit;
            match field {
                Field::BatchId => batch_id = map.next_value()?,
                Field::SentAt => batch.sent_at = map.next_value()?,
                Field::Resource => resource = Some(decoder.resource(map.next_value()?)?),
                Field::SessionId => {
                    batch.session_id = map.next_value::<Option<Uuid>>()?.unwrap_or_default();
                }
                Field::ConfigRevision => batch.config_revision = map.next_value()?,
                Field::SplitFrom => {
                    batch.split_from = map.next_value::<SplitFrom>()?.0;
                }
                Field::Spans => batch.spans = decoder.list(&mut map)?,
                Field::FrameWindows => batch.frame_windows = decoder.list(&mut map)?,
                Field::Janks => batch.janks = decoder.list(&mut map)?,
                Field::Traffic => batch.traffic = decoder.list(&mut map)?,
                Field::PageLoads => batch.page_loads = decoder.list(&mut map)?,
                Field::Metrics => batch.metrics = decoder.list(&mut map)?,
                Field::AppStarts => batch.app_starts = decoder.list(&mut map)?,
                Field::Recompositions => batch.recompositions = decoder.list(&mut map)?,
                Field::SdkHealth => batch.sdk_health = decoder.single(&mut map)?,
                Field::Unknown => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let missing = || decoder.refuse(Refusal::Resource("it is missing".to_owned()));
        batch.resource = resource.ok_or_else(missing)?;
        batch.batch_id = batch_id.ok_or_else(|| Error::missing_field("batch_id"))?;
        Ok(batch)
    }
}

/// Reads the events of one signal.
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

    fn visit_unit<E: Error>(self) -> Result<Vec<V>, E> {
        Ok(Vec::new())
    }
}
