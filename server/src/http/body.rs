//! Request bodies: limits on size, time and memory, then decompression that counts as it goes.

use std::cell::RefCell;
use std::io::Read;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use http_body_util::BodyExt;
use zstd::bulk::Decompressor;

use super::problem::Problem;
use crate::shares::Share;

/// Memory that a body takes of its sender's share, in KiB.
pub(super) struct Held {
    share: Share,
    bytes: usize,
}

impl Held {
    /// Grows to hold `bytes`.
    pub(super) fn grow(&mut self, bytes: usize) -> Result<(), Problem> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let kib = u32::try_from((bytes - self.bytes).div_ceil(1024)).unwrap_or(u32::MAX);
        if !self.share.try_grow(kib) {
            return Err(Problem::overloaded());
        }
        self.bytes += kib as usize * 1024;
        Ok(())
    }
}

/// A body as it was sent.
pub(super) struct Received {
    bytes: Bytes,
    encoding: Encoding,
    _held: Held,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

fn encoding(headers: &HeaderMap) -> Result<Encoding, Problem> {
    let Some(value) = headers.get(CONTENT_ENCODING) else {
        return Ok(Encoding::Identity);
    };
    match value.as_bytes().to_ascii_lowercase().as_slice() {
        b"" | b"identity" => Ok(Encoding::Identity),
        b"gzip" | b"x-gzip" => Ok(Encoding::Gzip),
        b"zstd" => Ok(Encoding::Zstd),
        _ => Err(Problem::content_encoding()),
    }
}

fn require_json(headers: &HeaderMap) -> Result<(), Problem> {
    let value = headers
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let media_type = value.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        Ok(())
    } else {
        Err(Problem::content_type())
    }
}

/// Reads a JSON body of at most `limit` bytes as sent, within `patience`. Its memory is taken from `share` as it arrives, whatever
/// length the head declares.
pub(super) async fn receive(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
    share: Share,
) -> Result<Received, Problem> {
    let encoding = encoding(headers)?;
    let (bytes, held) = receive_plain(headers, body, limit, patience, share).await?;
    Ok(Received {
        bytes,
        encoding,
        _held: held,
    })
}

/// The same, whatever encoding the head names.
pub(super) async fn receive_plain(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
    patience: Duration,
    share: Share,
) -> Result<(Bytes, Held), Problem> {
    require_json(headers)?;
    let declared = headers
        .get(CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.parse().ok());
    if declared.is_some_and(|length: usize| length > limit) {
        return Err(Problem::too_large(limit));
    }
    let mut held = Held { share, bytes: 0 };
    let bytes = tokio::time::timeout(patience, collect(body, limit, &mut held))
        .await
        .map_err(|_| Problem::stalled())??;
    Ok((bytes, held))
}

async fn collect(mut body: Body, limit: usize, held: &mut Held) -> Result<Bytes, Problem> {
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
        held.grow(total)?;
        // Most bodies come in one piece, which then is not copied.
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

/// Why a body cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotInflated {
    /// To more bytes than are allowed here.
    TooFar {
        limit: usize,
    },
    Corrupt(&'static str),
}

impl From<NotInflated> for Problem {
    fn from(error: NotInflated) -> Self {
        match error {
            NotInflated::TooFar { limit } => Self::inflates_too_far(limit),
            NotInflated::Corrupt(encoding) => Self::corrupt_encoding(encoding),
        }
    }
}

/// Windows larger than this are refused: a few bytes must not make us allocate much.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Scratch memory above this is given back after use.
const SCRATCH_KEPT: usize = 1 << 20;

thread_local! {
    /// Decompression contexts and buffers are large; each thread keeps its own.
    static SCRATCH: RefCell<(Option<Decompressor<'static>>, Vec<u8>)> = const { RefCell::new((None, Vec::new())) };
}

impl Received {
    pub(super) fn wire_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the body itself says that it is longer after decompression. It may lie.
    pub(super) fn claims_more_than(&self, limit: usize) -> bool {
        let claimed = match self.encoding {
            Encoding::Gzip => self.bytes.last_chunk().copied().map(u32::from_le_bytes),
            Encoding::Identity | Encoding::Zstd => None,
        };
        claimed.is_some_and(|bytes| bytes as usize > limit)
    }

    /// Decompresses at most `limit` bytes and hands them to `consume`.
    pub(super) fn decompressed<T>(
        &self,
        limit: usize,
        consume: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, NotInflated> {
        if self.encoding == Encoding::Identity {
            return if self.bytes.len() > limit {
                Err(NotInflated::TooFar { limit })
            } else {
                Ok(consume(&self.bytes))
            };
        }
        SCRATCH.with_borrow_mut(|(zstd, buffer)| {
            buffer.clear();
            match self.encoding {
                Encoding::Zstd => unzstd(&self.bytes, limit, zstd, buffer)?,
                _ => gunzip(&self.bytes, limit, buffer)?,
            }
            let answer = consume(buffer);
            buffer.clear();
            buffer.shrink_to(SCRATCH_KEPT);
            Ok(answer)
        })
    }
}

fn gunzip(bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), NotInflated> {
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    // A buffer that doubles would take up to three times as much. What is not written to takes no memory.
    out.reserve_exact(limit + 1);
    MultiGzDecoder::new(bytes)
        .take(most)
        .read_to_end(out)
        .map_err(|_| NotInflated::Corrupt("gzip"))?;
    if out.len() > limit {
        Err(NotInflated::TooFar { limit })
    } else {
        Ok(())
    }
}

fn unzstd(
    bytes: &[u8],
    limit: usize,
    context: &mut Option<Decompressor<'static>>,
    out: &mut Vec<u8>,
) -> Result<(), NotInflated> {
    let corrupt = || NotInflated::Corrupt("zstd");
    let declared = zstd::zstd_safe::get_frame_content_size(bytes).map_err(|_| corrupt())?;
    let declared = declared.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    if declared.is_some_and(|size| size > limit) {
        return Err(NotInflated::TooFar { limit });
    }
    if let Some(size) = declared {
        let context = match context {
            Some(context) => context,
            None => context.insert(Decompressor::new().map_err(|_| corrupt())?),
        };
        out.reserve(size);
        if context.decompress_to_buffer(bytes, out).is_ok() {
            return Ok(());
        }
        // Several frames, or damage: the slow way tells which.
        out.clear();
    }
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    out.reserve_exact(limit + 1);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(|_| corrupt())?;
    decoder
        .window_log_max(ZSTD_WINDOW_LOG_MAX)
        .map_err(|_| corrupt())?;
    decoder.take(most).read_to_end(out).map_err(|_| corrupt())?;
    if out.len() > limit {
        Err(NotInflated::TooFar { limit })
    } else {
        Ok(())
    }
}
