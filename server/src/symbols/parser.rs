//! Parses symbol files in a separate process with limits of memory and time, because the files come from outside.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use unjank_symbols::{ConvertError, Found, convert, convert_with, inspect};

/// The maximum size of the answer of the process: the builds of the largest bundles.
const MAX_ANSWER: u64 = 16 << 20;
/// The maximum size of an error message of the process.
const MAX_MESSAGE: u64 = 4 << 10;
/// How many times longer than on the CPU a file may take.
const PATIENCE: u32 = 4;
/// The exit code of a program that panicked.
const PANICKED: i32 = 101;

/// A request to the process, as its arguments.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum ParserRequest {
    /// List the builds that a file belongs to.
    Inspect { file: PathBuf },
    /// Write a lookup file for one build.
    Convert {
        file: PathBuf,
        place: u32,
        out: PathBuf,
        /// The file with the part of the debug information that `dwz` moved away.
        shared: Option<PathBuf>,
    },
}

impl ParserRequest {
    /// The files to read.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let (file, shared) = match self {
            Self::Inspect { file } => (file, None),
            Self::Convert { file, shared, .. } => (file, shared.as_ref()),
        };
        std::iter::once(file).chain(shared).map(PathBuf::as_path)
    }

    /// The file to write.
    #[must_use]
    pub fn out(&self) -> Option<&Path> {
        match self {
            Self::Inspect { .. } => None,
            Self::Convert { out, .. } => Some(out),
        }
    }
}

#[derive(Serialize, Deserialize)]
enum Answer {
    Found(Vec<Found>),
    Converted,
    Refused(String),
    Unsuitable(String),
    /// The file needs more memory than there is.
    NeedsMemory(String),
}

/// Where the limits of memory and time come from.
#[derive(Clone, Copy, Debug)]
pub enum ParserLimits {
    /// The settings of the server.
    Settings,
    /// A command, which has no options for them.
    Command,
}

impl ParserLimits {
    /// What to do about a file that needs more than `setting` allows.
    fn advice(self, setting: &str) -> String {
        match self {
            Self::Settings => format!("raise {setting} of the server, or split the file"),
            Self::Command => "split the file".to_owned(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ParserError {
    /// The file is a symbol file that cannot be read. The text explains the reason to the uploader.
    #[error("{0}")]
    Refused(String),
    /// The file is no symbol file, or no frame can find it. The text says what to do.
    #[error("{0}")]
    Unsuitable(String),
    /// Another process ended the parser. The file may be fine.
    #[error("{0}")]
    Ended(String),
    #[error("cannot run the parser of symbol files: {0}")]
    Io(#[from] std::io::Error),
}

/// Runs the process. One at a time, because each may use all of the memory that parsing may use.
pub struct Parser {
    program: PathBuf,
    max_memory_bytes: u64,
    max_time: Duration,
    limits: ParserLimits,
    turn: Semaphore,
}

impl Parser {
    /// `program` is the program `unjank`.
    #[must_use]
    pub fn new(
        program: PathBuf,
        (max_memory_bytes, max_time): (u64, Duration),
        limits: ParserLimits,
    ) -> Self {
        Self {
            program,
            max_memory_bytes,
            max_time,
            limits,
            turn: Semaphore::new(1),
        }
    }

    /// Lists the builds that a file belongs to.
    pub async fn inspect(&self, file: &Path) -> Result<Vec<Found>, ParserError> {
        let arguments = ["inspect".as_ref(), file.as_os_str()];
        match self.ask(&arguments).await? {
            Answer::Found(found) => Ok(found),
            Answer::Refused(reason) => Err(ParserError::Refused(reason)),
            Answer::Unsuitable(reason) => Err(ParserError::Unsuitable(reason)),
            Answer::Converted | Answer::NeedsMemory(_) => Err(wrong_answer().into()),
        }
    }

    /// Writes the lookup file of one build. `shared` is the file with the part of the debug information that `dwz` moved away.
    pub async fn convert(
        &self,
        (file, shared): (&Path, Option<&Path>),
        place: u32,
        out: &Path,
    ) -> Result<(), ParserError> {
        let place = place.to_string();
        let mut arguments = vec![
            "convert".as_ref(),
            file.as_os_str(),
            place.as_ref(),
            out.as_os_str(),
        ];
        arguments.extend(shared.map(Path::as_os_str));
        match self.ask(&arguments).await? {
            Answer::Converted => Ok(()),
            Answer::Refused(reason) | Answer::Unsuitable(reason) => {
                Err(ParserError::Refused(reason))
            }
            Answer::Found(_) | Answer::NeedsMemory(_) => Err(wrong_answer().into()),
        }
    }

    /// Runs the process. Never returns [`Answer::NeedsMemory`].
    async fn ask(&self, arguments: &[&std::ffi::OsStr]) -> Result<Answer, ParserError> {
        let _turn = self.turn.acquire().await;
        let mut child = Command::new(&self.program)
            .arg("symbol-parser")
            .arg("--max-memory-bytes")
            .arg(self.max_memory_bytes.to_string())
            .arg("--max-seconds")
            .arg(self.max_time.as_secs().max(1).to_string())
            .args(arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        // The pipe closes when the server ends, for whatever reason, and then the parser exits. `take` keeps `wait` from closing the pipe.
        let _open = child.stdin.take();
        let (answer, message) = (child.stdout.take(), child.stderr.take());
        let run = async {
            // Each closes its pipe at its limit, so a process that writes more fails instead of waiting.
            let (answer, message) =
                tokio::join!(start(answer, MAX_ANSWER), start(message, MAX_MESSAGE));
            Ok::<_, std::io::Error>((child.wait().await?, answer?, message?))
        };
        // The process limits its time on the CPU itself. On a busy machine, it waits for that longer.
        let Ok(ended) = timeout(PATIENCE * self.max_time, run).await else {
            return Err(self.too_slow());
        };
        let (status, answer, message) = ended?;
        if answer.len() as u64 == MAX_ANSWER {
            return Err(ParserError::Refused(
                "the file contains too many builds: split it".to_owned(),
            ));
        }
        if status.success() {
            let answer = serde_json::from_slice(&answer);
            return match answer.map_err(std::io::Error::from)? {
                Answer::NeedsMemory(reason) => Err(self.needs_memory(&reason)),
                answer => Ok(answer),
            };
        }
        Err(self.failure(status, &String::from_utf8_lossy(&message)))
    }

    /// Why the process ended without an answer.
    fn failure(&self, status: ExitStatus, message: &str) -> ParserError {
        let message = message.trim();
        let refused = |reason: String| ParserError::Refused(reason);
        match status.signal().map(Signal::from_named_raw) {
            Some(Some(Signal::XCPU)) => self.too_slow(),
            _ if let Some(bytes) = failed_allocation(message) => {
                let most = self.max_memory_bytes >> 20;
                match bytes > self.max_memory_bytes {
                    // One table of a file is never larger than everything that parsing the file may use.
                    true => refused(format!(
                        "the file is damaged: it declares a part of {} MiB, and parsing may use {most} MiB of memory",
                        bytes >> 20
                    )),
                    false => self.needs_memory(&format!(
                        "parsing the file takes more than {most} MiB of memory"
                    )),
                }
            }
            Some(Some(Signal::XFSZ)) => refused("the file is too large to be converted".to_owned()),
            Some(Some(Signal::KILL)) => ParserError::Ended(
                "the system ended the parser, which happens when the machine has no memory left: try again later"
                    .to_owned(),
            ),
            Some(_) => refused("the file crashes the parser: it is damaged, or made to break parsers".to_owned()),
            None if status.code() == Some(PANICKED) => {
                tracing::error!(message, "the parser of symbol files panicked");
                refused("the file makes the parser panic: please report this with the file".to_owned())
            }
            None => std::io::Error::other(message.to_owned()).into(),
        }
    }

    fn needs_memory(&self, reason: &str) -> ParserError {
        let advice = self.limits.advice("--symbols-parser-memory-bytes");
        ParserError::Refused(format!("{reason}: {advice}"))
    }

    fn too_slow(&self) -> ParserError {
        ParserError::Refused(format!(
            "parsing the file takes longer than {} s: {}",
            self.max_time.as_secs(),
            self.limits.advice("--symbols-parser-ms")
        ))
    }
}

/// Returns the size of the allocation for which there was no memory, from the message of the process.
fn failed_allocation(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("memory allocation of ")?;
    rest.split(' ').next()?.parse().ok()
}

/// Reads the start of a pipe.
async fn start(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(most).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

fn wrong_answer() -> std::io::Error {
    std::io::Error::new(
        std::io::ErrorKind::InvalidData,
        "the parser answered another question",
    )
}

/// The work of the process: reads the file and prints the answer. The caller has set the limits.
pub fn run(request: &ParserRequest, out: &mut dyn Write) -> std::io::Result<()> {
    let answer = match request {
        ParserRequest::Inspect { file } => match unjank_symbols::map_file(file) {
            Ok(data) => match inspect(&data) {
                Ok(found) => Answer::Found(found),
                Err(error) if error.is_unsuitable() => Answer::Unsuitable(error.to_string()),
                Err(error) => Answer::Refused(error.to_string()),
            },
            Err(error) => Answer::Refused(error.to_string()),
        },
        ParserRequest::Convert {
            file,
            place,
            out: to,
            shared,
        } => {
            let data = unjank_symbols::map_file(file)?;
            let shared = shared
                .as_deref()
                .map(unjank_symbols::map_file)
                .transpose()?;
            let mut to = BufWriter::new(File::create_new(to)?);
            let converted = match &shared {
                Some(shared) => convert_with(&data, *place, shared, &mut to),
                None => convert(&data, *place, &mut to),
            };
            match converted {
                Ok(()) => {
                    to.flush()?;
                    Answer::Converted
                }
                Err(error @ ConvertError::Thread(_)) => Answer::NeedsMemory(error.to_string()),
                Err(error) => Answer::Refused(error.to_string()),
            }
        }
    };
    serde_json::to_writer(out, &answer)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_parser_with_the_limits_of_settings_names_them() {
        const ABORTED: i32 = 6;
        for (limits, names_them) in [
            (ParserLimits::Settings, true),
            (ParserLimits::Command, false),
        ] {
            let most = (1 << 30, Duration::from_secs(1));
            let parser = Parser::new(PathBuf::new(), most, limits);
            let no_memory = "memory allocation of 16 bytes failed";
            for error in [
                parser.failure(ExitStatus::from_raw(ABORTED), no_memory),
                parser.too_slow(),
            ] {
                let error = error.to_string();
                assert_eq!(error.contains("--symbols-parser-m"), names_them, "{error}");
                assert!(error.ends_with("split the file"), "{error}");
            }
        }
    }
}
