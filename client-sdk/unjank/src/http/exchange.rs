//! One request and its response: what is measured, and what is recorded at the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

#[cfg(feature = "reqwest")]
use ::http::header::ACCEPT;
use ::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING};
use ::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body::SizeHint;

use super::TraceLayer;
use super::path_name::without_ids;
use crate::measure::client::{self, Shared};
use crate::measure::page_load::{NetworkRequest, request};
use crate::measure::span::{DetachedSpan, Entered, network_span};
use crate::measure::traffic::{Transferred, count};

pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// What the body of a request has sent so far.
#[derive(Debug, Default)]
pub(super) struct Sent {
    bytes: AtomicU64,
    /// The client asked for the body, which it does when it has a connection.
    is_begun: AtomicBool,
}

impl Sent {
    pub(super) fn add(&self, bytes: u64) {
        self.begin();
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn begin(&self) {
        self.is_begun.store(true, Ordering::Relaxed);
    }
}

/// How an exchange ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The app dropped the request or the body of the response.
    Dropped,
    /// The body of the response was read to its end.
    Read,
    /// There is no response, or its body failed.
    Failed,
}

/// A request that is under way. It is recorded when it is dropped.
#[derive(Debug)]
pub(super) struct Exchange {
    /// `None` only after the end.
    span: Option<DetachedSpan>,
    of_page: Option<NetworkRequest>,
    host: String,
    mime_type: String,
    counts_traffic: bool,
    head_bytes: u64,
    pub(super) sent: Arc<Sent>,
    pub(super) received_bytes: u64,
    /// 0 until there is a response.
    status: u16,
    pub(super) end: End,
}

/// The head of a request, and what is known about the size of its body.
pub(super) struct Head<'r> {
    pub(super) method: &'r Method,
    pub(super) uri: &'r Uri,
    pub(super) headers: &'r HeaderMap,
    pub(super) body: SizeHint,
}

impl Exchange {
    /// Begins to measure a request. Returns `None` if nothing is collected, or the request is excluded.
    pub(super) fn begin(layer: &TraceLayer, head: &Head<'_>) -> Option<Box<Self>> {
        if !client::is_on() {
            return None;
        }
        let host = host(head)?.to_ascii_lowercase();
        let is_excluded = layer.excluded.iter().any(|glob| glob.matches(&host));
        let is_ours = client::with(|shared| {
            let is_ours = is_of_sdk(shared, head);
            if layer.counts_traffic && !is_excluded && !is_ours {
                shared.measured_hosts.add(&host);
            }
            is_ours
        })?;
        if is_excluded || is_ours {
            return None;
        }
        let path = head.uri.path();
        let mut span = network_span(format!("{} {}", head.method, without_ids(path)));
        span.attribute("http.request.method", head.method);
        span.attribute("server.address", &host);
        span.attribute("url.path", path);
        Some(Box::new(Self {
            span: Some(span),
            of_page: Some(request(path)),
            host,
            mime_type: String::new(),
            counts_traffic: layer.counts_traffic,
            head_bytes: request_bytes(head),
            sent: Arc::default(),
            received_bytes: 0,
            status: 0,
            end: End::Dropped,
        }))
    }

    /// Returns the `traceparent` to add to the request, and counts its bytes.
    pub(super) fn traceparent(
        &mut self,
        layer: &TraceLayer,
        headers: &HeaderMap,
    ) -> Option<HeaderValue> {
        let is_allowed = layer.propagated.iter().any(|glob| glob.matches(&self.host));
        if !is_allowed || headers.contains_key(TRACEPARENT) {
            return None;
        }
        let context = self.span.as_ref()?.context();
        let value = HeaderValue::try_from(context.traceparent()?).ok()?;
        let added = header_length(&TRACEPARENT, &value);
        self.head_bytes = self.head_bytes.saturating_add(added);
        Some(value)
    }

    /// Makes the span the parent of spans that begin on this thread.
    pub(super) fn enter(&self) -> Option<Entered> {
        self.span.as_ref().map(DetachedSpan::enter)
    }

    /// Notes the head of the response.
    pub(super) fn answered(&mut self, status: StatusCode, headers: &HeaderMap) {
        self.status = status.as_u16();
        let mime_type = headers.get(CONTENT_TYPE);
        let mime_type = mime_type.and_then(|value| value.to_str().ok());
        mime_type
            .unwrap_or_default()
            .clone_into(&mut self.mime_type);
        let reason = status.canonical_reason().unwrap_or_default().len();
        // `HTTP/1.1 200 `, the reason and two line ends.
        self.received_bytes = length(13_usize.saturating_add(reason).saturating_add(4))
            .saturating_add(header_bytes(headers));
        if let Some(span) = &mut self.span {
            span.event("response");
        }
    }

    /// Notes that another host or path responded, after a redirect.
    #[cfg(feature = "reqwest")]
    pub(super) fn redirected(&mut self, host: &str, path: &str) {
        if self.counts_traffic {
            client::with(|shared| shared.measured_hosts.add(host));
        }
        host.clone_into(&mut self.host);
        if let Some(span) = &mut self.span {
            span.attribute("redirected_to", format_args!("{host}{path}"));
        }
    }

    /// Returns the bytes that were sent: none if the client never asked for the body.
    fn sent_bytes(&self) -> u64 {
        if self.status == 0 && !self.sent.is_begun.load(Ordering::Relaxed) {
            return 0;
        }
        let body = self.sent.bytes.load(Ordering::Relaxed);
        self.head_bytes.saturating_add(body)
    }

    fn record(&mut self) {
        let sent_bytes = self.sent_bytes();
        if self.counts_traffic {
            let transferred = Transferred {
                host: &self.host,
                mime_type: &self.mime_type,
                tx_bytes: sent_bytes,
                rx_bytes: self.received_bytes,
                answered: self.status != 0,
            };
            client::with(|shared| count(shared, transferred));
        }
        match self.of_page.take() {
            Some(of_page) if self.end != End::Failed && self.status != 0 => {
                of_page.end(self.status);
            }
            unanswered => drop(unanswered),
        }
        let Some(mut span) = self.span.take() else {
            return;
        };
        if self.status != 0 {
            span.attribute("http.response.status_code", self.status);
            let body = match self.end {
                End::Dropped => "dropped",
                End::Read => "read",
                End::Failed => "failed",
            };
            span.attribute("body", body);
        }
        span.attribute("http.request.size", sent_bytes);
        span.attribute("http.response.size", self.received_bytes);
        match self.end {
            // A panic that unwinds the request is an error.
            End::Dropped if std::thread::panicking() => drop(span),
            End::Failed => span.end_error(),
            _ if self.status >= 400 => span.end_error(),
            End::Read => span.end_ok(),
            End::Dropped => span.end_cancelled(),
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.record();
    }
}

/// Returns the host of a request, which a server finds in its headers.
fn host<'r>(head: &Head<'r>) -> Option<&'r str> {
    let of_header = || {
        let host = head.headers.get(HOST)?.to_str().ok()?;
        let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
        let has_port = port.bytes().all(|byte| byte.is_ascii_digit());
        Some(if has_port { name } else { host })
    };
    head.uri.host().or_else(of_header)
}

/// Returns whether the SDK itself makes the request, through a transport of the app.
fn is_of_sdk(shared: &Shared, head: &Head<'_>) -> bool {
    let path = head.uri.path();
    if !path.ends_with("/v1/ingest") && !path.ends_with("/v1/config") {
        return false;
    }
    let Ok(endpoint) = shared.config.endpoint.parse::<Uri>() else {
        return false;
    };
    let base = endpoint.path().trim_end_matches('/');
    let is_path = matches!(path.strip_prefix(base), Some("/v1/ingest" | "/v1/config"));
    let hosts = host(head).zip(endpoint.host());
    let is_host = hosts.is_some_and(|(one, other)| one.eq_ignore_ascii_case(other));
    // A request without an authority is made over a connection that was opened before.
    let is_port = head.uri.host().is_none() || port(head.uri) == port(&endpoint);
    is_path && is_host && is_port
}

fn port(uri: &Uri) -> Option<u16> {
    uri.port_u16().or_else(|| match uri.scheme_str() {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    })
}

/// Returns the size of the head as HTTP/1.1 writes it.
fn request_bytes(head: &Head<'_>) -> u64 {
    let target = head.uri.path_and_query();
    let target = target.map_or(1, |target| target.as_str().len());
    // Spaces, `HTTP/1.1` and two line ends.
    let line = head.method.as_str().len().saturating_add(target);
    let mut bytes = length(line.saturating_add(14)).saturating_add(header_bytes(head.headers));
    let mut add = |more: usize| bytes = bytes.saturating_add(length(more));
    if let Some(authority) = head.uri.authority()
        && !head.headers.contains_key(HOST)
    {
        let user = authority
            .as_str()
            .rfind('@')
            .map_or(0, |at| at.saturating_add(1));
        add(authority
            .as_str()
            .len()
            .saturating_sub(user)
            .saturating_add(8));
    }
    let is_framed =
        head.headers.contains_key(CONTENT_LENGTH) || head.headers.contains_key(TRANSFER_ENCODING);
    match head.body.exact() {
        _ if is_framed => {}
        Some(0) => {}
        Some(exact) => add(exact.to_string().len().saturating_add(18)),
        None => add("transfer-encoding: chunked\r\n".len()),
    }
    bytes
}

/// The header that `reqwest` adds, unless the app sets it.
#[cfg(feature = "reqwest")]
pub(super) fn add_accept(exchange: &mut Exchange, headers: &HeaderMap) {
    if !headers.contains_key(ACCEPT) {
        exchange.head_bytes = exchange.head_bytes.saturating_add(13);
    }
}

pub(super) fn header_bytes(headers: &HeaderMap) -> u64 {
    let sizes = headers
        .iter()
        .map(|(name, value)| header_length(name, value));
    sizes.fold(0, u64::saturating_add)
}

/// Returns the size of a header with a colon, a space and a line end.
fn header_length(name: &HeaderName, value: &HeaderValue) -> u64 {
    let bytes = name.as_str().len().saturating_add(value.len());
    length(bytes.saturating_add(4))
}

pub(super) fn length(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}
