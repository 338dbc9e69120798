//! What a collector says in its answer. Answers have the same fields for all signals, in protobuf and in JSON.

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceResponse,
};
use prost::Message as _;
use serde_json::Value;

/// Returns how many events the collector rejected out of a request that it accepted, and its message about them. A message without
/// rejected events is a warning. Bodies that are no answer of OTLP say nothing.
#[must_use]
pub fn accepted_in_part(body: &[u8]) -> (u64, String) {
    // No message begins with this byte, because it would start a group.
    if body.trim_ascii_start().starts_with(b"{") {
        return in_json(body);
    }
    let answer = ExportTraceServiceResponse::decode(body).unwrap_or_default();
    let part = answer.partial_success.unwrap_or_default();
    let rejected = u64::try_from(part.rejected_spans).unwrap_or_default();
    (rejected, part.error_message)
}

fn in_json(body: &[u8]) -> (u64, String) {
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    let first = |object: &Value, names: &[&str]| {
        let found = names.iter().find_map(|name| object.get(name));
        found.cloned().unwrap_or_default()
    };
    let part = first(&answer, &["partialSuccess", "partial_success"]);
    let rejected = first(
        &part,
        &[
            "rejectedSpans",
            "rejectedLogRecords",
            "rejected_spans",
            "rejected_log_records",
        ],
    );
    // 64-bit numbers are texts in this JSON, but not for all collectors.
    let as_text = rejected.as_str().and_then(|text| text.parse().ok());
    let message = first(&part, &["errorMessage", "error_message"]);
    (
        rejected.as_u64().or(as_text).unwrap_or_default(),
        message.as_str().unwrap_or_default().to_owned(),
    )
}

/// Returns the message of a refusal in protobuf, which is a `google.rpc.Status`. Other bodies have none.
#[must_use]
pub fn status_message(body: &[u8]) -> Option<String> {
    // Code and message have the numbers and types of the two fields of this message.
    let status = ExportTracePartialSuccess::decode(body).ok()?;
    Some(status.error_message).filter(|message| !message.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_of_json_have_two_forms() {
        for body in [
            r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#,
            r#" {"partialSuccess":{"rejectedLogRecords":3,"errorMessage":"too old"}}"#,
            r#"{"partial_success":{"rejected_spans":3,"error_message":"too old"}}"#,
        ] {
            let read = accepted_in_part(body.as_bytes());
            assert_eq!(read, (3, "too old".to_owned()), "{body}");
        }
    }

    #[test]
    fn other_bodies_say_nothing() {
        for body in [
            "",
            "{}",
            "ok",
            "{\"partialSuccess\":",
            "{\"partialSuccess\":{}}",
            "{\"partialSuccess\":{\"rejectedSpans\":-1}}",
            "<html></html>",
            "\u{8}\u{8}",
        ] {
            let read = accepted_in_part(body.as_bytes());
            assert_eq!(read, (0, String::new()), "{body}");
            assert_eq!(status_message(body.as_bytes()), None, "{body}");
        }
        let negative = ExportTraceServiceResponse {
            partial_success: Some(ExportTracePartialSuccess {
                rejected_spans: -1,
                ..Default::default()
            }),
        };
        assert_eq!(accepted_in_part(&negative.encode_to_vec()).0, 0);
    }
}
