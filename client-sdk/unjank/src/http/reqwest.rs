//! The layer as a middleware of `reqwest-middleware`.

use std::future::poll_fn;

use ::http::{Extensions, Response as HttpResponse, Uri};
use ::reqwest::{Body, Request, Response, ResponseBuilderExt};
use http_body::{Body as _, SizeHint};
use reqwest_middleware::{Error, Middleware, Next, Result};

use super::TraceLayer;
use super::bodies::{RequestBody, ResponseBody};
use super::exchange::{End, Exchange, Head, TRACEPARENT, add_accept, length};

#[async_trait::async_trait]
impl Middleware for TraceLayer {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<Response> {
        let Some(mut exchange) = begin(self, &request) else {
            return next.run(request, extensions).await;
        };
        if let Some(parent) = exchange.traceparent(self, request.headers()) {
            request.headers_mut().insert(TRACEPARENT, parent);
        }
        let url = request.url().clone();
        let whole = request.body().and_then(Body::as_bytes).map(<[u8]>::len);
        // A body in memory stays as it is, because `reqwest` can send it again after a redirect.
        if whole.is_none()
            && let Some(body) = request.body_mut().take()
        {
            let counting = RequestBody::new(body, Some(exchange.sent.clone()));
            *request.body_mut() = Some(Body::wrap(counting));
        }
        let mut running = next.run(request, extensions);
        let response = poll_fn(|context| {
            let _entered = exchange.enter();
            running.as_mut().poll(context)
        });
        let response = response.await;
        if !response.as_ref().is_err_and(Error::is_connect) {
            exchange.sent.add(length(whole.unwrap_or_default()));
        }
        match response {
            Ok(response) => {
                exchange.answered(response.status(), response.headers());
                let last = response.url();
                if *last != url {
                    let host = last.host_str().unwrap_or_default().to_owned();
                    exchange.redirected(&host, last.path());
                }
                Ok(counting(response, exchange))
            }
            Err(error) => {
                exchange.end = End::Failed;
                Err(error)
            }
        }
    }
}

fn begin(layer: &TraceLayer, request: &Request) -> Option<Box<Exchange>> {
    // An address that `http` cannot parse fails in the client as well.
    let uri: Uri = request.url().as_str().parse().ok()?;
    let body = match request.body() {
        None => SizeHint::with_exact(0),
        Some(body) => body.size_hint(),
    };
    let head = Head {
        method: request.method(),
        uri: &uri,
        headers: request.headers(),
        body,
    };
    let mut exchange = Exchange::begin(layer, &head)?;
    add_accept(&mut exchange, request.headers());
    Some(exchange)
}

/// Returns the response with a body that counts.
fn counting(response: Response, exchange: Box<Exchange>) -> Response {
    let url = response.url().clone();
    let (mut parts, body) = HttpResponse::<Body>::from(response).into_parts();
    // The conversion loses the address.
    if let Ok(located) = HttpResponse::builder().url(url).body(()) {
        parts.extensions.extend(located.into_parts().0.extensions);
    }
    let body = Body::wrap(ResponseBody::new(body, Some(exchange)));
    HttpResponse::from_parts(parts, body).into()
}
