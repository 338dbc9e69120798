//! Parses symbol files in a separate process with limits of memory and time, because the files come from outside.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use unjank_symbols::{Found, convert, inspect};

/// The maximum output of the process: the builds of the largest bundles.
const MAX_OUTPUT: usize = 16 << 20;

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
    },
}

#[derive(Serialize, Deserialize)]
enum Answer {
    Found(Vec<Found>),
    Converted,
    Refused(String),
}

#[derive(Debug, thiserror::Error)]
pub enum ParserError {
    /// The file is of no use. The text tells the uploader why.
    #[error("{0}")]
    Refused(String),
    #[error("cannot run the parser of symbol files: {0}")]
    Io(#[from] std::io::Error),
}

/// Runs the process. One at a time, because each may use all of the memory that parsing may use.
pub struct Parser {
    program: PathBuf,
    max_memory_bytes: u64,
    max_time: Duration,
    turn: Semaphore,
}

impl Parser {
    /// `program` is the program `unjank`.
    #[must_use]
    pub fn new(program: PathBuf, max_memory_bytes: u64, max_time: Duration) -> Self {
        Self {
            program,
            max_memory_bytes,
            max_time,
            turn: Semaphore::new(1),
        }
    }

    /// Lists the builds that a file belongs to.
    pub async fn inspect(&self, file: &Path) -> Result<Vec<Found>, ParserError> {
        let arguments = ["inspect".as_ref(), file.as_os_str()];
        match self.ask(&arguments).await? {
            Answer::Found(found) => Ok(found),
            Answer::Refused(reason) => Err(ParserError::Refused(reason)),
            Answer::Converted => Err(wrong_answer().into()),
        }
    }

    /// Writes the lookup file of one build.
    pub async fn convert(&self, file: &Path, place: u32, out: &Path) -> Result<(), ParserError> {
        let place = place.to_string();
        let arguments = [
            "convert".as_ref(),
            file.as_os_str(),
            place.as_ref(),
            out.as_os_str(),
        ];
        match self.ask(&arguments).await? {
            Answer::Converted => Ok(()),
            Answer::Refused(reason) => Err(ParserError::Refused(reason)),
            Answer::Found(_) => Err(wrong_answer().into()),
        }
    }

    async fn ask(&self, arguments: &[&std::ffi::OsStr]) -> Result<Answer, ParserError> {
        let _turn = self.turn.acquire().await;
        let child = Command::new(&self.program)
            .arg("symbol-parser")
            .arg("--max-memory-bytes")
            .arg(self.max_memory_bytes.to_string())
            .arg("--max-seconds")
            .arg(self.max_time.as_secs().max(1).to_string())
            .args(arguments)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let Ok(output) = timeout(self.max_time, child.wait_with_output()).await else {
            return Err(self.too_slow());
        };
        let output = output?;
        if output.status.success() && output.stdout.len() <= MAX_OUTPUT {
            let answer = serde_json::from_slice(&output.stdout);
            return Ok(answer.map_err(std::io::Error::from)?);
        }
        Err(ParserError::Refused(format!(
            "the file cannot be parsed: it needs more than {} MiB of memory or {} s of time, or is made to break parsers",
            self.max_memory_bytes >> 20,
            self.max_time.as_secs()
        )))
    }

    fn too_slow(&self) -> ParserError {
        ParserError::Refused(format!(
            "the file cannot be parsed within {} s",
            self.max_time.as_secs()
        ))
    }
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
                Err(error) => Answer::Refused(error.to_string()),
            },
            Err(error) => Answer::Refused(error.to_string()),
        },
        ParserRequest::Convert {
            file,
            place,
            out: to,
        } => {
            let data = unjank_symbols::map_file(file)?;
            let mut to = BufWriter::new(File::create_new(to)?);
            match convert(&data, *place, &mut to) {
                Ok(()) => {
                    to.flush()?;
                    Answer::Converted
                }
                Err(error) => Answer::Refused(error.to_string()),
            }
        }
    };
    serde_json::to_writer(out, &answer)?;
    Ok(())
}
