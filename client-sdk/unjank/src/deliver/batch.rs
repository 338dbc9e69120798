//! Batches as they are kept until the server has them.

use std::{fmt, io};

use serde::Serialize;
use unjank_columns::{Bounds, Malformed, Unreadable};
use unjank_protocol::{Batch, Events, Signal, Timestamp, for_each_signal};
use uuid::Uuid;

use super::form::Form;
use super::losses::{Losses, Reason, ReportedLosses};
use crate::clock::Setting;

/// A batch as it is kept until the server has it.
#[derive(Clone, Debug)]
pub(crate) struct Sealed {
    pub(crate) batch_id: Uuid,
    pub(crate) events: Vec<(Signal, u32)>,
    /// The losses that the batch reports.
    pub(crate) reported_losses: ReportedLosses,
    /// The batches that it was cut from, the first one first.
    pub(crate) split_from: Vec<Uuid>,
    /// The clock its events were timed by.
    pub(crate) setting: Setting,
    pub(crate) form: Form,
    /// The batch in this form, as a zstd frame.
    pub(crate) body: Vec<u8>,
}

/// The body of one attempt to send a batch.
#[derive(Debug)]
pub(crate) struct Upload {
    pub(crate) form: Form,
    pub(crate) body: Vec<u8>,
    /// The signals of malformed events, which the body does not have because columns were converted to JSON. The server would reject them.
    pub(crate) left_out: Vec<Signal>,
}

/// More than any batch of this SDK has. The server has the limits.
pub(crate) const BOUNDS: Bounds = Bounds {
    events: 1 << 16,
    list_bytes: 1 << 28,
    text_bytes: 1 << 28,
    list_rows: 1 << 24,
};

/// Why a batch is not written down.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SealError {
    #[error("a batch cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("a batch cannot be compressed or inflated: {0}")]
    Zstd(#[from] io::Error),
    #[error("a batch cannot be read: {0}")]
    Columns(#[from] Unreadable),
}

/// On batches of recorded sessions, level 3 takes a third longer and its result is no smaller.
const ZSTD_LEVEL: i32 = 1;

/// How many events of each signal there are.
pub(crate) fn counts(batch: &Batch<'_>) -> Vec<(Signal, u32)> {
    let mut counts = Vec::new();
    for_each_signal!(&batch, |signal, events| {
        let count = u32::try_from(Events::len(events)).unwrap_or(u32::MAX);
        if count > 0 {
            counts.push((signal, count));
        }
    });
    counts
}

/// The losses that a batch reports.
fn reported_losses(batch: &Batch<'_>) -> ReportedLosses {
    let health = batch.sdk_health.iter();
    let dropped = health.flat_map(|health| &health.dropped);
    dropped
        .map(|lost| (lost.signal, lost.reason.to_string(), lost.count))
        .collect()
}

pub(crate) fn seal(batch: &Batch<'_>) -> Result<Sealed, SealError> {
    let columns = (Form::Columns, unjank_columns::write(batch));
    sealed(batch, columns, counts(batch), &mut Packer::default())
}

/// Seals a batch that has these events. The content is in the given form.
pub(crate) fn sealed(
    head: &Batch<'_>,
    (form, content): (Form, Vec<u8>),
    events: Vec<(Signal, u32)>,
    packer: &mut Packer,
) -> Result<Sealed, SealError> {
    Ok(Sealed {
        batch_id: head.batch_id,
        events,
        reported_losses: reported_losses(head),
        split_from: head.split_from.clone(),
        setting: Setting::default(),
        form,
        body: packer.pack(&content)?,
    })
}

/// Compresses batches. Keeps its memory from one batch to the next, because it takes as long to get as to fill.
#[derive(Default)]
pub(crate) struct Packer(Option<zstd::bulk::Compressor<'static>>);

impl fmt::Debug for Packer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Packer").finish_non_exhaustive()
    }
}

impl Packer {
    fn pack(&mut self, content: &[u8]) -> io::Result<Vec<u8>> {
        let compressor = match &mut self.0 {
            Some(compressor) => compressor,
            none => none.insert(zstd::bulk::Compressor::new(ZSTD_LEVEL)?),
        };
        compressor.compress(content)
    }

    /// Gives the memory back.
    pub(crate) fn rest(&mut self) {
        self.0 = None;
    }
}

#[derive(Serialize)]
struct Sent {
    sent_at: Timestamp,
}

impl Sealed {
    /// The same, of events that this clock timed.
    pub(crate) fn timed_by(mut self, setting: Setting) -> Self {
        self.setting = setting;
        self
    }

    /// Counts the events of a batch that never arrives as lost. Another batch reports the losses that this one reported.
    pub(crate) fn give_up(&self, reason: Reason, losses: &Losses) {
        losses.add_all(&self.events, reason);
        losses.add_reported(&self.reported_losses);
    }

    /// The body of a request: the batch, and when this attempt is made. Two zstd frames, which read as one content. JSON unless the server
    /// reads columns.
    pub(crate) fn request(&self, reads_columns: bool) -> Result<Upload, SealError> {
        let sent_at = self.setting.now();
        let mut upload = Upload {
            form: Form::Json,
            body: Vec::new(),
            left_out: Vec::new(),
        };
        let end = match self.form {
            Form::Columns if reads_columns => {
                (upload.form, upload.body) = (Form::Columns, self.body.clone());
                unjank_columns::sent(sent_at)
            }
            Form::Columns => {
                (upload.body, upload.left_out) = self.as_json()?;
                json_end(sent_at)?
            }
            Form::Json => {
                upload.body.clone_from(&self.body);
                json_end(sent_at)?
            }
        };
        upload.body.extend(zstd::bulk::compress(&end, ZSTD_LEVEL)?);
        Ok(upload)
    }

    /// The body of a batch in columns as a zstd frame of JSON, and the signals of the malformed events, which are left out.
    fn as_json(&self) -> Result<(Vec<u8>, Vec<Signal>), SealError> {
        let columns = zstd::stream::decode_all(self.body.as_slice())?;
        let read = unjank_columns::read(&columns, &BOUNDS)?;
        let mut json = serde_json::to_vec(&read.batch)?;
        // The closing brace. It follows the time of sending.
        json.pop();
        let left_out = read.malformed.iter().map(|one| one.signal).collect();
        Ok((zstd::bulk::compress(&json, ZSTD_LEVEL)?, left_out))
    }

    /// The same events in two batches; nothing when it holds only one. Counts malformed events as lost.
    pub(crate) fn split(&self, losses: &Losses) -> Option<[Self; 2]> {
        let mut content = zstd::stream::decode_all(self.body.as_slice()).ok()?;
        let (mut first, malformed): (Batch<'_>, Vec<Malformed>) = match self.form {
            Form::Json => {
                content.push(b'}');
                (serde_json::from_slice(&content).ok()?, Vec::new())
            }
            Form::Columns => {
                let read = unjank_columns::read(&content, &BOUNDS).ok()?;
                (read.batch, read.malformed)
            }
        };
        if first.events() < 2 {
            return None;
        }
        first.split_from.push(self.batch_id);
        let excess = first.split_from.len().saturating_sub(Batch::MAX_SPLIT_FROM);
        first.split_from.drain(..excess);
        let mut second = first.clone();
        let half = first.events() / 2;
        let mut kept = cuts(half);
        for_each_signal!(&mut first, |_, events| {
            drop(events.split_off(kept(Events::len(events))));
        });
        let mut skipped = cuts(half);
        for_each_signal!(&mut second, |_, events| {
            *events = events.split_off(skipped(Events::len(events)));
        });
        [first.batch_id, second.batch_id] = parts_of(self.batch_id);
        let sealed = |batch: &Batch<'_>| {
            let sealed = seal(batch).ok()?;
            Some(sealed.timed_by(self.setting))
        };
        let halves = [sealed(&first)?, sealed(&second)?];
        for one in malformed {
            losses.add(one.signal, Reason::Refused, 1);
        }
        Some(halves)
    }
}

/// The end of a batch as JSON: when this attempt to send it is made.
fn json_end(sent_at: Timestamp) -> Result<Vec<u8>, SealError> {
    let mut end = serde_json::to_vec(&Sent { sent_at })?;
    if let Some(brace) = end.first_mut() {
        *brace = b',';
    }
    Ok(end)
}

/// The ids of the halves of a batch: the same whenever it is split, by any version of the SDK, and those of no other.
pub(crate) fn parts_of(batch_id: Uuid) -> [Uuid; 2] {
    const VARIANT: u64 = 0b10 << 62;
    let (high, low) = batch_id.as_u64_pair();
    [1, 2].map(|part| {
        let mixed = crate::random::mix(low.wrapping_add(part));
        Uuid::from_u64_pair(high, VARIANT | mixed >> 2)
    })
}

/// Cuts a row of lists after their first `half` events: for the length of each list in turn, returns how many of its events lie before the
/// cut.
fn cuts(half: usize) -> impl FnMut(usize) -> usize {
    let mut left = half;
    move |events| {
        let here = events.min(left);
        left -= here;
        here
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use unjank_protocol::{Metric, Resource, SdkHealth, Traffic};

    use super::*;
    use crate::deliver::pending::Pending;
    use crate::event::Event;

    pub(crate) fn pending(metrics: usize) -> Pending {
        pending_of((0..metrics).map(|number| format!("m{number}")))
    }

    pub(crate) fn pending_of(metrics: impl Iterator<Item = String>) -> Pending {
        let resource = Resource {
            app_id: "com.example.shop".into(),
            ..Resource::default()
        };
        let mut pending = Pending::new(resource, Uuid::from_u128(7));
        for name in metrics {
            let json = format!(r#"{{"name":"{name}","time":"2026-11-20T12:00:00Z","value":1}}"#);
            let metric: Metric<'_> = serde_json::from_str(&json).unwrap();
            let owned = Metric {
                name: metric.name.to_string().into(),
                page: "".into(),
                attributes: unjank_protocol::Attributes::default(),
                time: metric.time,
                ..metric_of(metric.value)
            };
            pending.add(Event::Metric(owned));
        }
        pending
    }

    pub(crate) fn metric_of(value: f64) -> Metric<'static> {
        Metric {
            name: "".into(),
            time: Timestamp::default(),
            value,
            min: None,
            max: None,
            count: None,
            page: "".into(),
            uptime_ms: 0,
            network: unjank_protocol::Network::Unknown,
            attributes: unjank_protocol::Attributes::default(),
            sample_rate: 1.0,
        }
    }

    /// Seals a batch as earlier versions did.
    fn sealed_as_json(batch: &Batch<'_>) -> Sealed {
        let mut json = serde_json::to_vec(batch).unwrap();
        json.pop();
        let packer = &mut Packer::default();
        sealed(batch, (Form::Json, json), counts(batch), packer).unwrap()
    }

    /// The form and the content of a request.
    fn content(sealed: &Sealed, reads_columns: bool) -> (Form, Vec<u8>) {
        let upload = sealed.request(reads_columns).unwrap();
        let content = zstd::stream::decode_all(upload.body.as_slice()).unwrap();
        (upload.form, content)
    }

    fn text(sealed: &Sealed) -> String {
        String::from_utf8(content(sealed, false).1).unwrap()
    }

    pub(crate) fn split(sealed: &Sealed) -> [Sealed; 2] {
        let losses = Losses::default();
        let halves = sealed.split(&losses).unwrap();
        assert!(losses.take().is_empty());
        halves
    }

    #[test]
    fn every_attempt_is_the_same_batch_with_its_own_time() {
        let mut pending = pending(3);
        let sealed = pending.seal(42).unwrap();
        assert_eq!(pending.len(), 0);
        let json = text(&sealed);
        let batch: Batch<'_> = serde_json::from_str(&json).unwrap();
        assert_eq!(batch.batch_id, sealed.batch_id);
        let sent_at = batch.sent_at.unwrap();
        assert!(crate::clock::wall_clock().micros_since(sent_at).abs() < 1_000_000);
        assert_eq!(batch.config_revision, Some(42));
        assert_eq!(batch.metrics.len(), 3);
        assert_eq!(sealed.events, [(Signal::Metrics, 3)]);
    }

    #[test]
    fn halves_hold_everything_once() {
        let mut pending = pending(5);
        pending.add(Event::Traffic(Traffic {
            day: unjank_protocol::Day::default(),
            source: "api".into(),
            network: unjank_protocol::Network::Wifi,
            tx_bytes: 1,
            rx_bytes: 2,
            requests: 1,
            failed_requests: 0,
        }));
        pending.set_health(SdkHealth::default());
        let sealed = pending.seal(1).unwrap();
        let [first, second] = split(&sealed);
        let (first_json, second_json) = (text(&first), text(&second));
        let first: Batch<'_> = serde_json::from_str(&first_json).unwrap();
        let second: Batch<'_> = serde_json::from_str(&second_json).unwrap();
        assert_eq!((first.events(), second.events()), (3, 4));
        assert_ne!(first.batch_id, second.batch_id);
        let names: Vec<_> = first
            .metrics
            .iter()
            .chain(&second.metrics)
            .map(|metric| metric.name.to_string())
            .collect();
        assert_eq!(names.len(), 5);
        assert!(second.sdk_health.is_some() && first.sdk_health.is_none());
    }

    #[test]
    fn halves_name_what_they_were_cut_from_and_have_the_same_ids_each_time() {
        let mut sealed = pending(8).seal(1).unwrap();
        sealed.batch_id = Uuid::from_u128(0x0192_f0c0_7b3e_7cc1_9a55_0123_4567_89ab);
        let again = split(&sealed);
        let [first, second] = split(&sealed);
        assert_eq!(
            again.map(|half| half.batch_id),
            [first.batch_id, second.batch_id]
        );
        // A version that made others would send the events of a batch that was cut before an update twice.
        let known = [
            "0192f0c0-7b3e-7cc1-8f51-69220f77fb4d",
            "0192f0c0-7b3e-7cc1-a9e9-1b24bdeb161a",
        ];
        assert_eq!(
            [first.batch_id.to_string(), second.batch_id.to_string()],
            known
        );
        assert_eq!(first.split_from, [sealed.batch_id]);
        let [_, quarter] = split(&second);
        assert_eq!(quarter.split_from, [sealed.batch_id, second.batch_id]);
        let json = text(&quarter);
        let batch: Batch<'_> = serde_json::from_str(&json).unwrap();
        assert_eq!(batch.split_from, quarter.split_from);
        assert!(!text(&sealed).contains("split_from"));
    }

    #[test]
    fn a_batch_names_the_last_of_its_ancestors_when_there_are_many() {
        let mut pending = pending(2);
        pending.head.split_from = (1..=16).map(Uuid::from_u128).collect();
        let sealed = pending.seal(1).unwrap();
        let [first, _] = split(&sealed);
        assert_eq!(first.split_from.len(), Batch::MAX_SPLIT_FROM);
        assert_eq!(first.split_from[..15], sealed.split_from[1..]);
        assert_eq!(first.split_from[15], sealed.batch_id);
    }

    #[test]
    fn one_event_cannot_be_halved() {
        let one = pending(1).seal(1).unwrap();
        assert!(one.split(&Losses::default()).is_none());
    }

    #[test]
    fn both_forms_of_a_batch_are_read_as_the_same() {
        let sealed = pending(3).seal(42).unwrap();
        let (form, json) = content(&sealed, false);
        assert_eq!(form, Form::Json);
        let (form, columns) = content(&sealed, true);
        assert_eq!(form, Form::Columns);
        let mut of_json: Batch<'_> = serde_json::from_slice(&json).unwrap();
        let mut of_columns = unjank_columns::read(&columns, &Bounds::default()).unwrap();
        let times = [of_json.sent_at.take(), of_columns.batch.sent_at.take()];
        assert!(times.iter().all(Option::is_some), "{times:?}");
        assert_eq!(of_json, of_columns.batch);
        assert_eq!(of_json.metrics.len(), 3);
    }

    #[test]
    fn a_batch_of_an_earlier_version_is_sent_as_json_and_its_halves_in_columns() {
        let sealed = pending(4).seal(42).unwrap();
        let text = text(&sealed);
        let mut batch: Batch<'_> = serde_json::from_str(&text).unwrap();
        batch.sent_at = None;
        let before = sealed_as_json(&batch);
        let (form, json) = content(&before, true);
        assert_eq!(form, Form::Json);
        let sent: Batch<'_> = serde_json::from_slice(&json).unwrap();
        assert!(sent.sent_at.is_some());
        assert_eq!(sent.metrics, batch.metrics);
        let halves = split(&before);
        let of_columns = split(&sealed);
        for (half, expected) in halves.iter().zip(&of_columns) {
            assert_eq!(half.batch_id, expected.batch_id);
            assert_eq!(half.form, Form::Columns);
            assert_eq!(half.body, expected.body);
        }
    }

    #[test]
    fn malformed_events_are_counted_when_a_batch_is_read() {
        let mut pending = pending(3);
        pending.add(Event::Metric(Metric {
            name: "none".into(),
            ..metric_of(f64::NAN)
        }));
        let sealed = pending.seal(1).unwrap();
        assert_eq!(sealed.events, [(Signal::Metrics, 4)]);
        let upload = sealed.request(false).unwrap();
        assert_eq!(upload.left_out, [Signal::Metrics]);
        assert!(sealed.request(true).unwrap().left_out.is_empty());
        let losses = Losses::default();
        let halves = sealed.split(&losses).unwrap();
        let kept: u32 = halves
            .iter()
            .flat_map(|half| &half.events)
            .map(|(_, count)| count)
            .sum();
        assert_eq!(kept, 3);
        let lost = losses.take();
        assert_eq!((lost[0].reason.as_str(), lost[0].count), ("refused", 1));
    }
}
