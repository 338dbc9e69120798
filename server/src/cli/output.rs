//! The output of a command: standard output, or a file that is either complete or absent.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;

/// Ignores that standard output was closed: its reader, such as `head`, needs no more output.
pub(super) fn unless_closed(done: anyhow::Result<()>) -> anyhow::Result<()> {
    match done {
        Err(error) if is_broken_pipe(&error) => Ok(()),
        done => done,
    }
}

pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[derive(Args, Debug)]
pub(super) struct OutputArgs {
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Overwrite the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
}

pub(super) enum Output {
    Standard(io::StdoutLock<'static>),
    File(Part),
}

/// A file that has a temporary name until it is complete.
pub(super) struct Part {
    file: BufWriter<File>,
    part: PathBuf,
    path: PathBuf,
    force: bool,
}

impl Drop for Part {
    fn drop(&mut self) {
        // Fails if the file was completed and renamed.
        let _gone = fs::remove_file(&self.part).is_err();
    }
}

impl Output {
    /// Fails early if the file exists already.
    pub(super) fn open(args: &OutputArgs) -> anyhow::Result<Self> {
        let Some(path) = &args.output else {
            return Ok(Self::Standard(io::stdout().lock()));
        };
        refuse_to_overwrite(path, args.force)?;
        let name = path
            .file_name()
            .with_context(|| format!("{} is not a file name", path.display()))?;
        let mut part = name.to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = path.with_file_name(part);
        let file =
            File::create_new(&part).with_context(|| format!("cannot write {}", part.display()))?;
        Ok(Self::File(Part {
            file: BufWriter::new(file),
            part,
            path: path.clone(),
            force: args.force,
        }))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Standard(out) => out.write_all(bytes),
            Self::File(part) => part.file.write_all(bytes),
        }
    }

    pub(super) fn finish(self) -> anyhow::Result<()> {
        match self {
            Self::Standard(mut out) => Ok(out.flush()?),
            Self::File(mut part) => {
                part.file.flush()?;
                refuse_to_overwrite(&part.path, part.force)?;
                fs::rename(&part.part, &part.path)
                    .with_context(|| format!("cannot write {}", part.path.display()))
            }
        }
    }

    /// Writes the whole output at once.
    pub(super) fn whole(mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.write(bytes)?;
        self.finish()
    }
}

fn refuse_to_overwrite(path: &Path, force: bool) -> anyhow::Result<()> {
    if !force && path.exists() {
        bail!(
            "{} already exists: use --force to overwrite it",
            path.display()
        );
    }
    Ok(())
}
