//! What applies to all events of a batch, as a table of one row.

use unjank_protocol::{Batch, Module, Resource};
use uuid::Uuid;

/// A batch without its events and without the time of sending.
#[derive(Default)]
pub(crate) struct Envelope<'a> {
    pub(crate) batch_id: Uuid,
    pub(crate) session_id: Uuid,
    pub(crate) config_revision: Option<u64>,
    pub(crate) resource: Resource<'a>,
    pub(crate) split_from: Vec<Uuid>,
    pub(crate) modules: Vec<Module<'a>>,
}

impl<'a> Envelope<'a> {
    pub(crate) fn of(batch: &Batch<'a>) -> Self {
        Self {
            batch_id: batch.batch_id,
            session_id: batch.session_id,
            config_revision: batch.config_revision,
            resource: batch.resource.clone(),
            split_from: batch.split_from.clone(),
            modules: batch.modules.clone(),
        }
    }

    pub(crate) fn put_into(self, batch: &mut Batch<'a>) {
        batch.batch_id = self.batch_id;
        batch.session_id = self.session_id;
        batch.config_revision = self.config_revision;
        batch.resource = self.resource;
        batch.split_from = self.split_from;
        batch.modules = self.modules;
    }
}
