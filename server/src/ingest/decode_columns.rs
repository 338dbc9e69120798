//! Decodes columns into a batch and enforces the limits of JSON on what they stand for.

use unjank_columns::{Bounds, Unreadable, read};
use unjank_protocol::Limits;

use super::decode::{Decoded, LISTS_BYTES};
use super::rejections::Rejections;
use super::{Body, Refusal};
use crate::ingest::reject::Reject;

/// Most events take more bytes in JSON.
const EVENT_BYTES: usize = 256;
/// Most attributes, frames and other items inside of events take more bytes in JSON.
const ITEM_BYTES: usize = 16;
/// Most lists inside of events take less memory for each byte of JSON.
const LIST_BYTES_PER_BYTE: usize = 4;

/// Returns the batch, and the bytes of its texts, each as often as it is used. The batch may stand for no more than JSON of `most_bytes`
/// bytes. A bad character costs a character, as in JSON.
pub(super) fn decode<'a>(
    body: &'a Body<'_>,
    most_bytes: usize,
    limits: &Limits,
) -> Result<(Decoded<'a>, usize), Refusal> {
    let bounds = bounds(most_bytes, limits);
    let read = match read(body.bytes(), &bounds) {
        Err(Unreadable::NoText) => {
            let mended = body.mended_columns().ok_or(Unreadable::Damaged)?;
            read(mended, &bounds)?
        }
        other => other?,
    };
    let mut rejections = Rejections::default();
    for malformed in &read.malformed {
        let detail = if rejections.lists_another() {
            malformed.to_string()
        } else {
            String::new()
        };
        let reject = Reject::new("invalid_event", detail);
        rejections.add_undecoded(malformed.signal, malformed.index, reject);
    }
    let batch = read.batch;
    Ok((Decoded { batch, rejections }, read.text_bytes))
}

fn bounds(most_bytes: usize, limits: &Limits) -> Bounds {
    let whole = Bounds {
        events: limits.events,
        list_bytes: LISTS_BYTES,
        text_bytes: limits.decompressed_bytes,
        ..Bounds::default()
    };
    if most_bytes >= limits.decompressed_bytes {
        return whole;
    }
    let list_bytes = most_bytes.saturating_mul(LIST_BYTES_PER_BYTE);
    Bounds {
        events: whole.events.min(most_bytes / EVENT_BYTES),
        list_bytes: whole.list_bytes.min(list_bytes),
        text_bytes: most_bytes,
        list_rows: whole.list_rows.min(most_bytes / ITEM_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use unjank_protocol::{Batch, Span};

    use super::*;

    const SMALL: usize = 256 * 1024;

    fn body(spans: usize, name_bytes: usize, attributes: usize) -> Vec<u8> {
        let json = r#"{"trace_id": "00000000000000000000000000000001", "span_id": "0000000000000001", "name": "checkout",
            "start": "2026-11-20T12:00:00Z", "duration_us": 5}"#;
        let mut span: Span<'_> = serde_json::from_str(json).unwrap();
        span.name = "a".repeat(name_bytes).into();
        span.attributes.0 = vec![("b".into(), "c".into()); attributes];
        unjank_columns::write(&Batch {
            spans: vec![span; spans],
            ..Batch::default()
        })
    }

    #[test]
    fn a_small_batch_has_as_many_events_texts_and_lists_as_small_json() {
        let limits = Limits::default();
        for (spans, name_bytes, attributes, is_small) in [
            (1_000, 8, 0, true),
            (1_100, 8, 0, false),
            (100, 2_600, 0, true),
            (100, 2_700, 0, false),
            (200, 8, 64, true),
            (300, 8, 64, false),
        ] {
            let body = body(spans, name_bytes, attributes);
            assert!(body.len() < SMALL);
            let body = Body::new(&body);
            match decode(&body, SMALL, &limits) {
                Ok((decoded, _)) => assert!(is_small && decoded.batch.spans.len() == spans),
                Err(refusal) => assert!(!is_small && refusal.is_for_size(), "{refusal}"),
            }
            let (decoded, text_bytes) = decode(&body, limits.decompressed_bytes, &limits).unwrap();
            assert_eq!(decoded.batch.spans.len(), spans);
            assert_eq!(text_bytes, spans * (name_bytes + 2 * attributes));
        }
    }
}
