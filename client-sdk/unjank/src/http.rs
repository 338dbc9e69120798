//! Measures requests where the HTTP client makes them (features `tower` and `reqwest`), so that the app does not have to report each
//! one.
//!
//! Each request becomes:
//! * a span of kind `network`, named after the method and the path, such as `GET /orders/{id}`. Parts of the path that look like ids
//!   become `{id}` in the name. The span lasts from the call until the body of the response is read, dropped or fails. It is a child
//!   of the span that is open where the request is made;
//! * traffic, as [`crate::traffic()`] counts it;
//! * a request of the page that loads, as [`crate::request`] begins it.
//!
//! | attribute | value |
//! |---|---|
//! | `http.request.method`, `server.address`, `url.path` | method, host and path; never the query |
//! | `http.response.status_code` | the status, if there was a response |
//! | `http.request.size`, `http.response.size` | head and body, in bytes |
//! | `body` | `read` to its end, `dropped` before it, or `failed` |
//! | `redirected_to` | host and path that responded, if `reqwest` followed a redirect |
//!
//! The event `response` marks the arrival of the response's head. The status of the span is `ok`; `error` if there is no response, its
//! status is 400 or above, or its body fails; `cancelled` if the app gives the request up before a response, or drops the body
//! before its end.
//!
//! # Bytes
//! Bodies are counted as they pass the layer, so put the layer below layers that compress and decompress. The built-in decompression of
//! `reqwest` works below any middleware. Heads are counted as HTTP/1.1 writes them, without headers that the client adds below the layer,
//! except `host`, the length of the body, and the `accept` of `reqwest`. TLS, the sizes of
//! chunks and the frames of HTTP/2 are not counted. A request that fails before it is written has no bytes.
//!
//! Below a layer that follows redirects or retries, each try is a request. `reqwest` follows redirects below any middleware, so such a
//! request counts once, with the head and the body of the first try and the last response.
//!
//! # Spans of the servers
//! [`TraceLayer::propagate_to`] sends the W3C header `traceparent` to hosts of your own, so that the spans of the app and of the servers are in
//! one trace. By default no host gets it.
//!
//! # Nothing counts twice
//! * While the SDK runs, calls of [`crate::traffic()`] for a host that a layer has measured do nothing, up to 4,096 hosts. An app that counts
//!   some hosts itself uses [`TraceLayer::exclude`] or [`TraceLayer::without_traffic`].
//! * A request that the app also reports with [`crate::request`] does not change the times of the page.
//! * Requests of the SDK to its server are never measured.

mod bodies;
mod exchange;
mod path_name;
#[cfg(feature = "reqwest")]
mod reqwest;
mod service;

use std::sync::Arc;

use unjank_protocol::Glob;

pub use self::bodies::{RequestBody, ResponseBody};
pub use self::service::{ResponseFuture, TraceService};

/// Measures each request of the HTTP client below it; see the [module](self).
///
/// With the feature `tower`, this is a [`tower_layer::Layer`] for every service that takes a [`Request`](::http::Request), such
/// as the clients of `hyper-util`:
///
/// ```
/// use tower::ServiceBuilder;
/// use tower::util::service_fn;
/// use unjank::http::{RequestBody, TraceLayer};
///
/// # let client = service_fn(async |_: http::Request<RequestBody<String>>| {
/// #     Ok::<_, std::io::Error>(http::Response::new(String::new()))
/// # });
/// let service = ServiceBuilder::new()
///     .layer(TraceLayer::new().exclude(["*.tracker.example", "localhost"]))
///     .service(client); // any client
/// # drop(service);
/// ```
///
/// With the feature `reqwest`, this is also a middleware of `reqwest-middleware`, whose client has the calls of `reqwest`. The
/// service of [`reqwest::Client`](https://docs.rs/reqwest) does not take `http::Request`, so it needs the middleware:
///
/// ```
/// # #[cfg(feature = "reqwest")] {
/// # let build = || {
/// let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new())
///     .with(unjank::http::TraceLayer::new())
///     .build();
/// # client
/// # };
/// # drop(build);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct TraceLayer {
    excluded: Arc<[Glob]>,
    propagated: Arc<[Glob]>,
    counts_traffic: bool,
}

impl Default for TraceLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl TraceLayer {
    /// Creates a layer that measures requests to all hosts.
    ///
    /// ```
    /// let layer = unjank::http::TraceLayer::new();
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn new() -> Self {
        Self {
            excluded: Arc::new([]),
            propagated: Arc::new([]),
            counts_traffic: true,
        }
    }

    /// Leaves out requests whose host matches one of the globs: no span, no traffic and no request of a page. `*` matches any
    /// characters, `?` one. ASCII case and the port are ignored. Further calls add globs.
    ///
    /// ```
    /// let layer = unjank::http::TraceLayer::new().exclude(["*.tracker.example", "10.0.*"]);
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn exclude(mut self, hosts: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.excluded = with_more(&self.excluded, hosts);
        self
    }

    /// Sends the W3C header `traceparent` with requests whose host matches one of the globs, as [`Self::exclude`] matches them. The
    /// header has the ids of the trace and of the request's span, so the spans of the server join the trace of the app. Further
    /// calls add globs. Without a call, no request gets the header.
    ///
    /// A request that has the header keeps its own. A request that is not recorded, because sampling left it out or nothing is
    /// collected, gets the ids of the nearest recorded span around it. Without one it gets no header, and the server decides for
    /// itself what it records. So the header always says *sampled* (`01`).
    ///
    /// `reqwest` follows redirects below any middleware, and takes the header along to other hosts.
    ///
    /// ```
    /// let layer = unjank::http::TraceLayer::new().propagate_to(["*.shop.example"]);
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn propagate_to(mut self, hosts: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        self.propagated = with_more(&self.propagated, hosts);
        self
    }

    /// Records spans and requests of pages only, for apps that call [`crate::traffic()`] themselves.
    ///
    /// ```
    /// let layer = unjank::http::TraceLayer::new().without_traffic();
    /// # drop(layer);
    /// ```
    #[must_use]
    pub fn without_traffic(mut self) -> Self {
        self.counts_traffic = false;
        self
    }
}

fn with_more(globs: &[Glob], hosts: impl IntoIterator<Item = impl AsRef<str>>) -> Arc<[Glob]> {
    let more = hosts.into_iter().map(|host| Glob::new(host.as_ref()));
    globs.iter().cloned().chain(more).collect()
}
