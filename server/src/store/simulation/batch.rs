//! The batches of simulated devices, and the records that a server makes of them.

use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use crate::records::columns::{FrameBuilder, Kind, uuid_bytes};
use crate::records::record::{Count, Outcome, Record, RecordBuilder};
use crate::store::raw_tables::RawTable;

/// An event of a device.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) id: u64,
    pub(super) table: &'static str,
    /// Microseconds since the epoch.
    pub(super) at: i64,
}

#[derive(Clone, Debug)]
pub(super) struct Batch {
    pub(super) id: Uuid,
    pub(super) project: &'static str,
    pub(super) split_from: Vec<Uuid>,
    pub(super) events: Vec<Event>,
}

impl Batch {
    /// Encodes the record that the server writes to its log. A newer version has one more column.
    pub(super) fn record(&self, received_at: i64, is_newer: bool) -> Vec<u8> {
        let mut record = RecordBuilder::new(
            self.project,
            self.id,
            &self.split_from,
            UnixTime::from_micros(received_at),
        );
        let of = |table: &str| -> Vec<&Event> {
            let events = self.events.iter();
            events.filter(|event| event.table == table).collect()
        };
        let tables = super::store::EVENTS.map(|table| (table, of(table)));
        for (table, events) in tables.iter().filter(|(_, events)| !events.is_empty()) {
            record.count(Count {
                signal: table,
                outcome: Outcome::Stored,
                reason: "",
                events: events.len() as u32,
            });
        }
        // Some requests have the events of two sessions, in a frame each.
        let sessions = if self.id.as_u128().is_multiple_of(3) {
            2
        } else {
            1
        };
        for (table, events) in &tables {
            let of_sessions = events.chunks(events.len().div_ceil(sessions).max(1));
            for (session, events) in (1..).zip(of_sessions) {
                record.frame(self.frame(table, session, events, is_newer));
            }
        }
        let mut frame = FrameBuilder::new("batches", 1);
        frame.same_text(Kind::Sym, "project", self.project);
        frame.same(Kind::Uuid, "batch_id", uuid_bytes(self.id.as_u128()));
        frame.same(Kind::Micros, "received_at", received_at.to_le_bytes());
        record.frame(frame);
        record.finish()
    }

    fn frame(
        &self,
        table: &'static str,
        session: u32,
        events: &[&Event],
        is_newer: bool,
    ) -> FrameBuilder {
        let mut frame = FrameBuilder::new(table, events.len());
        frame.same_text(Kind::Sym, "project", self.project);
        // Not in the order of the frames, so that the writer has to order them.
        let session = self.id.as_u128().rotate_right(session);
        frame.same(Kind::Uuid, "session_id", uuid_bytes(session));
        let time = RawTable::named(table).unwrap().time;
        let times = events.iter().map(|event| event.at.to_le_bytes());
        frame.fixed(Kind::Micros, time, times);
        let ids = events.iter().map(|event| event.id.to_le_bytes());
        frame.fixed(Kind::U64, "id", ids);
        if is_newer {
            frame.same(Kind::U64, "added", 7_u64.to_le_bytes());
        }
        frame
    }

    /// Splits the batch into two halves. Each attempt gives the halves the same ids.
    pub(super) fn halves(&self) -> Option<[Self; 2]> {
        let middle = self.events.len() / 2;
        if middle == 0 {
            return None;
        }
        let mut split_from = self.split_from.clone();
        split_from.push(self.id);
        let half = |which: u128, events: &[Event]| Self {
            id: Uuid::from_u128(
                self.id
                    .as_u128()
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(which),
            ),
            project: self.project,
            split_from: split_from.clone(),
            events: events.to_vec(),
        };
        let (first, second) = self.events.split_at(middle);
        Some([half(1, first), half(2, second)])
    }
}

/// The writer orders the frames of a block by these.
#[test]
fn frames_have_an_hour_and_a_session() {
    let event = |id| Event {
        id,
        table: "spans",
        at: 7_200_000_000,
    };
    let batch = Batch {
        id: Uuid::from_u128(3),
        project: "shop",
        split_from: Vec::new(),
        events: [1, 2].map(event).into(),
    };
    let bytes = batch.record(0, false);
    let spans = RawTable::named("spans").unwrap();
    let frames = Record::read(&bytes).unwrap().frames.into_iter();
    let of_spans = frames.filter(|frame| frame.table == "spans");
    let places: Vec<_> = of_spans
        .map(|frame| spans.hour_and_session(&frame).unwrap())
        .collect();
    assert_eq!(places.len(), 2);
    assert_eq!([places[0].0, places[1].0], [2, 2]);
    assert_ne!(places[0].1, places[1].1);
}
