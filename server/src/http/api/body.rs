//! Reads request bodies within limits of size, time and memory.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use unjank_foundation::shares::{Memory, Share};

use super::problem::Problem;
use crate::intake::Encoding;
use crate::otlp::{PREFIX, only_message};

const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// What a body is, and how it is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// JSON, compressed as `Content-Encoding` says.
    Json,
    /// A batch as JSON or as columns, compressed as `Content-Encoding` says.
    Batch,
    /// Of a content type that the caller has checked, compressed as `Content-Encoding` says.
    Checked,
    /// One message of gRPC.
    Grpc,
}

/// Reads a body of at most `limit` bytes as sent, and how it is compressed. `memory` grows as the bytes arrive, whatever length the head
/// declares. The sender has `patience` for the whole body.
pub(crate) async fn receive(
    headers: &HeaderMap,
    body: Body,
    content: Content,
    limit: usize,
    patience: Duration,
    memory: &mut Memory,
) -> Result<(Bytes, Encoding), Problem> {
    if content == Content::Json {
        require_json(headers)?;
    }
    if content == Content::Batch && !is_columnar(headers) {
        require_json(headers).map_err(|_| Problem::batch_content_type())?;
    }
    if content == Content::Grpc {
        let bytes = read(headers, body, limit + PREFIX, patience, memory).await?;
        let (message, is_compressed) = only_message(&bytes)?;
        let encoding = match headers.get(GRPC_ENCODING) {
            _ if !is_compressed => Encoding::Identity,
            None => return Err(Problem::content_encoding()),
            named => encoding(named)?,
        };
        return Ok((bytes.slice_ref(message), encoding));
    }
    let encoding = encoding(headers.get(CONTENT_ENCODING))?;
    let bytes = read(headers, body, limit, patience, memory).await?;
    Ok((bytes, encoding))
}

/// Reads a JSON body that must not be compressed: any `Content-Encoding` is ignored.
pub(super) async fn receive_plain(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
    share: Share,
) -> Result<(Bytes, Memory), Problem> {
    require_json(headers)?;
    let mut memory = Memory::new(share);
    let bytes = read(headers, body, limit, patience, &mut memory).await?;
    Ok((bytes, memory))
}

async fn read(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
    memory: &mut Memory,
) -> Result<Bytes, Problem> {
    if declared_bytes(headers).is_some_and(|length| length > limit as u64) {
        return Err(Problem::too_large(limit));
    }
    tokio::time::timeout(patience, collect(body, limit, memory))
        .await
        .map_err(|_| Problem::stalled())?
}

/// The length of the body that the head declares.
pub(crate) fn declared_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn encoding(name: Option<&HeaderValue>) -> Result<Encoding, Problem> {
    let Some(name) = name else {
        return Ok(Encoding::Identity);
    };
    match name.as_bytes().to_ascii_lowercase().as_slice() {
        b"" | b"identity" => Ok(Encoding::Identity),
        b"gzip" | b"x-gzip" => Ok(Encoding::Gzip),
        b"zstd" => Ok(Encoding::Zstd),
        b"deflate" | b"zlib" => Ok(Encoding::Deflate),
        _ => Err(Problem::content_encoding()),
    }
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    if media_type(headers).eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(Problem::content_type())
    }
}

/// Whether the content type is that of a columnar batch.
pub(crate) fn is_columnar(headers: &HeaderMap) -> bool {
    media_type(headers).eq_ignore_ascii_case(unjank_columns::MEDIA_TYPE)
}

/// The content type without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

async fn collect(mut body: Body, limit: usize, memory: &mut Memory) -> Result<Bytes, Problem> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Problem::truncated())?.into_data() else {
            continue;
        };
        let total = first.len() + rest.len() + data.len();
        if total > limit {
            return Err(Problem::too_large(limit));
        }
        if !memory.try_grow_to(total) {
            return Err(Problem::overloaded());
        }
        // Most bodies arrive in one piece, which is then not copied.
        if first.is_empty() && rest.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&std::mem::take(&mut first));
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() {
        first
    } else {
        rest.freeze()
    })
}
