//! A request's body on its way to the engine: handed over piece by piece, decompressed as it is read.
//!
//! The end of a body is said, never guessed: a client that goes away leaves a body without its end, and that is an error.

use std::io::{self, BufRead, BufReader, Read};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::sync::mpsc;

use crate::blocks::BlockReader;
use crate::exception::Exception;

/// A piece of a body.
pub(crate) enum Piece {
    Data(Bytes),
    /// The client said that this was all.
    End,
    /// The body broke off.
    Broken(String),
}

/// How many pieces wait between the network and the engine.
const PIECES: usize = 8;
/// How much is handed to the engine at a time.
const READ: usize = 256 << 10;
/// A zstd window above this is refused instead of allocated.
const LARGEST_WINDOW_LOG: u32 = 27;

/// The two ends of a body's way.
pub(crate) fn body_channel() -> (mpsc::Sender<Piece>, BodyReader) {
    let (sender, receiver) = mpsc::channel(PIECES);
    (
        sender,
        BodyReader {
            receiver,
            current: Bytes::new(),
            ended: false,
        },
    )
}

/// Reads a body on a thread of its own.
pub(crate) struct BodyReader {
    receiver: mpsc::Receiver<Piece>,
    current: Bytes,
    ended: bool,
}

impl BodyReader {
    /// Makes sure that something is there to read. `false` at the end.
    fn fill(&mut self) -> io::Result<bool> {
        while self.current.is_empty() {
            if self.ended {
                return Ok(false);
            }
            match self.receiver.blocking_recv() {
                Some(Piece::Data(data)) => self.current = data,
                Some(Piece::End) => self.ended = true,
                Some(Piece::Broken(reason)) => {
                    return Err(io::Error::new(io::ErrorKind::ConnectionAborted, reason));
                }
                None => {
                    return Err(io::Error::new(
                        io::ErrorKind::ConnectionAborted,
                        "the client went away",
                    ));
                }
            }
        }
        Ok(true)
    }
}

impl Read for BodyReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.fill()? {
            return Ok(0);
        }
        let count = self.current.len().min(buffer.len());
        self.current
            .copy_to_slice(buffer.get_mut(..count).unwrap_or_default());
        Ok(count)
    }
}

impl BufRead for BodyReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.fill()?;
        Ok(&self.current)
    }

    fn consume(&mut self, amount: usize) {
        self.current.advance(amount);
    }
}

/// How a body is packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Packing {
    #[default]
    Plain,
    Gzip,
    Deflate,
    Zstd,
    Lz4,
}

impl Packing {
    /// As a `Content-Encoding` says it.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Gzip => Some("gzip"),
            Self::Deflate => Some("deflate"),
            Self::Zstd => Some("zstd"),
            Self::Lz4 => Some("lz4"),
        }
    }

    /// By a `Content-Encoding` header.
    pub(crate) fn of(encoding: &str) -> Result<Self, Exception> {
        match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Ok(Self::Plain),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "deflate" => Ok(Self::Deflate),
            "zstd" => Ok(Self::Zstd),
            "lz4" => Ok(Self::Lz4),
            other => Err(Exception::not_implemented(format!(
                "Content-Encoding {other:?} is not supported by the embedded engine: use gzip, deflate, zstd, lz4 or none"
            ))),
        }
    }
}

/// A request's body, unpacked.
pub(crate) struct Input {
    body: Option<(BodyReader, Packing, bool)>,
    reader: Box<dyn Read + Send>,
}

impl Input {
    /// The body as it comes; unpackers are put before it when it is first read, since some read ahead at once.
    pub(crate) fn new(body: BodyReader, packing: Packing, in_blocks: bool) -> Self {
        Self {
            body: Some((body, packing, in_blocks)),
            reader: Box::new(io::empty()),
        }
    }

    fn open(
        body: BodyReader,
        packing: Packing,
        in_blocks: bool,
    ) -> io::Result<Box<dyn Read + Send>> {
        let reader: Box<dyn Read + Send> = match packing {
            Packing::Plain => Box::new(body),
            Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(body)),
            Packing::Deflate => Box::new(flate2::bufread::ZlibDecoder::new(body)),
            Packing::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(body)?;
                decoder.window_log_max(LARGEST_WINDOW_LOG)?;
                Box::new(decoder)
            }
            Packing::Lz4 => Box::new(lz4_flex::frame::FrameDecoder::new(body)),
        };
        Ok(if in_blocks {
            Box::new(BlockReader::new(BufReader::new(reader)))
        } else {
            reader
        })
    }

    /// Reads some more behind what `buffer` holds. `false` at the end.
    pub(crate) fn read_more(&mut self, buffer: &mut Vec<u8>) -> Result<bool, Exception> {
        if let Some((body, packing, in_blocks)) = self.body.take() {
            self.reader = Self::open(body, packing, in_blocks).map_err(unreadable)?;
        }
        let filled = buffer.len();
        buffer.resize(filled + READ, 0);
        loop {
            match self
                .reader
                .read(buffer.get_mut(filled..).unwrap_or_default())
            {
                Ok(count) => {
                    buffer.truncate(filled + count);
                    return Ok(count > 0);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(unreadable(error)),
            }
        }
    }
}

fn unreadable(error: impl std::fmt::Display) -> Exception {
    Exception::cannot_read(format!("Cannot read the request's body: {error}"))
}

/// Hands a body over, piece by piece, until its end, until it breaks off or until nobody reads any more.
pub(crate) async fn pump<B>(mut body: B, pieces: mpsc::Sender<Piece>, idle: Duration)
where
    B: hyper::body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    use http_body_util::BodyExt;
    loop {
        let piece = match tokio::time::timeout(idle, body.frame()).await {
            Ok(None) => Piece::End,
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) if !data.is_empty() => Piece::Data(data),
                _ => continue,
            },
            Ok(Some(Err(error))) => Piece::Broken(format!("the client's body broke off: {error}")),
            Err(_) => Piece::Broken(format!("the client sent nothing for {} s", idle.as_secs())),
        };
        let last = !matches!(piece, Piece::Data(_));
        if pieces.send(piece).await.is_err() || last {
            return;
        }
    }
}
