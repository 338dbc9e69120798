//! Events of one session, collected until they fill a batch. Each is added to the columns of the batch when it is made.

use std::collections::BTreeMap;

use unjank_columns::Writer;
use unjank_protocol::{Batch, Resource, SdkHealth, Signal, Span, Traffic};
use uuid::Uuid;

use super::batch::{Packer, SealError, Sealed, counts, sealed};
use super::form::Form;
use super::modules;
use crate::event::Event;

/// Events of one session that are in no batch yet.
#[derive(Debug)]
pub(crate) struct Pending {
    /// The batch without what is in `writer`. It has the stalls, because their modules are collected when it is sealed.
    pub(crate) head: Batch<'static>,
    /// Keeps its memory from one batch to the next.
    writer: Option<Box<Writer>>,
    /// The events in `writer`.
    added: BTreeMap<Signal, u32>,
    len: usize,
    packer: Packer,
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
            writer: None,
            added: BTreeMap::new(),
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

    /// The batch so far, as columns. What was collected stays.
    pub(crate) fn so_far(&self) -> Vec<u8> {
        let mut writer = self.writer.clone().unwrap_or_default();
        writer.finish(&self.head)
    }

    pub(crate) fn set_user(&mut self, user_id: &str) {
        self.head.resource.user_id = user_id.to_owned().into();
    }

    pub(crate) fn user(&self) -> &str {
        &self.head.resource.user_id
    }

    pub(crate) fn add(&mut self, event: Event) {
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
                self.head.janks.push(jank);
            }
        }
    }

    pub(crate) fn add_span(&mut self, span: &Span<'_>) {
        self.append(Signal::Spans, span);
    }

    fn append(&mut self, signal: Signal, event: &impl unjank_columns::Event) {
        self.len += 1;
        *self.added.entry(signal).or_default() += 1;
        self.writer.get_or_insert_default().add(event);
    }

    pub(crate) fn set_health(&mut self, health: SdkHealth<'static>) {
        self.len += usize::from(self.head.sdk_health.is_none());
        self.head.sdk_health = Some(health);
    }

    /// Makes a batch of what was collected; nothing is left.
    pub(crate) fn seal(&mut self, config_revision: u64) -> Result<Sealed, SealError> {
        let mut rest = self.rest();
        std::mem::swap(&mut rest.packer, &mut self.packer);
        std::mem::swap(&mut rest.writer, &mut self.writer);
        let Self {
            mut head, added, ..
        } = std::mem::replace(self, rest);
        head.config_revision = Some(config_revision);
        modules::share(&mut head);
        let mut events = counts(&head);
        events.extend(added);
        let columns = self.writer.get_or_insert_default().finish(&head);
        sealed(&head, (Form::Columns, columns), events, &mut self.packer)
    }

    /// Gives back the memory that collecting and sealing take.
    pub(crate) fn relax(&mut self) {
        self.packer.rest();
        if self.len == 0 {
            self.writer = None;
        }
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
