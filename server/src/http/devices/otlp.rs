//! `POST /v1/traces`, `/v1/logs`, `/v1/metrics`: OTLP over HTTP, as protobuf or JSON; and the calls of OTLP over gRPC. [`crate::intake`] does the work.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use unjank_protocol::Receipt;

use super::device::Device;
use super::grpc_answers::speaks_grpc;
use super::ingest::{Sent, take_counted};
use super::otlp_answers;
use crate::app::App;
use crate::http::api::body::{Content, media_type};
use crate::http::api::problem::Problem;
use crate::intake::Format;
use crate::otlp::{Form, Kind};

/// The largest body as sent. By default, exporters do not compress.
const BODY: usize = 4 << 20;

/// How a request arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transport {
    Http,
    Grpc,
}

/// Stores the spans, log records or data points of a request.
pub(crate) fn export(kind: Kind, transport: Transport) -> MethodRouter<Arc<App>> {
    let export = async move |State(app): State<Arc<App>>,
                             device: Result<Device, Problem>,
                             headers: HeaderMap,
                             body: Body| {
        let (form, content) = match written(&headers, transport) {
            Ok(written) => written,
            Err(problem) if transport == Transport::Grpc && !speaks_grpc(&headers) => {
                return problem.into_response();
            }
            Err(problem) => return answer(transport, Form::Json, kind, Err(problem)),
        };
        let sent = Sent {
            headers: &headers,
            body,
            limit: BODY,
            content,
            format: Format::Otlp(kind, form),
        };
        let taken = take_counted(&app, device, sent).await;
        answer(transport, form, kind, taken)
    };
    post(export)
}

/// How a body is written.
fn written(headers: &HeaderMap, transport: Transport) -> Result<(Form, Content), Problem> {
    let media_type = media_type(headers);
    let is = |name| media_type.eq_ignore_ascii_case(name);
    match transport {
        Transport::Http if is("application/x-protobuf") => Ok((Form::Protobuf, Content::Checked)),
        Transport::Http if is("application/json") => Ok((Form::Json, Content::Checked)),
        Transport::Http => Err(Problem::otlp_content_type()),
        Transport::Grpc if is("application/grpc") || is("application/grpc+proto") => {
            Ok((Form::Protobuf, Content::Grpc))
        }
        Transport::Grpc => Err(Problem::grpc_content_type()),
    }
}

fn answer(
    transport: Transport,
    form: Form,
    kind: Kind,
    taken: Result<Receipt<'static>, Problem>,
) -> Response {
    match (transport, taken) {
        (Transport::Http, Ok(receipt)) => otlp_answers::stored(&receipt, kind, form),
        (Transport::Http, Err(problem)) => otlp_answers::refused(problem, form),
        (Transport::Grpc, Ok(receipt)) => otlp_answers::stored_message(&receipt, kind),
        (Transport::Grpc, Err(problem)) => otlp_answers::refused_message(problem),
    }
}
