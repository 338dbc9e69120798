//! How requests reach the server.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// A request of the SDK: its fields are what a [`Transport`] hands to the system.
///
/// ```
/// fn head_of(request: &unjank::Request<'_>) -> String {
///     let mut head = format!("{} {}\n", request.method, request.url);
///     for (name, value) in request.headers {
///         head += &format!("{name}: {value}\n");
///     }
///     head + &format!("content-length: {}", request.body.len())
/// }
/// ```
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Request<'r> {
    /// `GET` or `POST`.
    pub method: &'static str,
    /// The whole address.
    pub url: &'r str,
    /// Names in lower case.
    pub headers: &'r [(&'static str, &'r str)],
    /// Empty for `GET`.
    pub body: &'r [u8],
    /// How long it may take, from connecting to the last byte of the answer.
    pub timeout: Duration,
}

/// An answer, whatever its status.
///
/// ```
/// let busy = unjank::Response {
///     status: 429,
///     retry_after: Some("30".to_owned()),
///     ..unjank::Response::default()
/// };
/// assert!(busy.body.is_empty() && busy.etag.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The header `retry-after`, as sent.
    pub retry_after: Option<String>,
    /// The header `etag`, as sent.
    pub etag: Option<String>,
    /// The body, decoded; at most a mebibyte is needed.
    pub body: Vec<u8>,
}

/// Why there was no answer, for people. The request is tried again later.
///
/// ```
/// let error = unjank::TransportError("no route to host".to_owned());
/// assert_eq!(error.to_string(), "no route to host");
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TransportError(pub String);

/// Carries requests. Called by the background thread, which waits for the answer: at most as long as [`Request::timeout`] says, since
/// events wait in memory meanwhile. A panic counts as no answer.
///
/// ```
/// use unjank::{Request, Response, Transport, TransportError};
///
/// struct Stub;
///
/// impl Transport for Stub {
///     fn send(&self, request: Request<'_>) -> Result<Response, TransportError> {
///         match request.method {
///             "GET" => Ok(Response { status: 304, ..Response::default() }),
///             _ => Err(TransportError("no network".to_owned())),
///         }
///     }
/// }
/// # drop(unjank::Config::new("http://127.0.0.1:1", "demo").transport(Stub));
/// ```
pub trait Transport: Send + Sync {
    /// Sends a request and reads the answer: every status is an answer.
    ///
    /// # Errors
    /// When there was none: the batch is kept, and tried again after a wait that doubles.
    fn send(&self, request: Request<'_>) -> Result<Response, TransportError>;
}

/// Sends, and takes a transport that panics for one that has no answer: it is the app's.
pub(crate) fn send(
    transport: &dyn Transport,
    request: Request<'_>,
) -> Result<Response, TransportError> {
    catch_unwind(AssertUnwindSafe(|| transport.send(request)))
        .unwrap_or_else(|_| Err(TransportError("the transport panicked".to_owned())))
}

/// The built-in HTTP client.
#[cfg(feature = "ureq")]
#[derive(Debug)]
pub(crate) struct Ureq(ureq::Agent);

#[cfg(feature = "ureq")]
impl Ureq {
    pub(crate) fn new() -> Self {
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_age(Duration::from_secs(10))
            .build();
        Self(agent.into())
    }
}

/// Answers are small: receipts and configurations.
#[cfg(feature = "ureq")]
const MOST_BYTES: u64 = 4 << 20;

#[cfg(feature = "ureq")]
impl Transport for Ureq {
    fn send(&self, request: Request<'_>) -> Result<Response, TransportError> {
        let failed = |error: ureq::Error| TransportError(error.to_string());
        let mut builder = ureq::http::Request::builder()
            .method(request.method)
            .uri(request.url);
        for (name, value) in request.headers {
            builder = builder.header(*name, *value);
        }
        let answer = if request.method == "GET" {
            let built = builder.body(());
            let built = built.map_err(|error| TransportError(error.to_string()))?;
            let built = self
                .0
                .configure_request(built)
                .timeout_global(Some(request.timeout))
                .build();
            self.0.run(built)
        } else {
            let built = builder.body(request.body);
            let built = built.map_err(|error| TransportError(error.to_string()))?;
            let built = self
                .0
                .configure_request(built)
                .timeout_global(Some(request.timeout))
                .build();
            self.0.run(built)
        };
        let mut answer = answer.map_err(failed)?;
        let header = |name: &str| {
            let value = answer.headers().get(name)?;
            value.to_str().ok().map(str::to_owned)
        };
        let (retry_after, etag) = (header("retry-after"), header("etag"));
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MOST_BYTES);
        Ok(Response {
            status,
            retry_after,
            etag,
            body: body.read_to_vec().map_err(failed)?,
        })
    }
}
