//! Valid batches and events, which tests change and send.

use serde_json::{Value, json};
use uuid::Uuid;

/// An empty batch with a new id, to which a test adds events.
pub(crate) fn batch() -> Value {
    json!({
        "batch_id": Uuid::new_v4(),
        "sent_at": "2026-11-20T12:00:00Z",
        "resource": {"app_id": "com.example.shop", "app_version": "4.12.0", "install_id": "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11"},
        "session_id": Uuid::new_v4(),
    })
}

/// A valid span.
pub(crate) fn span() -> Value {
    json!({
        "trace_id": format!("{:032x}", Uuid::new_v4().as_u128()),
        "span_id": format!("{:016x}", Uuid::new_v4().as_u64_pair().0 | 1),
        "name": "checkout", "kind": "manual", "start": "2026-11-20T11:59:58Z", "duration_us": 41250,
    })
}

/// A batch of `count` valid spans.
pub(crate) fn spans(count: usize) -> Value {
    let mut batch = batch();
    batch["spans"] = (0..count).map(|_| span()).collect();
    batch
}
