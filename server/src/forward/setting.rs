//! A project's forwarding setting, and the rules that select its spans.

use std::collections::BTreeMap;

use reqwest::Url;
use reqwest::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use unjank_foundation::forward_document::{ForwardDocument, SpanRule};
use unjank_protocol::{Glob, Span, SpanStatus};

use super::Kind;

const MAX_ENDPOINT_CHARS: usize = 500;
const MAX_RULES: usize = 20;
const MAX_NAME_CHARS: usize = 200;
const MAX_HEADERS: usize = 10;
const MAX_HEADER_BYTES: usize = 4_096;
/// A day, the longest duration of a span.
const MAX_DURATION_MS: u64 = 86_400_000;

/// What is wrong with a setting.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardError {
    #[error("the endpoint must have at most {MAX_ENDPOINT_CHARS} characters")]
    LongEndpoint,
    #[error(
        "the endpoint must be an address such as `https://collector.example.com`, without a query"
    )]
    Endpoint,
    #[error("there can be at most {MAX_RULES} rules for spans")]
    TooManyRules,
    #[error(
        "the name of rule {0} must have 1 to {MAX_NAME_CHARS} characters, without control characters"
    )]
    Name(usize),
    #[error("`min_duration_ms` of rule {0} must be at most {MAX_DURATION_MS}")]
    Duration(usize),
    #[error("there can be at most {MAX_HEADERS} headers of at most {MAX_HEADER_BYTES} bytes each")]
    TooManyHeaders,
    #[error("`{0}` is not the name of a header that can be set")]
    HeaderName(String),
    #[error("the value of the header `{0}` has characters that a header cannot have")]
    HeaderValue(String),
}

/// A setting, ready to be used.
#[derive(Debug)]
pub struct Forward {
    document: ForwardDocument,
    endpoint: Url,
    headers: HeaderMap,
    rules: Vec<(Glob, i64, bool)>,
}

/// Returns the context that the headers of a project are sealed with.
#[must_use]
pub fn secret_context(project: &str) -> String {
    format!("forward:{project}")
}

impl Forward {
    /// Checks a setting. Returns `None` if it has no endpoint.
    pub fn new(
        mut document: ForwardDocument,
        headers: &BTreeMap<String, String>,
    ) -> Result<Option<Self>, ForwardError> {
        document.endpoint = document.endpoint.trim().to_owned();
        if document.endpoint.chars().count() > MAX_ENDPOINT_CHARS {
            return Err(ForwardError::LongEndpoint);
        }
        let rules = rules(&document.spans)?;
        let headers = header_map(headers)?;
        if document.endpoint.is_empty() {
            return Ok(None);
        }
        let endpoint = Url::parse(&document.endpoint).map_err(|_| ForwardError::Endpoint)?;
        let has_rest = endpoint.query().is_some() || endpoint.fragment().is_some();
        if !endpoint.has_host() || has_rest {
            return Err(ForwardError::Endpoint);
        }
        Ok(Some(Self {
            document,
            endpoint,
            headers,
            rules,
        }))
    }

    #[must_use]
    pub fn document(&self) -> &ForwardDocument {
        &self.document
    }

    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Hides the values of the headers in a text of the collector, because some collectors repeat the request in their answers.
    #[must_use]
    pub fn without_secrets(&self, text: &str) -> String {
        let values = self.headers.values().filter_map(|one| one.to_str().ok());
        values.fold(text.to_owned(), hide)
    }

    /// Returns the address for the requests of a kind.
    #[must_use]
    pub fn url(&self, kind: Kind) -> String {
        let base = self.endpoint.as_str().trim_end_matches('/');
        format!("{base}{}", kind.path())
    }

    pub(super) fn matches(&self, span: &Span<'_>) -> bool {
        let is_error = span.status == SpanStatus::Error;
        self.rules.iter().any(|(name, least_us, only_errors)| {
            span.duration_us >= *least_us
                && (is_error || !only_errors)
                && name.matches(span.name.as_str())
        })
    }
}

fn rules(rules: &[SpanRule]) -> Result<Vec<(Glob, i64, bool)>, ForwardError> {
    if rules.len() > MAX_RULES {
        return Err(ForwardError::TooManyRules);
    }
    let rules = (1..).zip(rules).map(|(place, rule)| {
        let chars = rule.name.chars().count();
        if !(1..=MAX_NAME_CHARS).contains(&chars) || rule.name.contains(char::is_control) {
            return Err(ForwardError::Name(place));
        }
        let least_us = i64::try_from(rule.min_duration_ms.saturating_mul(1_000));
        match least_us {
            Ok(least_us) if rule.min_duration_ms <= MAX_DURATION_MS => {
                Ok((Glob::new(&rule.name), least_us, rule.only_errors))
            }
            _ => Err(ForwardError::Duration(place)),
        }
    });
    rules.collect()
}

/// Hides a header's value in a text, and its longer words: the first word of `authorization` is no secret.
fn hide(text: String, value: &str) -> String {
    let words = value.split_whitespace().filter(|word| word.len() >= 8);
    let secrets = std::iter::once(value).chain(words);
    let secrets = secrets.filter(|secret| secret.len() >= 4);
    secrets.fold(text, |text, secret| text.replace(secret, "[hidden]"))
}

fn header_map(headers: &BTreeMap<String, String>) -> Result<HeaderMap, ForwardError> {
    let is_long = |(name, value): (&String, &String)| name.len() + value.len() > MAX_HEADER_BYTES;
    if headers.len() > MAX_HEADERS || headers.iter().any(is_long) {
        return Err(ForwardError::TooManyHeaders);
    }
    let own = [
        CONTENT_TYPE,
        CONTENT_LENGTH,
        CONTENT_ENCODING,
        TRANSFER_ENCODING,
        HOST,
    ];
    let headers = headers.iter().map(|(text, value)| {
        let name = HeaderName::try_from(text).ok();
        let name = name.filter(|name| !own.contains(name));
        let name = name.ok_or_else(|| ForwardError::HeaderName(text.clone()))?;
        let value = HeaderValue::try_from(value);
        let mut value = value.map_err(|_| ForwardError::HeaderValue(text.clone()))?;
        value.set_sensitive(true);
        Ok((name, value))
    });
    headers.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forward(document: serde_json::Value) -> Result<Option<Forward>, ForwardError> {
        Forward::new(serde_json::from_value(document).unwrap(), &BTreeMap::new())
    }

    #[test]
    fn the_path_of_the_signal_follows_that_of_the_endpoint() {
        for (endpoint, url) in [
            ("https://a.example", "https://a.example/v1/traces"),
            ("https://a.example/", "https://a.example/v1/traces"),
            (
                " http://a.example:4318/otlp/ ",
                "http://a.example:4318/otlp/v1/traces",
            ),
        ] {
            let forward = forward(serde_json::json!({"endpoint": endpoint}));
            assert_eq!(forward.unwrap().unwrap().url(Kind::Spans), url);
        }
        assert!(forward(serde_json::json!({})).unwrap().is_none());
        for wrong in ["collector", "https://a.example/?key=1", "mailto:a@b.c"] {
            let error = forward(serde_json::json!({"endpoint": wrong})).unwrap_err();
            assert_eq!(error, ForwardError::Endpoint, "{wrong}");
        }
    }

    #[test]
    fn headers_of_the_body_cannot_be_set() {
        let with = |name: &str, value: &str| {
            let headers = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            Forward::new(ForwardDocument::default(), &headers).map(|_| ())
        };
        assert_eq!(with("Authorization", "Bearer secret"), Ok(()));
        for name in ["Content-Type", "host", "a b", ""] {
            let error = ForwardError::HeaderName(name.to_owned());
            assert_eq!(with(name, "x"), Err(error));
        }
        let error = ForwardError::HeaderValue("x-key".to_owned());
        assert_eq!(with("x-key", "a\nb"), Err(error));
    }
}
