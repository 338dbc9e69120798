//! How requests reach the server.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
#[cfg(feature = "ureq")]
use ureq::http::request::Builder;

/// A request of the SDK, whose fields a [`Transport`] passes on to the system.
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
    /// The full URL.
    pub url: &'r str,
    /// The headers; names are in lower case.
    pub headers: &'r [(&'static str, &'r str)],
    /// The body; empty for `GET`.
    pub body: &'r [u8],
    /// The time limit, from connecting to the last byte of the response.
    pub timeout: Duration,
}

/// The server's response, whatever its status.
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
    /// The HTTP status code.
    pub status: u16,
    /// The `retry-after` header, as received.
    pub retry_after: Option<String>,
    /// The `etag` header, as received.
    pub etag: Option<String>,
    /// The `accept-post` header, as received. Without it, the SDK sends JSON, which takes more bytes and time.
    pub accept_post: Option<String>,
    /// The decoded body. The SDK needs at most 1 MiB of it.
    pub body: Vec<u8>,
}

/// Why there was no response, as a text for people. The request is retried later.
///
/// ```
/// let error = unjank::TransportError("no route to host".to_owned());
/// assert_eq!(error.to_string(), "no route to host");
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct TransportError(pub String);

/// Carries requests to the server. The SDK calls it on a thread that it starts for the request, one request at a time. It has to return
/// within [`Request::timeout`], because nothing else is sent until then. A panic counts as no response.
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
    /// Sends a request and reads the response. Every HTTP status counts as a response.
    ///
    /// # Errors
    /// If there is no response. The SDK keeps the batch, and retries after a wait that doubles with each failure.
    fn send(&self, request: Request<'_>) -> Result<Response, TransportError>;
}

/// Sends a request. A panic in the app's transport counts as no response.
pub(crate) fn send(
    transport: &dyn Transport,
    request: Request<'_>,
) -> Result<Response, TransportError> {
    catch_unwind(AssertUnwindSafe(|| transport.send(request)))
        .unwrap_or_else(|_| Err(TransportError("the transport panicked".to_owned())))
}

/// Carries nothing: [`crate::Config::offline`].
#[derive(Debug)]
pub(crate) struct Nowhere;

impl Transport for Nowhere {
    fn send(&self, _request: Request<'_>) -> Result<Response, TransportError> {
        Err(TransportError("offline".to_owned()))
    }
}

/// The built-in HTTP client.
#[cfg(feature = "ureq")]
#[derive(Debug)]
pub(crate) struct Ureq(ureq::Agent);

#[cfg(feature = "ureq")]
impl Ureq {
    /// Trusts the authorities in `pem`, or the public ones if it is empty.
    pub(crate) fn new(pem: &[u8]) -> Result<Self, String> {
        let tls = ureq::tls::TlsConfig::builder().root_certs(trusted(pem)?);
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_age(Duration::from_secs(10))
            .tls_config(tls.build())
            .build();
        Ok(Self(agent.into()))
    }
}

#[cfg(feature = "ureq")]
fn trusted(pem: &[u8]) -> Result<ureq::tls::RootCerts, String> {
    use ureq::tls::{PemItem, RootCerts, parse_pem};
    if pem.is_empty() {
        return Ok(match cfg!(feature = "platform-verifier") {
            true => RootCerts::PlatformVerifier,
            false => RootCerts::WebPki,
        });
    }
    let mut certificates = Vec::new();
    for item in parse_pem(pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => certificates.push(certificate),
            Ok(_) => {}
            Err(error) => return Err(format!("`Config::root_certificates` is not PEM: {error}")),
        }
    }
    if certificates.is_empty() {
        return Err("`Config::root_certificates` has no certificate in PEM format".to_owned());
    }
    Ok(RootCerts::new_with_certs(&certificates))
}

/// Responses are small: receipts and configurations.
#[cfg(feature = "ureq")]
const MOST_BYTES: u64 = 4 << 20;

#[cfg(feature = "ureq")]
impl Transport for Ureq {
    fn send(&self, request: Request<'_>) -> Result<Response, TransportError> {
        let failed = |error: ureq::Error| TransportError(error.to_string());
        let mut builder = Builder::new().method(request.method).uri(request.url);
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
        let [retry_after, etag] = ["retry-after", "etag"].map(header);
        // A proxy may have added a line to the list.
        let lists = answer.headers().get_all("accept-post").iter();
        let lists: Vec<_> = lists.filter_map(|list| list.to_str().ok()).collect();
        let accept_post = (!lists.is_empty()).then(|| lists.join(","));
        let status = answer.status().as_u16();
        let body = answer.body_mut().with_config().limit(MOST_BYTES);
        Ok(Response {
            status,
            retry_after,
            etag,
            accept_post,
            body: body.read_to_vec().map_err(failed)?,
        })
    }
}
