//! Problems of devices: why a key is not accepted and why a batch is refused.

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use uuid::Uuid;

use super::Problem;
use crate::access::{Exceeded, KeyError, OverQuota};
use crate::ingest::Refusal;
use crate::intake::{NotInflated, Refused};
use crate::otlp::{NotOneMessage, Unreadable};
use crate::store::LogError;

impl Problem {
    pub(crate) fn grpc_content_type() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content_type",
            "send `Content-Type: application/grpc` with protobuf",
        )
    }

    pub(crate) fn not_over_http2() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "over HTTP/2 without TLS, this server has only the routes for devices: let the proxy speak HTTP/1.1 to it for all others",
        )
    }

    pub(crate) fn batch_content_type() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content_type",
            "send `Content-Type: application/json`, or `application/vnd.unjank.batch.v2` with columns",
        )
    }

    /// Asks devices to return after a wait, at different times.
    fn spread(self, wait_s: u64) -> Self {
        let (_, dice) = Uuid::new_v4().as_u64_pair();
        let wait = HeaderValue::from(spread(wait_s, dice));
        Self {
            header: Some(Box::new((RETRY_AFTER, wait))),
            ..self
        }
    }

    pub(crate) fn otlp_content_type() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content_type",
            "send `Content-Type: application/x-protobuf` or `application/json`",
        )
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let (status, code) = match &refusal {
            Refusal::NotJson { .. } => (StatusCode::BAD_REQUEST, "invalid_json"),
            Refusal::NotColumns(_) => (StatusCode::BAD_REQUEST, "invalid_columns"),
            Refusal::Envelope(_) => (StatusCode::BAD_REQUEST, "invalid_envelope"),
            Refusal::Resource(_) => (StatusCode::UNPROCESSABLE_ENTITY, "invalid_resource"),
            Refusal::TooManyEvents { .. } | Refusal::ListsTooLarge { .. } => {
                (StatusCode::PAYLOAD_TOO_LARGE, "too_many_events")
            }
            Refusal::TextsTooLarge(_) => (StatusCode::PAYLOAD_TOO_LARGE, "decompressed_too_large"),
            Refusal::WrongApp(_) => (StatusCode::FORBIDDEN, "key_not_for_app"),
            Refusal::WrongInstall => (StatusCode::FORBIDDEN, "token_not_for_install"),
        };
        Self::new(status, code, refusal.to_string())
    }
}

impl From<Refused> for Problem {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Busy => Self::overloaded(),
            Refused::OverQuota(over) => over.into(),
            Refused::NotInflated(error) => error.into(),
            Refused::Batch(refusal) => refusal.into(),
            Refused::Otlp(error) => error.into(),
            Refused::InFlight => Self::in_flight(),
            Refused::Log(error) => error.into(),
        }
    }
}

impl From<NotOneMessage> for Problem {
    fn from(error: NotOneMessage) -> Self {
        match error {
            NotOneMessage::CutOff => Self::truncated(),
            NotOneMessage::OtherLength => Self::new(
                StatusCode::BAD_REQUEST,
                "invalid_otlp",
                "the body is not one gRPC message: its length differs from the length in its prefix",
            ),
        }
    }
}

impl From<Unreadable> for Problem {
    fn from(error: Unreadable) -> Self {
        let (status, code) = match &error {
            Unreadable::Malformed(_) => (StatusCode::BAD_REQUEST, "invalid_otlp"),
            Unreadable::TooMany { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_many_events"),
        };
        Self::new(status, code, error.to_string())
    }
}

impl From<NotInflated> for Problem {
    fn from(error: NotInflated) -> Self {
        match error {
            NotInflated::TooLarge { limit } => Self::inflates_too_far(limit),
            NotInflated::Corrupt(encoding) => Self::corrupt_encoding(encoding),
            NotInflated::WideWindow => Self::new(
                StatusCode::BAD_REQUEST,
                "corrupt_encoding",
                "the zstd window of the body is larger than 8 MiB: compress with a smaller window, or state the size of the content",
            ),
        }
    }
}

impl From<KeyError> for Problem {
    fn from(error: KeyError) -> Self {
        match error {
            KeyError::Unknown => Self::unknown_key(),
            // The key is known, and sending it again will not help.
            KeyError::TokenRequired => Self::new(
                StatusCode::FORBIDDEN,
                "device_token_required",
                "this project accepts only device tokens: send `Authorization: Bearer <device token>`, with a token that the app's own back end signs",
            ),
        }
    }
}

impl From<OverQuota> for Problem {
    fn from(over: OverQuota) -> Self {
        let (code, detail) = match over.exceeded {
            Exceeded::Events => (
                "quota_events",
                "the key or the project is over its quota of events per second: retry later",
            ),
            Exceeded::Bytes => (
                "quota_bytes",
                "the key or the project is over its quota of bytes per day: retry later",
            ),
            Exceeded::Disk => (
                "quota_disk",
                "the project is over its quota of disk space: retry later",
            ),
        };
        Self::new(StatusCode::TOO_MANY_REQUESTS, code, detail).spread(over.retry_after_s())
    }
}

impl From<LogError> for Problem {
    fn from(error: LogError) -> Self {
        let (code, wait) = match &error {
            LogError::Full => ("log_full", 30),
            LogError::DiskFull => ("disk_full", 30),
            LogError::Busy => ("overloaded", 5),
            LogError::Failed(_) | LogError::Unknown => ("not_durable", 15),
            LogError::TooLarge => {
                return Self::new(
                    StatusCode::PAYLOAD_TOO_LARGE,
                    "record_too_large",
                    error.to_string(),
                );
            }
        };
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, error.to_string()).spread(wait)
    }
}

/// The seconds of a `Retry-After`: the wait, and up to a half more, so that devices that were refused together do not return together. At most an
/// hour more, because every device waits for midnight when a quota of bytes is used up.
fn spread(wait_s: u64, dice: u64) -> u64 {
    let most = (wait_s / 2).min(3_600);
    wait_s.saturating_add(dice % (most + 1))
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn devices_return_at_different_times_and_never_too_early() {
        for (wait, latest) in [(1, 1), (4, 6), (30, 45), (35_796, 39_396)] {
            let waits = (0..10_000).map(|dice| spread(wait, dice));
            assert_eq!(waits.clone().min(), Some(wait));
            assert_eq!(waits.max(), Some(latest));
        }
        assert_eq!(spread(u64::MAX, 7), u64::MAX);
    }
}
