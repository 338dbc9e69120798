//! What a server would say to a symbol file, without a server.

use anyhow::Context;
use tempfile::TempDir;

use super::files::{SymbolFile, parser};
use crate::symbols::{Parser, ParserError};

pub(super) struct DryRun {
    parser: Parser,
    folder: TempDir,
}

impl DryRun {
    pub(super) fn new() -> anyhow::Result<Self> {
        Ok(Self {
            parser: parser()?,
            folder: tempfile::tempdir().context("cannot make a folder for lookup files")?,
        })
    }

    /// Returns why a server would refuse a file. Like a server, converts the first build that has names.
    pub(super) async fn refusal(&self, file: &SymbolFile) -> anyhow::Result<Option<String>> {
        let mut builds = file.found.iter();
        let Some(first) = builds.find(|found| found.contents.functions) else {
            return Ok(None);
        };
        let out = self.folder.path().join("lookup");
        let files = (file.path.as_path(), None);
        let converted = self.parser.convert(files, first.index, &out).await;
        // The parser may have written a part of the file before it failed.
        if out.exists() {
            std::fs::remove_file(&out).context("cannot remove a lookup file")?;
        }
        match converted {
            Ok(()) => Ok(None),
            Err(ParserError::Io(error)) => {
                Err(error).with_context(|| format!("cannot read {}", file.path.display()))
            }
            Err(error) => Ok(Some(error.to_string())),
        }
    }
}
