//! A relay in front of a server, as a network and a proxy are at their worst.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::http::{HeaderName, HeaderValue, StatusCode};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What happens to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The relay answers this, and the server sees nothing of the request.
    Answers(u16),
    /// The server takes the request, and the connection ends without an answer.
    LosesAnswer,
    /// Like [`Self::LosesAnswer`], and no request reaches a server until [`Relay::lead_to`].
    LosesAnswerAndStops,
}

/// How many times the same bytes came on the same path, and what happens to a request then.
type Faults = fn(&str, usize) -> Option<Fault>;

struct State {
    faults: Faults,
    client: reqwest::Client,
    /// Where the server is.
    server: watch::Sender<Option<String>>,
    arrived: Mutex<HashMap<(String, Bytes), usize>>,
}

pub(crate) struct Relay {
    pub(crate) url: String,
    state: Arc<State>,
    running: JoinHandle<Infallible>,
}

/// The connection ends.
#[derive(Debug, thiserror::Error)]
#[error("lost")]
struct Lost;

impl Relay {
    pub(crate) async fn before(server: &str, faults: Faults) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(State {
            faults,
            client: reqwest::Client::new(),
            server: watch::Sender::new(Some(server.to_owned())),
            arrived: Mutex::default(),
        });
        #[expect(clippy::disallowed_methods, reason = "`drop` ends it")]
        let running = tokio::spawn(serve(listener, Arc::clone(&state)));
        Self {
            url,
            state,
            running,
        }
    }

    /// Waits until the relay has stopped.
    pub(crate) async fn stopped(&self) {
        let mut server = self.state.server.subscribe();
        server.wait_for(Option::is_none).await.unwrap();
    }

    /// Leads requests to another server.
    pub(crate) fn lead_to(&self, server: &str) {
        self.state.server.send_replace(Some(server.to_owned()));
    }

    /// Returns how many different requests came, and how many in all.
    pub(crate) fn requests(&self) -> (usize, usize) {
        let arrived = self.state.arrived.lock().unwrap();
        (arrived.len(), arrived.values().sum())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.running.abort();
    }
}

async fn serve(listener: TcpListener, state: Arc<State>) -> Infallible {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let state = Arc::clone(&state);
        let answers = service_fn(move |request| {
            let state = Arc::clone(&state);
            async move { state.answer(request).await }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answers);
        #[expect(clippy::disallowed_methods, reason = "ends with its client")]
        let _connection = tokio::spawn(connection);
    }
}

impl State {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Lost> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let body = body.collect().await.map_err(|_| Lost)?.to_bytes();
        let time = self.count(path.clone(), body.clone());
        let fault = (self.faults)(&path, time);
        if let Some(Fault::Answers(status)) = fault {
            let mut response = Response::default();
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            return Ok(response);
        }
        let server = {
            let mut server = self.server.subscribe();
            let server = server.wait_for(Option::is_some).await.map_err(|_| Lost)?;
            server.clone().unwrap_or_default()
        };
        let request = self.client.post(format!("{server}{path}")).body(body);
        let kept = ["authorization", "content-type", "content-encoding"];
        let kept = kept.iter().filter_map(|name| {
            let value: HeaderValue = head.headers.get(*name)?.clone();
            Some((HeaderName::from_static(name), value))
        });
        let answer = request.headers(kept.collect()).send().await;
        let answer = answer.map_err(|_| Lost)?;
        match fault {
            Some(Fault::LosesAnswer) => return Err(Lost),
            Some(Fault::LosesAnswerAndStops) => {
                self.server.send_replace(None);
                return Err(Lost);
            }
            _ => {}
        }
        let mut response = Response::default();
        *response.status_mut() = answer.status();
        for name in ["content-type", "retry-after"] {
            if let Some(value) = answer.headers().get(name) {
                let name = HeaderName::from_static(name);
                response.headers_mut().insert(name, value.clone());
            }
        }
        *response.body_mut() = Full::new(answer.bytes().await.map_err(|_| Lost)?);
        Ok(response)
    }

    fn count(&self, path: String, body: Bytes) -> usize {
        let mut arrived = self.arrived.lock().unwrap();
        let count = arrived.entry((path, body)).or_default();
        *count += 1;
        *count
    }
}
