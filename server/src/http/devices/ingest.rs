//! `POST /v1/ingest`: receives the batch of a device. [`crate::intake`] does the work.

use std::panic::resume_unwind;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;
use unjank_protocol::{Batch, Receipt};

use super::device::{Device, presented_key};
use crate::access::Caller;
use crate::app::App;
use crate::http::api::body::{Content, declared_bytes, is_columnar, receive};
use crate::http::api::openapi::{BatchBody, ContentEncoding, Refused, UploadedBody};
use crate::http::api::problem::Problem;
use crate::intake::{Format, Upload};

/// Stores a batch. The events are durable before they are acknowledged.
///
/// Invalid events are rejected one by one in the receipt; the others are stored. A batch that is sent again is a duplicate and is stored
/// once.
#[utoipa::path(
    post, path = "/v1/ingest", tag = "ingest",
    params(ContentEncoding),
    request_body(
        content = Batch<'_>,
        description = "At most 1 MiB as sent, 10 MiB after decompression, 10,000 events. The same batch as columns has the content type `application/vnd.unjank.batch.v2`."
    ),
    responses(
        (status = 202, description = "The events survive the crash of the server and of the store.", body = Receipt<'_>),
        Refused<(Device, UploadedBody, BatchBody)>,
    ),
)]
pub(super) async fn ingest(
    State(app): State<Arc<App>>,
    device: Result<Device, Problem>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let format = if is_columnar(&headers) {
        Format::Columns
    } else {
        Format::Batch
    };
    let sent = Sent {
        limit: app.intake.limits().compressed_bytes,
        headers: &headers,
        body,
        content: Content::Batch,
        format,
    };
    match take_counted(&app, device, sent).await {
        Ok(receipt) => (StatusCode::ACCEPTED, Json(receipt)).into_response(),
        Err(problem) => problem.into_response(),
    }
}

/// A request with events.
pub(super) struct Sent<'r> {
    pub(crate) headers: &'r HeaderMap,
    pub(crate) body: Body,
    /// The most bytes of the body as sent.
    pub(crate) limit: usize,
    pub(crate) content: Content,
    pub(crate) format: Format,
}

/// Takes a request and counts its outcome.
pub(super) async fn take_counted(
    app: &App,
    device: Result<Device, Problem>,
    sent: Sent<'_>,
) -> Result<Receipt<'static>, Problem> {
    let started = Instant::now();
    let stored = match sent.format {
        Format::Batch | Format::Columns => StatusCode::ACCEPTED,
        Format::Otlp(..) => StatusCode::OK,
    };
    let answer = match device {
        Ok(Device(caller)) => take(app, &caller, sent).await,
        Err(problem) => {
            let (key, now) = (presented_key(sent.headers), app.clock.now());
            app.intake.refused_keys.add(key, problem.code, now);
            Err(problem)
        }
    };
    let (status, code) = match &answer {
        Ok(receipt) if receipt.duplicate => (stored, "duplicate"),
        Ok(_) => (stored, "accepted"),
        Err(problem) => (problem.status, problem.code),
    };
    let metrics = &app.metrics.ingest;
    let labels = [status.as_str(), code];
    metrics.requests.with_label_values(&labels).inc();
    metrics.seconds.observe(started.elapsed().as_secs_f64());
    answer
}

async fn take(app: &App, caller: &Caller, sent: Sent<'_>) -> Result<Receipt<'static>, Problem> {
    let received = async {
        let (headers, body, patience) = (sent.headers, sent.body, app.body_timeout);
        let (admission, mut memory) = app.intake.admit(caller, declared_bytes(headers))?;
        let (content, limit) = (sent.content, sent.limit);
        let received = receive(headers, body, content, limit, patience, &mut memory).await;
        let (bytes, encoding) = received.inspect_err(|problem| {
            // A connection that breaks is not the sender's fault.
            if problem.is_final() && problem.code != Problem::truncated().code {
                app.intake.spend(caller, memory.bytes());
            }
        })?;
        let upload = (Upload::new(bytes, encoding, memory), sent.format);
        let (intake, caller, now) = (Arc::clone(&app.intake), caller.clone(), app.clock.now());
        #[expect(
            clippy::disallowed_methods,
            reason = "if the device hangs up, the batch is stored all the same: it has taken from the quotas"
        )]
        let taken = tokio::spawn(async move {
            let taken = intake.take(&caller, upload, now).await;
            drop(admission);
            taken
        });
        match taken.await {
            Ok(taken) => Ok(taken?),
            Err(error) => resume_unwind(error.into_panic()),
        }
    };
    let received: Result<_, Problem> = received.await;
    if let Err(problem) = &received
        && problem.is_final()
    {
        app.intake.count_refused(caller, problem.code);
    }
    received
}
