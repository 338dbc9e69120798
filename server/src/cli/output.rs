//! Where what a command makes goes: standard output, or a file that is whole or not there.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;

#[derive(Args, Debug)]
pub(super) struct OutputArgs {
    /// Write to this file instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Write over the file when it is there
    #[arg(long, requires = "output")]
    force: bool,
}

pub(super) enum Output {
    Standard(io::StdoutLock<'static>),
    File(Part),
}

/// A file under another name until it is whole.
pub(super) struct Part {
    file: BufWriter<File>,
    part: PathBuf,
    path: PathBuf,
    force: bool,
}

impl Drop for Part {
    fn drop(&mut self) {
        // Gone already when it was whole.
        let _gone = fs::remove_file(&self.part).is_err();
    }
}

impl Output {
    /// Refuses a file that is there before anything is asked.
    pub(super) fn open(args: &OutputArgs) -> anyhow::Result<Self> {
        let Some(path) = &args.output else {
            return Ok(Self::Standard(io::stdout().lock()));
        };
        refuse_to_overwrite(path, args.force)?;
        let name = path
            .file_name()
            .with_context(|| format!("{} is no file", path.display()))?;
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

    /// The whole of it at once.
    pub(super) fn whole(mut self, bytes: &[u8]) -> anyhow::Result<()> {
        self.write(bytes)?;
        self.finish()
    }
}

fn refuse_to_overwrite(path: &Path, force: bool) -> anyhow::Result<()> {
    if !force && path.exists() {
        bail!(
            "{} is there already: say --force to write over it",
            path.display()
        );
    }
    Ok(())
}
