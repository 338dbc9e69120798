//! A body as it was sent, and its decompression within limits.

use std::cell::RefCell;
use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use flate2::{Decompress, FlushDecompress, Status};
use unjank_foundation::shares::Memory;
use zstd::bulk::Decompressor;
use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size};

/// The `Content-Encoding` of a body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Identity,
    Gzip,
    Zstd,
    /// The format zlib, as HTTP defines this name.
    Deflate,
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
            Encoding::Identity | Encoding::Zstd | Encoding::Deflate => None,
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
                Encoding::Deflate => unzlib(&self.bytes, limit, buffer)?,
                Encoding::Identity | Encoding::Gzip => gunzip(&self.bytes, limit, buffer)?,
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

fn unzlib(bytes: &[u8], limit: usize, out: &mut Vec<u8>) -> Result<(), NotInflated> {
    out.reserve_exact(limit + 1);
    let mut zlib = Decompress::new(true);
    let status = zlib.decompress_vec(bytes, out, FlushDecompress::Finish);
    if out.len() > limit {
        return Err(NotInflated::TooLarge { limit });
    }
    // The readers of the library take the end of a body that is cut off for the end of its content.
    match status {
        Ok(Status::StreamEnd) if zlib.total_in() == bytes.len() as u64 => Ok(()),
        _ => Err(NotInflated::Corrupt("deflate")),
    }
}

/// The sum of the sizes that the frames of a body declare. `None` if one of them declares none.
fn declared_by_frames(bytes: &[u8], limit: usize) -> Result<Option<usize>, NotInflated> {
    let corrupt = || NotInflated::Corrupt("zstd");
    let (mut rest, mut sum) = (bytes, 0_usize);
    loop {
        let declared = get_frame_content_size(rest).map_err(|_| corrupt())?;
        let Some(size) = declared else {
            return Ok(None);
        };
        sum = sum.saturating_add(usize::try_from(size).unwrap_or(usize::MAX));
        if sum > limit {
            return Err(NotInflated::TooLarge { limit });
        }
        let length = find_frame_compressed_size(rest).map_err(|_| corrupt())?;
        rest = rest.get(length..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(Some(sum));
        }
    }
}

fn unzstd(
    bytes: &[u8],
    limit: usize,
    context: &mut Option<Decompressor<'static>>,
    out: &mut Vec<u8>,
) -> Result<(), NotInflated> {
    let corrupt = || NotInflated::Corrupt("zstd");
    if let Some(size) = declared_by_frames(bytes, limit)? {
        let context = match context {
            Some(context) => context,
            None => context.insert(Decompressor::new().map_err(|_| corrupt())?),
        };
        out.reserve(size);
        if context.decompress_to_buffer(bytes, out).is_ok() {
            return Ok(());
        }
        // The body is damaged. The streaming decoder says how.
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::ZlibEncoder;

    use super::*;

    const LIMIT: usize = 1_000;

    fn frame(size: usize) -> Vec<u8> {
        zstd::bulk::compress(&vec![b'a'; size], 1).unwrap()
    }

    fn frame_of_unknown_size(size: usize) -> Vec<u8> {
        zstd::stream::encode_all(&*vec![b'a'; size], 1).unwrap()
    }

    /// Inflates into a new buffer, and into one that was used before.
    fn inflated(body: &[u8]) -> [Result<usize, NotInflated>; 2] {
        [0, SCRATCH_KEPT].map(|kept| {
            let mut out = Vec::with_capacity(kept);
            unzstd(body, LIMIT, &mut None, &mut out).map(|()| out.len())
        })
    }

    #[test]
    fn the_limit_is_that_of_all_frames_whatever_the_buffer_holds() {
        for (first, second, expected) in [
            (100, 900, Ok(LIMIT)),
            (900, 100, Ok(LIMIT)),
            (LIMIT, 0, Ok(LIMIT)),
            (0, LIMIT, Ok(LIMIT)),
            (100, 901, Err(NotInflated::TooLarge { limit: LIMIT })),
            (901, 100, Err(NotInflated::TooLarge { limit: LIMIT })),
        ] {
            for frames in [
                [frame(first), frame(second)],
                [frame(first), frame_of_unknown_size(second)],
                [frame_of_unknown_size(first), frame(second)],
            ] {
                assert_eq!(inflated(&frames.concat()), [expected; 2]);
            }
        }
    }

    #[test]
    fn zlib_is_read_up_to_the_limit_and_only_as_a_whole() {
        let packed = |size: usize| {
            let mut zlib = ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
            zlib.write_all(&vec![b'a'; size]).unwrap();
            zlib.finish().unwrap()
        };
        let inflated = |body: &[u8]| {
            [0, SCRATCH_KEPT].map(|kept| {
                let mut out = Vec::with_capacity(kept);
                unzlib(body, LIMIT, &mut out).map(|()| out.len())
            })
        };
        for size in [0, 1, LIMIT] {
            assert_eq!(inflated(&packed(size)), [Ok(size); 2]);
        }
        let too_large = NotInflated::TooLarge { limit: LIMIT };
        for size in [LIMIT + 1, 64 << 20] {
            assert_eq!(inflated(&packed(size)), [Err(too_large); 2]);
        }
        let body = packed(LIMIT);
        let longer = [body.as_slice(), b"{}"].concat();
        let cut_off = (0..body.len()).map(|end| body.get(..end).unwrap());
        for body in cut_off.chain([longer.as_slice(), b"no zlib"]) {
            assert_eq!(inflated(body), [Err(NotInflated::Corrupt("deflate")); 2]);
        }
    }

    #[test]
    fn frames_that_are_cut_off_or_followed_by_other_bytes_are_corrupt() {
        let body = [frame(100), frame(100)].concat();
        let longer = [body.as_slice(), b"{}"].concat();
        let cut_off = body.get(..body.len() - 1).unwrap();
        for body in [b"".as_slice(), cut_off, longer.as_slice()] {
            assert_eq!(
                inflated(body),
                [Err::<usize, _>(NotInflated::Corrupt("zstd")); 2]
            );
        }
    }
}
