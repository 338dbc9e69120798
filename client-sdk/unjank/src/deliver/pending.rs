//! Events of one session, collected until they fill a batch. Each is serialized once, for both the batch and the spill.

use std::collections::BTreeMap;

use unjank_protocol::{Batch, Resource, SdkHealth, Signal, Span, Traffic};
use uuid::Uuid;

use super::batch::{Packer, SealError, Sealed, counts, sealed};
use super::modules;
use crate::event::Event;

/// Events of one session that are in no batch yet.
#[derive(Debug)]
pub(crate) struct Pending {
    /// The batch without what is in `lists`. It has the stalls, because their modules are collected when it is sealed.
    pub(crate) head: Batch<'static>,
    lists: BTreeMap<Signal, List>,
    len: usize,
    packer: Packer,
}

/// The events of one signal as JSON, with commas between them.
#[derive(Debug, Default)]
struct List {
    json: Vec<u8>,
    events: u32,
}

impl Pending {
    pub(crate) fn new(resource: Resource<'static>, session_id: Uuid) -> Self {
        Self {
            head: Batch {
                batch_id: Uuid::now_v7(),
                resource,
                session_id,
                ..Batch::default()
            },
            lists: BTreeMap::new(),
            len: 0,
            packer: Packer::default(),
        }
    }

    /// The same session with nothing collected.
    fn rest(&self) -> Self {
        Self::new(self.head.resource.clone(), self.head.session_id)
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The batch without events, as JSON.
    pub(crate) fn head(&self) -> Result<Vec<u8>, SealError> {
        let head = Batch {
            janks: Vec::new(),
            sdk_health: None,
            ..self.head.clone()
        };
        Ok(serde_json::to_vec(&head)?)
    }

    pub(crate) fn set_user(&mut self, user_id: &str) {
        self.head.resource.user_id = user_id.to_owned().into();
    }

    pub(crate) fn user(&self) -> &str {
        &self.head.resource.user_id
    }

    /// Adds an event. Returns its JSON.
    pub(crate) fn add(&mut self, event: Event) -> &[u8] {
        match event {
            Event::Span(span) => self.add_span(&span),
            Event::FrameWindow(window) => self.append(Signal::FrameWindows, &window),
            Event::Traffic(traffic) => self.append(Signal::Traffic, &traffic),
            Event::PageLoad(load) => self.append(Signal::PageLoads, &load),
            Event::Metric(metric) => self.append(Signal::Metrics, &metric),
            Event::AppStart(start) => self.append(Signal::AppStarts, &start),
            Event::Recomposition(redrawn) => self.append(Signal::Recompositions, &redrawn),
            Event::Jank(jank) => {
                self.len += 1;
                let list = self.lists.entry(Signal::Janks).or_default();
                list.json.clear();
                write(&jank, &mut list.json);
                self.head.janks.push(jank);
                &list.json
            }
        }
    }

    /// Adds a span. Returns its JSON.
    pub(crate) fn add_span(&mut self, span: &Span<'_>) -> &[u8] {
        self.append(Signal::Spans, span)
    }

    fn append(&mut self, signal: Signal, event: &impl serde::Serialize) -> &[u8] {
        self.len += 1;
        let list = self.lists.entry(signal).or_default();
        if list.events > 0 {
            list.json.push(b',');
        }
        list.events += 1;
        let start = list.json.len();
        write(event, &mut list.json);
        list.json.get(start..).unwrap_or_default()
    }

    pub(crate) fn set_health(&mut self, health: SdkHealth<'static>) {
        self.len += usize::from(self.head.sdk_health.is_none());
        self.head.sdk_health = Some(health);
    }

    /// Makes a batch of what was collected; nothing is left.
    pub(crate) fn seal(&mut self, config_revision: u64) -> Result<Sealed, SealError> {
        let mut rest = self.rest();
        std::mem::swap(&mut rest.packer, &mut self.packer);
        let Self {
            mut head, lists, ..
        } = std::mem::replace(self, rest);
        head.config_revision = Some(config_revision);
        modules::share(&mut head);
        let mut events = counts(&head);
        let mut json = serde_json::to_vec(&head)?;
        // The closing brace. It follows the time of sending, which is added later.
        json.pop();
        // A list takes 32 bytes more at most.
        let more = lists.values().map(|list| list.json.len() + 32);
        json.reserve(more.sum());
        for (signal, list) in lists.iter().filter(|(_, list)| list.events > 0) {
            events.push((*signal, list.events));
            json.extend_from_slice(b",\"");
            json.extend_from_slice(signal.as_str().as_bytes());
            json.extend_from_slice(b"\":[");
            json.extend_from_slice(&list.json);
            json.push(b']');
        }
        sealed(&head, &json, events, &mut self.packer)
    }

    /// Gives back the memory that sealing takes.
    pub(crate) fn relax(&mut self) {
        self.packer.rest();
    }

    /// A batch of these rows alone, of this session: the same rows with the same id are stored once.
    pub(crate) fn traffic(
        &self,
        batch_id: Uuid,
        rows: Vec<Traffic<'static>>,
        config_revision: u64,
    ) -> Result<Sealed, SealError> {
        let mut pending = self.rest();
        pending.head.batch_id = batch_id;
        pending.head.traffic = rows;
        pending.seal(config_revision)
    }
}

/// JSON of plain data into memory does not fail.
fn write(event: &impl serde::Serialize, json: &mut Vec<u8>) {
    let _failed = serde_json::to_writer(json, event).is_err();
}
