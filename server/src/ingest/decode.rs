//! JSON → batch. One typed pass; only a batch with a bad event pays for a second, event by event.

use serde::Deserialize;
use serde_json::error::Category;
use serde_json::value::RawValue;
use unjank_protocol::{Batch, Rejected, Resource, Signal, Timestamp};
use uuid::Uuid;

use super::Refusal;

pub(super) struct Decoded<'a> {
    pub(super) batch: Batch<'a>,
    /// Events that are not of their signal's form.
    pub(super) rejected: Vec<Rejected>,
}

pub(super) fn decode(body: &[u8]) -> Result<Decoded<'_>, Refusal> {
    // Once for the whole body costs less than once for every string.
    let body = std::str::from_utf8(body).map_err(|error| Refusal::NotUtf8(error.valid_up_to()))?;
    match serde_json::from_str::<Batch<'_>>(body) {
        Ok(batch) => Ok(Decoded {
            batch,
            rejected: Vec::new(),
        }),
        Err(_) => decode_event_by_event(body),
    }
}

fn not_json(error: &serde_json::Error) -> Refusal {
    Refusal::NotJson {
        detail: plain(error),
        line: error.line(),
        column: error.column(),
    }
}

/// The envelope, with every list still raw text.
#[derive(Deserialize)]
struct RawBatch<'a> {
    batch_id: Option<Uuid>,
    sent_at: Option<Timestamp>,
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
    session_id: Option<Uuid>,
    config_revision: Option<u64>,
    split_from: Option<Vec<Uuid>>,
    #[serde(borrow)]
    spans: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    frame_windows: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    janks: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    traffic: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    page_loads: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    metrics: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    app_starts: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    recompositions: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    sdk_health: Option<&'a RawValue>,
}

fn decode_event_by_event(body: &str) -> Result<Decoded<'_>, Refusal> {
    let raw: RawBatch<'_> = serde_json::from_str(body).map_err(|error| match error.classify() {
        Category::Data => Refusal::Envelope(error.to_string()),
        _ => not_json(&error),
    })?;
    let missing = |name: &str| Refusal::Envelope(format!("`{name}` is missing"));
    let resource = raw
        .resource
        .ok_or_else(|| Refusal::Resource("it is missing".to_owned()))?;
    let resource: Resource<'_> =
        serde_json::from_str(resource.get()).map_err(|error| Refusal::Resource(plain(&error)))?;
    let mut rejected = Vec::new();
    let health: Vec<_> = raw.sdk_health.into_iter().collect();
    let batch = Batch {
        batch_id: raw.batch_id.ok_or_else(|| missing("batch_id"))?,
        sent_at: raw.sent_at,
        resource,
        session_id: raw.session_id.unwrap_or_default(),
        config_revision: raw.config_revision,
        split_from: raw.split_from.unwrap_or_default(),
        spans: events(raw.spans, Signal::Spans, &mut rejected),
        frame_windows: events(raw.frame_windows, Signal::FrameWindows, &mut rejected),
        janks: events(raw.janks, Signal::Janks, &mut rejected),
        traffic: events(raw.traffic, Signal::Traffic, &mut rejected),
        page_loads: events(raw.page_loads, Signal::PageLoads, &mut rejected),
        metrics: events(raw.metrics, Signal::Metrics, &mut rejected),
        app_starts: events(raw.app_starts, Signal::AppStarts, &mut rejected),
        recompositions: events(raw.recompositions, Signal::Recompositions, &mut rejected),
        sdk_health: events(Some(health), Signal::SdkHealth, &mut rejected).pop(),
    };
    Ok(Decoded { batch, rejected })
}

fn events<'a, E: Deserialize<'a>>(
    raw: Option<Vec<&'a RawValue>>,
    signal: Signal,
    rejected: &mut Vec<Rejected>,
) -> Vec<E> {
    let raw = raw.unwrap_or_default();
    let mut events = Vec::with_capacity(raw.len());
    for (index, text) in raw.into_iter().enumerate() {
        match serde_json::from_str(text.get()) {
            Ok(event) => events.push(event),
            Err(error) => rejected.push(Rejected {
                signal,
                index: index as u32,
                code: "invalid_event".to_owned(),
                detail: plain(&error),
            }),
        }
    }
    events
}

/// The error without its place, which in a fragment means nothing; bounded, since it quotes the input.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    text.chars().take(200).collect()
}

/// Where the `kept`th event that decoded stood in its list, given the rejected ones before it (in order of index).
pub(super) fn original_index(rejected: &[Rejected], signal: Signal, kept: u32) -> u32 {
    let mut index = kept;
    for one in rejected.iter().filter(|one| one.signal == signal) {
        if one.index <= index {
            index += 1;
        }
    }
    index
}
