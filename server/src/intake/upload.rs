//! A body as it was sent, and its decompression within limits.

use std::cell::RefCell;
use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use unjank_foundation::shares::Memory;
use zstd::bulk::Decompressor;

/// The `Content-Encoding` of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Identity,
    Gzip,
    Zstd,
}

/// A body as it was sent.
pub struct Upload {
    bytes: Bytes,
    encoding: Encoding,
    /// Free again when the upload is dropped.
    _memory: Memory,
}

/// Why a body cannot be decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotInflated {
    /// It decompresses to more than `limit` bytes.
    TooLarge {
        limit: usize,
    },
    Corrupt(&'static str),
    /// Its zstd window is too large.
    WideWindow,
}

/// Windows larger than this are refused, because a few bytes must not cause a large allocation.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Scratch memory above this size is freed after use.
const SCRATCH_KEPT: usize = 1 << 20;

thread_local! {
    /// Decompression contexts and buffers are large, so each thread keeps its own.
    static SCRATCH: RefCell<(Option<Decompressor<'static>>, Vec<u8>)> = const { RefCell::new((None, Vec::new())) };
}

impl Upload {
    pub fn new(bytes: Bytes, encoding: Encoding, memory: Memory) -> Self {
        Self {
            bytes,
            encoding,
            _memory: memory,
        }
    }

    pub fn wire_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Whether the body itself claims to be longer than `limit` after decompression. The claim may be a lie.
    pub(super) fn claims_more_than(&self, limit: usize) -> bool {
        let claimed = match self.encoding {
            Encoding::Gzip => self.bytes.last_chunk().copied().map(u32::from_le_bytes),
            Encoding::Identity | Encoding::Zstd => None,
        };
        claimed.is_some_and(|bytes| bytes as usize > limit)
    }

    /// Decompresses at most `limit` bytes and passes them to `consume`.
    pub fn inflate<T>(
        &self,
        limit: usize,
        consume: impl FnOnce(&[u8]) -> T,
    ) -> Result<T, NotInflated> {
        if self.encoding == Encoding::Identity {
            return if self.bytes.len() > limit {
                Err(NotInflated::TooLarge { limit })
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
    // A buffer that doubles would take up to three times as much. Reserved memory that is never written costs nothing.
    out.reserve_exact(limit + 1);
    MultiGzDecoder::new(bytes)
        .take(most)
        .read_to_end(out)
        .map_err(|_| NotInflated::Corrupt("gzip"))?;
    if out.len() > limit {
        Err(NotInflated::TooLarge { limit })
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
        return Err(NotInflated::TooLarge { limit });
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
        // The body has several frames or is damaged. The streaming decoder handles both.
        out.clear();
    }
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    out.reserve_exact(limit + 1);
    let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).map_err(|_| corrupt())?;
    decoder
        .window_log_max(ZSTD_WINDOW_LOG_MAX)
        .map_err(|_| corrupt())?;
    decoder.take(most).read_to_end(out).map_err(|error| {
        // The library has no other sign of a window above the limit.
        if error.to_string().contains("too much memory") {
            NotInflated::WideWindow
        } else {
            corrupt()
        }
    })?;
    if out.len() > limit {
        Err(NotInflated::TooLarge { limit })
    } else {
        Ok(())
    }
}
