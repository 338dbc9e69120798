//! One attempt to deliver a batch: sends the request and interprets the response as a device does.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use reqwest::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{Client, StatusCode};
use unjank_protocol::{Problem, Receipt, Rejected};
use uuid::Uuid;

use crate::parcel::Parcel;

/// Result of an attempt, from the device's point of view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// 202: the batch is durable.
    Accepted(Acceptance),
    /// The server will never accept this batch. Drop it.
    Refused(String),
    /// Keep the batch and retry. `long` is set after 401 and 403, because an invalid key must be retried only rarely.
    Later {
        why: String,
        retry_after: Option<Duration>,
        long: bool,
    },
}

/// The contents of a receipt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Acceptance {
    pub(crate) accepted: u64,
    pub(crate) rejected: Vec<Rejected>,
    pub(crate) truncated: u64,
    pub(crate) duplicate: bool,
    /// Id of the batch that the receipt is for.
    pub(crate) batch_id: Uuid,
}

/// An attempt, answered or not.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) answer: Answer,
    /// The HTTP status, or the reason why there was no response.
    pub(crate) status: String,
    /// Time from the start of the request until the response was read.
    pub(crate) took: Duration,
}

/// The server that receives the batches.
#[derive(Clone)]
pub(crate) struct Target {
    client: Client,
    url: String,
    authorization: String,
}

impl Target {
    /// `url` is the server's URL without a path. Only plain HTTP is supported, as the tool is built without TLS.
    pub(crate) fn new(url: &str, key: &str, connections: usize, timeout: Duration) -> Result<Self> {
        let client = Client::builder()
            .no_proxy()
            .http1_only()
            .tcp_nodelay(true)
            .pool_max_idle_per_host(connections)
            .timeout(timeout)
            .build()
            .context("building the HTTP client")?;
        Ok(Self {
            client,
            url: url.trim_end_matches('/').to_owned(),
            authorization: format!("Bearer {key}"),
        })
    }

    /// Sends the parcel once.
    pub(crate) async fn post(&self, parcel: &Parcel) -> Attempt {
        let begun = Instant::now();
        let (status, answer) = match self.exchange(parcel).await {
            Ok((status, headers, body)) => {
                let answer = if parcel.format.is_batch() || status != StatusCode::OK {
                    read_answer(status, &headers, &body)
                } else {
                    stored(parcel, &body)
                };
                let unreadable =
                    status == StatusCode::ACCEPTED && !matches!(answer, Answer::Accepted(_));
                let text = if unreadable {
                    "202 without a receipt".to_owned()
                } else {
                    status.as_u16().to_string()
                };
                (text, answer)
            }
            Err(error) => {
                let why = network_reason(&error).to_owned();
                let answer = Answer::Later {
                    why: why.clone(),
                    retry_after: None,
                    long: false,
                };
                (why, answer)
            }
        };
        Attempt {
            answer,
            status,
            took: begun.elapsed(),
        }
    }

    async fn exchange(
        &self,
        parcel: &Parcel,
    ) -> reqwest::Result<(StatusCode, HeaderMap, bytes::Bytes)> {
        let mut request = self
            .client
            .post(format!("{}{}", self.url, parcel.format.path()))
            .header(AUTHORIZATION, &self.authorization)
            .header(CONTENT_TYPE, parcel.format.content_type());
        if let Some(encoding) = parcel.encoding.header() {
            request = request.header(CONTENT_ENCODING, encoding);
        }
        let mut response = request.body(parcel.body.clone()).send().await?;
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        Ok((status, headers, response.bytes().await?))
    }
}

/// An answer of OpenTelemetry has numbers only if events are rejected.
fn stored(parcel: &Parcel, body: &[u8]) -> Answer {
    if !matches!(body, b"" | b"{}") {
        let why = String::from_utf8_lossy(body);
        return Answer::Refused(format!("partly rejected: {why}"));
    }
    Answer::Accepted(Acceptance {
        accepted: parcel.events,
        batch_id: parcel.batch_id,
        ..Acceptance::default()
    })
}

fn network_reason(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "timeout"
    } else if error.is_connect() {
        "not connected"
    } else {
        "connection lost"
    }
}

fn read_answer(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Answer {
    match status.as_u16() {
        202 => read_receipt(body),
        400 | 413 | 415 | 422 => Answer::Refused(problem(status, body)),
        401 | 403 => later(status, headers, body, true),
        _ => later(status, headers, body, false),
    }
}

fn read_receipt(body: &[u8]) -> Answer {
    match serde_json::from_slice::<Receipt<'_>>(body) {
        Ok(receipt) => Answer::Accepted(Acceptance {
            accepted: receipt.accepted,
            rejected: receipt.rejected,
            truncated: receipt.truncated,
            duplicate: receipt.duplicate,
            batch_id: receipt.batch_id,
        }),
        Err(error) => Answer::Later {
            why: format!("202 without a readable receipt: {error}"),
            retry_after: None,
            long: false,
        },
    }
}

fn later(status: StatusCode, headers: &HeaderMap, body: &[u8], long: bool) -> Answer {
    let retry_after = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| value.trim().parse().ok())
        .map(Duration::from_secs);
    Answer::Later {
        why: problem(status, body),
        retry_after,
        long,
    }
}

fn problem(status: StatusCode, body: &[u8]) -> String {
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => format!("{} {}: {}", status.as_u16(), problem.code, problem.detail),
        Err(_) => status.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: u16, headers: &[(&'static str, &str)], body: &str) -> Answer {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        read_answer(StatusCode::from_u16(status).unwrap(), &map, body.as_bytes())
    }

    #[test]
    fn responses_are_interpreted_as_in_the_sdk() {
        let receipt =
            r#"{"batch_id":"00000000-0000-0000-0000-000000000001","accepted":3,"duplicate":true}"#;
        assert!(matches!(
            read(202, &[], receipt),
            Answer::Accepted(Acceptance {
                accepted: 3,
                duplicate: true,
                ..
            })
        ));
        for status in [400, 413, 415, 422] {
            assert!(
                matches!(read(status, &[], ""), Answer::Refused(_)),
                "{status}"
            );
        }
        for status in [401, 403] {
            assert!(matches!(
                read(status, &[], ""),
                Answer::Later { long: true, .. }
            ));
        }
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(matches!(
                read(status, &[], ""),
                Answer::Later { long: false, .. }
            ));
        }
    }

    #[test]
    fn retry_after_and_the_problem_code_are_parsed() {
        let body = r#"{"type":"about:blank","title":"Busy","status":503,"detail":"log full","code":"log_full"}"#;
        assert_eq!(
            read(503, &[("retry-after", "7")], body),
            Answer::Later {
                why: "503 log_full: log full".to_owned(),
                retry_after: Some(Duration::from_secs(7)),
                long: false,
            }
        );
    }

    #[test]
    fn a_202_without_a_receipt_is_not_an_acknowledgment() {
        assert!(matches!(read(202, &[], "ok"), Answer::Later { .. }));
    }
}
