//! An answer on its way from the engine to the client: packed, held back while it may still become an error, then sent
//! piece by piece.
//!
//! Until a first part has gathered (or, when asked, until the whole answer is there) nothing is sent, so that an error
//! still becomes a clean status. Later errors are appended as ClickHouse does, and the connection breaks off: an answer
//! that ends without its end can never be taken for complete.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use lz4_flex::frame::FrameEncoder;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::blocks::BlockWriter;
use crate::exception::Exception;
use crate::ffi::Counts;
use crate::input::Packing;

/// Packed in pieces of this size.
const PIECE: usize = 256 << 10;
/// Gathered in memory before the first byte is sent, unless the request says otherwise.
pub(crate) const FIRST_PART: usize = 1 << 20;
/// Held in memory at most when the whole answer is waited for; the rest goes to a file.
const HELD_IN_MEMORY: usize = 16 << 20;
/// How many pieces wait between the engine and the network.
const PIECES: usize = 4;

/// How an answer is packed.
enum Packer {
    Plain(Vec<u8>),
    Gzip(GzEncoder<Vec<u8>>),
    Deflate(ZlibEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
    Lz4(Box<FrameEncoder<Vec<u8>>>),
    Blocks(BlockWriter, Vec<u8>),
}

impl Packer {
    fn new(packing: Packing, in_blocks: bool) -> io::Result<Self> {
        if in_blocks {
            return Ok(Self::Blocks(BlockWriter::default(), Vec::new()));
        }
        Ok(match packing {
            Packing::Plain => Self::Plain(Vec::new()),
            Packing::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::new(3))),
            Packing::Deflate => Self::Deflate(ZlibEncoder::new(Vec::new(), Compression::new(3))),
            Packing::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), 1)?),
            Packing::Lz4 => Self::Lz4(Box::new(FrameEncoder::new(Vec::new()))),
        })
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(out) => {
                out.extend_from_slice(data);
                Ok(())
            }
            Self::Gzip(encoder) => encoder.write_all(data),
            Self::Deflate(encoder) => encoder.write_all(data),
            Self::Zstd(encoder) => encoder.write_all(data),
            Self::Lz4(encoder) => encoder.write_all(data),
            Self::Blocks(writer, out) => {
                writer.write(data, out);
                Ok(())
            }
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Gzip(encoder) => encoder.try_finish(),
            Self::Deflate(encoder) => encoder.try_finish(),
            Self::Zstd(encoder) => encoder.do_finish(),
            Self::Lz4(encoder) => encoder.try_finish().map_err(io::Error::other),
            Self::Blocks(writer, out) => {
                writer.flush(out);
                Ok(())
            }
        }
    }

    fn packed(&mut self) -> &mut Vec<u8> {
        match self {
            Self::Plain(out) | Self::Blocks(_, out) => out,
            Self::Gzip(encoder) => encoder.get_mut(),
            Self::Deflate(encoder) => encoder.get_mut(),
            Self::Zstd(encoder) => encoder.get_mut(),
            Self::Lz4(encoder) => encoder.get_mut(),
        }
    }
}

/// A piece of an answer's body.
pub(crate) enum Sent {
    Data(Bytes),
    /// That was all.
    End,
}

/// What an answer begins with.
pub(crate) enum Beginning {
    /// Success so far; the body follows.
    Answer {
        format: String,
        counts: Counts,
        elapsed: Duration,
        body: mpsc::Receiver<Sent>,
    },
    /// Nothing was sent but the error.
    Error(Exception),
}

/// How the client wants its answer.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) packing: Packing,
    pub(crate) in_blocks: bool,
    /// Hold the whole answer back until the statement has ended well.
    pub(crate) wait_for_end: bool,
    /// What is gathered in memory before the first byte is sent, or before a held answer goes to a file.
    pub(crate) buffer: Option<usize>,
    /// A client that takes nothing for this long is gone.
    pub(crate) stall: Duration,
    /// A held answer may not grow beyond this.
    pub(crate) largest_held: u64,
    /// Where a held answer's file goes.
    pub(crate) folder: PathBuf,
}

/// The client takes no more: stop the statement.
pub(crate) enum Stopped {
    ClientGone,
    Failed(Exception),
}

/// The engine's end of an answer.
pub(crate) struct Output {
    packer: Packer,
    delivery: Delivery,
    beginning: Option<oneshot::Sender<Beginning>>,
    pieces: Option<mpsc::Sender<Sent>>,
    held: Option<File>,
    held_bytes: u64,
    runtime: Handle,
    exception_tag: String,
    format: String,
    counts: Counts,
    started: Instant,
    empty: bool,
}

impl Output {
    pub(crate) fn new(
        delivery: Delivery,
        exception_tag: String,
        runtime: Handle,
    ) -> io::Result<(Self, oneshot::Receiver<Beginning>)> {
        let (sender, receiver) = oneshot::channel();
        let output = Self {
            packer: Packer::new(delivery.packing, delivery.in_blocks)?,
            delivery,
            beginning: Some(sender),
            pieces: None,
            held: None,
            held_bytes: 0,
            runtime,
            exception_tag,
            format: String::new(),
            counts: Counts::default(),
            started: Instant::now(),
            empty: true,
        };
        Ok((output, receiver))
    }

    /// The format the answer is in, known before its first byte.
    pub(crate) fn set_format(&mut self, format: String) {
        self.format = format;
    }

    /// Whether nothing of the answer came yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    /// Takes a part of the answer, in the answer's format. Waits for a slow client, within limits.
    pub(crate) fn push(&mut self, data: &[u8]) -> Result<(), Stopped> {
        self.empty = self.empty && data.is_empty();
        self.packer.write(data).map_err(failed)?;
        let gathered = self.packer.packed().len();
        if self.delivery.wait_for_end {
            let limit = self
                .delivery
                .buffer
                .unwrap_or(HELD_IN_MEMORY)
                .min(HELD_IN_MEMORY);
            return if gathered > limit {
                self.hold()
            } else {
                Ok(())
            };
        }
        let limit = if self.beginning.is_some() {
            self.delivery
                .buffer
                .unwrap_or(FIRST_PART)
                .min(HELD_IN_MEMORY)
        } else {
            PIECE
        };
        if gathered < limit.max(1) {
            return Ok(());
        }
        self.begin();
        self.send_packed()
    }

    /// The statement ended well.
    pub(crate) fn finish(mut self, counts: Counts) {
        self.counts = counts;
        // A client that is gone needs no answer any more.
        drop(self.try_finish());
    }

    fn try_finish(&mut self) -> Result<(), Stopped> {
        self.packer.finish().map_err(failed)?;
        self.begin();
        if let Some(file) = self.held.take() {
            self.send_held(file)?;
        }
        self.send_packed()?;
        self.send(Sent::End)
    }

    fn send_held(&self, mut file: File) -> Result<(), Stopped> {
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        let mut piece = vec![0; PIECE];
        loop {
            let count = file.read(&mut piece).map_err(failed)?;
            if count == 0 {
                return Ok(());
            }
            let data = piece.get(..count).unwrap_or_default();
            self.send(Sent::Data(Bytes::copy_from_slice(data)))?;
        }
    }

    /// The statement failed: a clean error when nothing was sent yet, else one that breaks the answer off.
    pub(crate) fn fail(mut self, exception: Exception) {
        if let Some(beginning) = self.beginning.take() {
            drop(beginning.send(Beginning::Error(exception)));
            return;
        }
        let tag = &self.exception_tag;
        let message = format!("{}\n", exception.text);
        let trailer = format!(
            "\r\n__exception__\r\n{tag}\r\n{message}{} {tag}\r\n__exception__\r\n",
            message.len()
        );
        let packed = self
            .packer
            .write(trailer.as_bytes())
            .and_then(|()| self.packer.finish());
        if packed.is_ok() {
            // The body breaks off anyway: nobody can take it for complete.
            drop(self.send_packed());
        }
    }

    /// Puts what is packed so far into a file that goes with the process.
    fn hold(&mut self) -> Result<(), Stopped> {
        let packed = std::mem::take(self.packer.packed());
        self.held_bytes += packed.len() as u64;
        if self.held_bytes > self.delivery.largest_held {
            let limit = self.delivery.largest_held;
            return Err(Stopped::Failed(Exception::new(
                396,
                "TOO_MANY_ROWS_OR_BYTES",
                format!(
                    "The answer is larger than the {limit} bytes that wait_end_of_query holds back"
                ),
            )));
        }
        let file = match self.held.take() {
            Some(file) => self.held.insert(file),
            None => self
                .held
                .insert(tempfile::tempfile_in(&self.delivery.folder).map_err(failed)?),
        };
        file.write_all(&packed).map_err(failed)
    }

    fn begin(&mut self) {
        let Some(beginning) = self.beginning.take() else {
            return;
        };
        let (sender, body) = mpsc::channel(PIECES);
        self.pieces = Some(sender);
        let answer = Beginning::Answer {
            format: std::mem::take(&mut self.format),
            counts: self.counts,
            elapsed: self.started.elapsed(),
            body,
        };
        drop(beginning.send(answer));
    }

    fn send_packed(&mut self) -> Result<(), Stopped> {
        let packed = std::mem::take(self.packer.packed());
        if packed.is_empty() {
            Ok(())
        } else {
            self.send(Sent::Data(Bytes::from(packed)))
        }
    }

    fn send(&self, piece: Sent) -> Result<(), Stopped> {
        let Some(pieces) = &self.pieces else {
            return Err(Stopped::ClientGone);
        };
        // The timer is made inside, where the runtime is known.
        let sent = self.runtime.block_on(async {
            tokio::time::timeout(self.delivery.stall, pieces.send(piece)).await
        });
        if matches!(sent, Ok(Ok(()))) {
            Ok(())
        } else {
            Err(Stopped::ClientGone)
        }
    }
}

fn failed(error: impl std::fmt::Display) -> Stopped {
    Stopped::Failed(Exception::new(
        75,
        "CANNOT_WRITE_TO_FILE_DESCRIPTOR",
        format!("Cannot prepare the answer: {error}"),
    ))
}
