//! The columns that all signals share, and the row of each batch in `batches`.

use unjank_foundation::clock::{DAY, UnixTime};
use unjank_protocol::{Batch, Network, Resource, Timestamp};
use uuid::Uuid;

use super::Context;
use crate::records::{FrameBuilder, Kind, uuid_bytes};

/// The table of a signal.
pub(super) trait Table {
    const NAME: &'static str;
}

/// The values that are equal for all events of a batch.
pub(super) struct Envelope<'e> {
    pub(super) project: &'e str,
    pub(super) resource: &'e Resource<'e>,
    pub(super) session_id: Uuid,
    pub(super) config_revision: u64,
    pub(super) received_at: UnixTime,
    pub(super) wire_bytes: usize,
}

/// The session of a batch. Without one, the batches of an install on a day are one session, so that installs stay apart.
fn session(batch: &Batch<'_>, received_at: UnixTime) -> Uuid {
    if !batch.session_id.is_nil() {
        return batch.session_id;
    }
    let day = received_at.floor(DAY).as_secs().unsigned_abs();
    Uuid::from_u128(batch.resource.install_id.as_u128() ^ u128::from(day))
}

impl<'e> Envelope<'e> {
    pub(super) fn new(batch: &'e Batch<'e>, context: &'e Context<'_>) -> Self {
        Self {
            project: &context.device.project,
            resource: &batch.resource,
            session_id: session(batch, context.received_at),
            config_revision: batch.config_revision.unwrap_or_default(),
            received_at: context.received_at,
            wire_bytes: context.wire_bytes,
        }
    }

    /// Writes the columns that every table but `stacks` begins with.
    pub(super) fn columns(&self, frame: &mut FrameBuilder) {
        let resource = self.resource;
        frame.same_text(Kind::Sym, "project", self.project);
        frame.same_text(Kind::Sym, "app_id", &resource.app_id);
        frame.same(
            Kind::Uuid,
            "install_id",
            uuid_bytes(resource.install_id.as_u128()),
        );
        frame.same(
            Kind::Uuid,
            "session_id",
            uuid_bytes(self.session_id.as_u128()),
        );
        frame.same(Kind::Micros, "received_at", self.received_at.to_le_bytes());
        frame.same_text(Kind::Sym, "app_version", &resource.app_version);
        frame.same(Kind::U64, "build", resource.build.to_le_bytes());
        frame.same_text(Kind::Sym, "channel", &resource.channel);
        frame.same_text(Kind::Sym, "mode", &resource.mode);
        frame.same_text(Kind::Sym, "os_name", &resource.os_name);
        frame.same_text(Kind::Sym, "os_version", &resource.os_version);
        frame.same_text(Kind::Sym, "device_model", &resource.device_model);
        frame.same_text(
            Kind::Sym,
            "device_manufacturer",
            &resource.device_manufacturer,
        );
        frame.same_text(Kind::Sym, "device_class", &resource.device_class);
        frame.same_text(Kind::Sym, "locale", &resource.locale);
        frame.same_text(Kind::Str, "user_id", &resource.user_id);
        frame.same(
            Kind::U64,
            "config_revision",
            self.config_revision.to_le_bytes(),
        );
    }
}

pub(super) struct BatchCounts {
    pub(super) accepted: u64,
    pub(super) rejected: u64,
    pub(super) skew_us: i64,
    pub(super) sent_at: Option<Timestamp>,
}

/// The row of the batch itself. Its id lets the writer recognize a retry.
pub(super) fn batch_rows(
    envelope: &Envelope<'_>,
    batch: &Batch<'_>,
    counts: &BatchCounts,
) -> FrameBuilder {
    let mut frame = FrameBuilder::new("batches", 1);
    envelope.columns(&mut frame);
    frame.same(Kind::Uuid, "batch_id", uuid_bytes(batch.batch_id.as_u128()));
    // A device's clock may be set to any time. The column clamps it; the skew is exact.
    let sent_at = counts
        .sent_at
        .map_or(0, |time| time.as_micros().clamp(0, 7_258_118_400_000_000));
    frame.same(Kind::Micros, "sent_at", sent_at.to_le_bytes());
    frame.same(Kind::I64, "skew_us", counts.skew_us.to_le_bytes());
    frame.same_text(Kind::Sym, "sdk_name", &envelope.resource.sdk_name);
    frame.same_text(Kind::Sym, "sdk_version", &envelope.resource.sdk_version);
    frame.same(Kind::U64, "accepted", counts.accepted.to_le_bytes());
    frame.same(Kind::U64, "rejected", counts.rejected.to_le_bytes());
    frame.same(
        Kind::U64,
        "wire_bytes",
        (envelope.wire_bytes as u64).to_le_bytes(),
    );
    frame
}

/// Column types that several signals use.
pub(super) trait Columns {
    fn u16s(&mut self, name: &str, values: impl Iterator<Item = u16>);
    fn u32s(&mut self, name: &str, values: impl Iterator<Item = u32>);
    fn u64s(&mut self, name: &str, values: impl Iterator<Item = u64>);
    fn f64s(&mut self, name: &str, values: impl Iterator<Item = f64>);
    fn flags(&mut self, name: &str, values: impl Iterator<Item = bool>);
    fn times(&mut self, name: &str, values: impl Iterator<Item = Timestamp>);
    /// Milliseconds that were checked to be within 0 to 24 h.
    fn millis(&mut self, name: &str, values: impl Iterator<Item = i64>);
    /// Milliseconds of which some are missing.
    fn optional_millis(&mut self, name: &str, values: impl Iterator<Item = Option<i64>> + Clone);
    fn networks(&mut self, values: impl Iterator<Item = Network>);
}

impl Columns for FrameBuilder {
    fn u16s(&mut self, name: &str, values: impl Iterator<Item = u16>) {
        self.fixed(Kind::U16, name, values.map(u16::to_le_bytes));
    }

    fn u32s(&mut self, name: &str, values: impl Iterator<Item = u32>) {
        self.fixed(Kind::U32, name, values.map(u32::to_le_bytes));
    }

    fn u64s(&mut self, name: &str, values: impl Iterator<Item = u64>) {
        self.fixed(Kind::U64, name, values.map(u64::to_le_bytes));
    }

    fn f64s(&mut self, name: &str, values: impl Iterator<Item = f64>) {
        self.fixed(Kind::F64, name, values.map(f64::to_le_bytes));
    }

    fn flags(&mut self, name: &str, values: impl Iterator<Item = bool>) {
        self.fixed(Kind::Bool, name, values.map(|flag| [u8::from(flag)]));
    }

    fn times(&mut self, name: &str, values: impl Iterator<Item = Timestamp>) {
        self.fixed(
            Kind::Micros,
            name,
            values.map(|time| time.as_micros().to_le_bytes()),
        );
    }

    fn millis(&mut self, name: &str, values: impl Iterator<Item = i64>) {
        self.u32s(
            name,
            values.map(|millis| u32::try_from(millis).unwrap_or_default()),
        );
    }

    fn optional_millis(&mut self, name: &str, values: impl Iterator<Item = Option<i64>> + Clone) {
        self.optional_u32s(
            name,
            values.map(|value| value.and_then(|millis| u32::try_from(millis).ok())),
        );
    }

    fn networks(&mut self, values: impl Iterator<Item = Network>) {
        self.symbols("network", values.map(Network::as_str));
    }
}
