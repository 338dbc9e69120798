//! The layer as a service of `tower`.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use ::http::{Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::TraceLayer;
use super::bodies::{RequestBody, ResponseBody};
use super::exchange::{End, Exchange, Head, TRACEPARENT};

/// A client with a [`TraceLayer`].
///
/// ```
/// use tower_layer::Layer;
/// use unjank::http::{ResponseFuture, TraceLayer, TraceService};
///
/// struct Client; // any `tower::Service`
///
/// let service: TraceService<Client> = TraceLayer::new().layer(Client);
/// # type Waiting = ResponseFuture<std::future::Ready<()>>;
/// # drop(service);
/// ```
#[derive(Clone, Debug)]
pub struct TraceService<S> {
    client: S,
    layer: TraceLayer,
}

impl<S> Layer<S> for TraceLayer {
    type Service = TraceService<S>;

    fn layer(&self, client: S) -> TraceService<S> {
        TraceService {
            client,
            layer: self.clone(),
        }
    }
}

impl<S, B, R> Service<Request<B>> for TraceService<S>
where
    S: Service<Request<RequestBody<B>>, Response = Response<R>>,
    B: Body,
    R: Body,
{
    type Response = Response<ResponseBody<R>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.client.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let head = Head {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            body: request.body().size_hint(),
        };
        let mut exchange = Exchange::begin(&self.layer, &head);
        let parent = exchange
            .as_mut()
            .and_then(|exchange| exchange.traceparent(&self.layer, request.headers()));
        if let Some(parent) = parent {
            request.headers_mut().insert(TRACEPARENT, parent);
        }
        let sent = exchange.as_ref().map(|exchange| exchange.sent.clone());
        let request = request.map(|body| RequestBody::new(body, sent));
        let entered = exchange.as_ref().map(|exchange| exchange.enter());
        let response = self.client.call(request);
        drop(entered);
        ResponseFuture { response, exchange }
    }
}

pin_project! {
    /// Waits for the head of a response.
    ///
    /// ```
    /// use unjank::http::ResponseFuture;
    ///
    /// fn boxed<F: Send + 'static>(waiting: ResponseFuture<F>) -> Box<dyn Send> {
    ///     Box::new(waiting)
    /// }
    /// ```
    #[derive(Debug)]
    #[must_use = "futures do nothing unless they are polled"]
    pub struct ResponseFuture<F> {
        // Dropped before the request ends.
        #[pin]
        response: F,
        exchange: Option<Box<Exchange>>,
    }
}

impl<F, R, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
    R: Body,
{
    type Output = Result<Response<ResponseBody<R>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let entered = this.exchange.as_ref().map(|exchange| exchange.enter());
        let response = this.response.poll(context);
        drop(entered);
        let response = ready!(response);
        let mut exchange = this.exchange.take();
        if let Some(exchange) = &mut exchange {
            match &response {
                Ok(response) => exchange.answered(response.status(), response.headers()),
                Err(_) => exchange.end = End::Failed,
            }
        }
        Poll::Ready(response.map(|response| response.map(|body| ResponseBody::new(body, exchange))))
    }
}
