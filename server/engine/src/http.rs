//! The HTTP interface: paths, authentication, waiting for a place, and answers with their headers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

use crate::body::{AnswerBody, ClientWatch};
use crate::engine::{Engine, STACK};
use crate::exception::Exception;
use crate::execute::{self, Job};
use crate::ffi::Counts;
use crate::flush::Flushes;
use crate::formats::content_type;
use crate::input::{Input, Packing, body_channel, pump};
use crate::multipart;
use crate::options::EngineOptions;
use crate::output::{Beginning, Output};
use crate::request::{self, Credentials, Request};
use crate::running::Registry;
use crate::sessions::Sessions;

/// A form is read whole, so it may not be larger than this.
const LARGEST_FORM: usize = 32 << 20;

/// What all requests share.
pub(crate) struct Interface {
    pub(crate) engine: Arc<Engine>,
    pub(crate) options: EngineOptions,
    pub(crate) registry: Arc<Registry>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) runtime: Handle,
    pub(crate) host_name: HeaderValue,
}

type Answer = Response<AnswerBody>;

impl Interface {
    /// Answers a request. Every error has an answer.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: hyper::Request<Incoming>,
    ) -> Result<Answer, Infallible> {
        let (parts, body) = request.into_parts();
        let mut answer = match (parts.uri.path(), &parts.method) {
            ("/ping" | "/replicas_status", _) => text(StatusCode::OK, "Ok.\n"),
            ("/", &Method::GET | &Method::HEAD) if parts.uri.query().is_none_or(str::is_empty) => {
                text(StatusCode::OK, "Ok.\n")
            }
            ("/" | "/query", &Method::GET | &Method::HEAD | &Method::POST) => {
                self.query(parts, body).await
            }
            ("/" | "/query", _) => text(StatusCode::METHOD_NOT_ALLOWED, "Use GET or POST.\n"),
            (path, _) => text(
                StatusCode::NOT_FOUND,
                format!("There is no handle {path}\n\nUse / or /ping for health checks.\n"),
            ),
        };
        answer.headers_mut().insert(
            HeaderName::from_static("x-clickhouse-server-display-name"),
            self.host_name.clone(),
        );
        Ok(answer)
    }

    async fn query(&self, parts: Parts, body: Incoming) -> Answer {
        let mut query_id = None;
        let answer = self.try_query(parts, body, &mut query_id).await;
        let mut answer = answer.unwrap_or_else(|exception| failure(&exception));
        if let Some(id) = query_id.and_then(|id| HeaderValue::try_from(id).ok()) {
            answer
                .headers_mut()
                .insert(HeaderName::from_static("x-clickhouse-query-id"), id);
        }
        answer
    }

    async fn try_query(
        &self,
        parts: Parts,
        body: Incoming,
        query_id: &mut Option<String>,
    ) -> Result<Answer, Exception> {
        // Every connection puts its own there.
        let flushes = parts
            .extensions
            .get::<Flushes>()
            .cloned()
            .unwrap_or_default();
        let mut pairs = request::pairs(parts.uri.query().unwrap_or_default())?;
        self.authenticate(&request::credentials(&parts.headers, &pairs))?;
        let mut body = Some(body);
        if let Some(form) = form_type(&parts.headers)
            && let Some(body) = body.take()
        {
            pairs.extend(multipart::fields(form, &self.whole(body).await?)?);
        }
        let request = Request::read(&parts, pairs, &self.options)?;
        *query_id = Some(request.query_id.clone());
        let ticket = self.registry.enter(&request.query_id)?;
        let session = request
            .session
            .as_ref()
            .map(|ask| self.sessions.enter(ask))
            .transpose()?;
        let place = self.place().await?;
        let watch = ClientWatch {
            engine: Arc::clone(&self.engine),
            running: Arc::clone(&ticket.running),
        };
        let about = About::read(&request);

        let (output, beginning) = Output::new(
            request.delivery.clone(),
            about.tag.clone(),
            self.runtime.clone(),
        )
        .map_err(cannot_start)?;
        let (pieces, reader) = body_channel();
        let input = Input::new(reader, request.body_packing, request.body_in_blocks);
        let job = Job {
            engine: Arc::clone(&self.engine),
            request,
            input,
            ticket,
            session,
        };
        start(job, output, place).map_err(cannot_start)?;
        let pumped = async {
            match body {
                Some(body) => pump(body, pieces, self.options.stall).await,
                None => pump(http_body_util::Empty::new(), pieces, self.options.stall).await,
            }
        };
        tokio::pin!(beginning);
        let began = tokio::select! {
            biased;
            began = &mut beginning => began,
            () = pumped => beginning.await,
        };
        match began {
            Ok(Beginning::Answer {
                format,
                counts,
                elapsed,
                body,
            }) => {
                let body = AnswerBody::Pieces {
                    pieces: body,
                    flushes,
                    _watch: watch,
                };
                Ok(about.answer(body, &format, &summary(counts, elapsed)))
            }
            Ok(Beginning::Error(exception)) => Err(exception),
            Err(_) => Err(Exception::new(
                1001,
                "STD_EXCEPTION",
                "The statement's thread ended without an answer",
            )),
        }
    }

    fn authenticate(&self, credentials: &Credentials) -> Result<(), Exception> {
        let user = same(credentials.user.as_bytes(), self.options.user.as_bytes());
        let password = self.options.password.is_empty()
            || same(
                credentials.password.as_bytes(),
                self.options.password.as_bytes(),
            );
        if user && password {
            return Ok(());
        }
        let user = &credentials.user;
        Err(Exception::new(
            516,
            "AUTHENTICATION_FAILED",
            format!(
                "{user}: Authentication failed: password is incorrect, or there is no user with such name"
            ),
        ))
    }

    /// A place among the running statements.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Exception> {
        let places = Arc::clone(&self.places);
        match tokio::time::timeout(self.options.queue_patience, places.acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(Exception::new(
                202,
                "TOO_MANY_SIMULTANEOUS_QUERIES",
                format!(
                    "Too many simultaneous queries. Maximum: {}",
                    self.options.max_connections
                ),
            )),
        }
    }

    async fn whole(&self, mut body: Incoming) -> Result<Bytes, Exception> {
        let mut whole = BytesMut::new();
        loop {
            let frame = tokio::time::timeout(self.options.stall, body.frame()).await;
            let frame =
                frame.map_err(|_| Exception::cannot_read("The client stopped sending its form"))?;
            match frame {
                None => return Ok(whole.freeze()),
                Some(Err(error)) => {
                    return Err(Exception::cannot_read(format!(
                        "Cannot read the request's body: {error}"
                    )));
                }
                Some(Ok(frame)) => whole.extend_from_slice(&frame.into_data().unwrap_or_default()),
            }
            if whole.len() > LARGEST_FORM {
                return Err(Exception::new(
                    124,
                    "REQUEST_TOO_LARGE",
                    format!("A form may not be larger than {LARGEST_FORM} bytes"),
                ));
            }
        }
    }
}

fn cannot_start(error: impl std::fmt::Display) -> Exception {
    Exception::new(
        439,
        "CANNOT_SCHEDULE_TASK",
        format!("The statement cannot be started: {error}"),
    )
}

/// Starts the statement on a thread of its own, which keeps the place until it ends.
fn start(job: Job, output: Output, place: OwnedSemaphorePermit) -> std::io::Result<()> {
    std::thread::Builder::new()
        .name("statement".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            execute::run(job, output);
            drop(place);
        })?;
    Ok(())
}

fn form_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    value
        .to_ascii_lowercase()
        .starts_with("multipart/form-data")
        .then_some(value)
}

/// Compares in a time that does not tell where the difference is.
fn same(given: &[u8], expected: &[u8]) -> bool {
    let difference = given
        .iter()
        .zip(expected)
        .fold(0, |difference, (left, right)| difference | (left ^ right));
    given.len() == expected.len() && difference == 0
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(AnswerBody::whole(text));
    *answer.status_mut() = status;
    answer.headers_mut().insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=UTF-8"),
    );
    answer
}

fn failure(exception: &Exception) -> Answer {
    let mut answer = text(exception.status(), format!("{}\n", exception.text));
    answer.headers_mut().insert(
        HeaderName::from_static("x-clickhouse-exception-code"),
        HeaderValue::from(exception.code),
    );
    answer
}

/// What the headers of an answer say besides what the statement did.
struct About {
    /// Marks an error that comes after the first byte.
    tag: String,
    zone: String,
    packing: Packing,
}

impl About {
    fn read(request: &Request) -> Self {
        let tag = Uuid::new_v4()
            .simple()
            .to_string()
            .chars()
            .take(16)
            .collect();
        let zone = request
            .settings
            .iter()
            .rfind(|(name, _)| name == "session_timezone");
        let zone = zone.map_or("UTC", |(_, zone)| zone).to_owned();
        Self {
            tag,
            zone,
            packing: request.delivery.packing,
        }
    }

    fn answer(&self, body: AnswerBody, format: &str, summary: &str) -> Answer {
        let mut answer = Response::new(body);
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type(format)));
        if let Some(encoding) = self.packing.name() {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(encoding));
        }
        let more = [
            ("x-clickhouse-format", format),
            ("x-clickhouse-summary", summary),
            ("x-clickhouse-timezone", &self.zone),
            ("x-clickhouse-exception-tag", &self.tag),
        ];
        for (name, value) in more {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        answer
    }
}

/// What the statement did so far, as ClickHouse says it.
fn summary(counts: Counts, elapsed: Duration) -> String {
    let summary = serde_json::json!({
        "read_rows": counts.read_rows.to_string(),
        "read_bytes": counts.read_bytes.to_string(),
        "written_rows": counts.written_rows.to_string(),
        "written_bytes": counts.written_bytes.to_string(),
        "total_rows_to_read": "0",
        "result_rows": counts.result_rows.to_string(),
        "result_bytes": counts.result_bytes.to_string(),
        "elapsed_ns": elapsed.as_nanos().to_string(),
    });
    summary.to_string()
}

/// Makes what an [`Interface`] shares.
pub(crate) fn interface(engine: Arc<Engine>, options: EngineOptions) -> Interface {
    let host_name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    Interface {
        engine,
        registry: Arc::new(Registry::default()),
        sessions: Arc::new(Sessions::new(options.max_sessions)),
        places: Arc::new(Semaphore::new(options.max_connections.max(1))),
        runtime: Handle::current(),
        host_name: HeaderValue::from_str(host_name.trim())
            .unwrap_or(HeaderValue::from_static("unjank-engine")),
        options,
    }
}

/// Tells every running statement to end.
pub(crate) fn stop_all(interface: &Interface) {
    for running in interface.registry.all() {
        interface.engine.stop(&running);
    }
}

/// Whether no statement runs.
pub(crate) fn is_idle(interface: &Interface) -> bool {
    interface.places.available_permits() >= interface.options.max_connections.max(1)
}
