//! What each response of the server means for a batch. `back_off` says when to send again.

use std::time::Duration;

use unjank_protocol::{RateLimit, Receipt, Signal};
use uuid::Uuid;

use super::back_off::asked_wait;
use super::losses::Reason;
use super::problem;
use super::transport::Response;

/// What a response means for the batch.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Accepted {
        lost: Vec<(Signal, Reason, u64)>,
        rate_limits: Vec<RateLimit>,
        config_etag: Option<String>,
    },
    /// The server will never accept the batch.
    Refused,
    /// The batch was changed on its way. Retry it some times.
    Changed { retry_after: Option<Duration> },
    /// The server may accept the batch in parts.
    TooLarge,
    /// Keep the batch and retry.
    Later {
        retry_after: Option<Duration>,
        long: bool,
    },
}

/// Returns what a response means for the batch that was sent.
pub(super) fn verdict(response: &Response, batch_id: Uuid) -> Verdict {
    let retry_after = response.retry_after.as_deref().and_then(asked_wait);
    let later = |long| Verdict::Later { retry_after, long };
    match response.status {
        202 => accepted(&response.body, batch_id).unwrap_or(later(false)),
        400 | 415 | 422 if problem::is_of_the_way(response) => Verdict::Changed { retry_after },
        400 | 415 | 422 => Verdict::Refused,
        413 => Verdict::TooLarge,
        401 | 403 => later(true),
        _ => later(false),
    }
}

/// Returns `None` for a 202 whose receipt cannot be parsed or names another batch. It may come from a proxy: the batch is sent
/// again, and the server stores it once.
fn accepted(body: &[u8], batch_id: Uuid) -> Option<Verdict> {
    let receipt: Receipt<'_> = serde_json::from_slice(body).ok()?;
    if receipt.batch_id != batch_id {
        return None;
    }
    let rejected = receipt.rejected.iter();
    let rejected = rejected.map(|one| (one.signal, Reason::Refused, 1));
    let unlisted = receipt.rejected_unlisted.iter();
    let unlisted = unlisted.map(|more| (more.signal, Reason::Refused, more.events));
    let held_back = receipt.rate_limits.iter().filter(|one| one.dropped > 0);
    let held_back = held_back.map(|one| (one.signal, Reason::RateLimited, one.dropped));
    Some(Verdict::Accepted {
        // Counts losses also for a duplicate: the device sends a batch again only if it has no receipt for it.
        lost: rejected.chain(unlisted).chain(held_back).collect(),
        config_etag: receipt.config_etag.map(|etag| etag.to_string()),
        rate_limits: receipt.rate_limits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &str) -> Verdict {
        let response = Response {
            status,
            body: body.as_bytes().to_vec(),
            ..Response::default()
        };
        verdict(&response, Uuid::from_u128(1))
    }

    #[test]
    fn each_status_maps_to_the_documented_verdict() {
        for status in [400, 415, 422] {
            let refused = answered(status, r#"{"code":"invalid_envelope"}"#);
            assert_eq!(refused, Verdict::Refused, "{status}");
            for body in ["", "<html>", r#"{"code":"body_truncated"}"#] {
                let changed = answered(status, body);
                let expected = Verdict::Changed { retry_after: None };
                assert_eq!(changed, expected, "{status} {body}");
            }
        }
        assert_eq!(answered(413, ""), Verdict::TooLarge);
        for (statuses, is_long) in [
            (vec![401, 403], true),
            (vec![408, 429, 500, 502, 503, 504, 302, 404], false),
        ] {
            for status in statuses {
                let verdict = answered(status, "");
                assert!(
                    matches!(verdict, Verdict::Later { long, .. } if long == is_long),
                    "{status}: {verdict:?}"
                );
            }
        }
    }

    #[test]
    fn a_receipt_reports_losses_rate_limits_and_the_configuration() {
        let receipt = r#"{"batch_id":"00000000-0000-0000-0000-000000000001","accepted":3,
            "rejected":[{"signal":"spans","index":1,"code":"x","detail":"y"}],
            "rejected_unlisted":[{"signal":"spans","events":7}],
            "rate_limits":[{"signal":"metrics","retry_after_s":60,"dropped":5}],"config_etag":"\"abc\""}"#;
        let Verdict::Accepted {
            lost,
            rate_limits,
            config_etag,
        } = answered(202, receipt)
        else {
            panic!("expected an accepted batch");
        };
        assert_eq!(
            lost,
            [
                (Signal::Spans, Reason::Refused, 1),
                (Signal::Spans, Reason::Refused, 7),
                (Signal::Metrics, Reason::RateLimited, 5)
            ]
        );
        assert_eq!(rate_limits.len(), 1);
        assert_eq!(config_etag.as_deref(), Some("\"abc\""));
    }

    #[test]
    fn a_202_without_a_receipt_is_not_an_acknowledgement() {
        assert!(matches!(
            answered(202, "<html>"),
            Verdict::Later { long: false, .. }
        ));
    }

    #[test]
    fn a_receipt_for_another_batch_is_not_an_acknowledgement() {
        let receipt =
            |id: u128| format!(r#"{{"batch_id":"{}","accepted":3}}"#, Uuid::from_u128(id));
        let taken = answered(202, &receipt(1));
        assert!(matches!(taken, Verdict::Accepted { .. }), "{taken:?}");
        let another = answered(202, &receipt(2));
        let later = Verdict::Later {
            retry_after: None,
            long: false,
        };
        assert_eq!(another, later);
    }
}
