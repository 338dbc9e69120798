//! The history file of `unjank compare`, and git's information about its commits.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};
use clap::Args;

use crate::compare::{Comparison, Entry, Origin, origins, section, with};

#[derive(Args, Debug)]
pub(super) struct HistoryArgs {
    /// Keep the numbers of the head in this file, one line per commit, and report the commit since which a regressed number is worse
    #[arg(long, value_name = "FILE", requires = "commit")]
    history: Option<PathBuf>,

    /// The commit that the head was built from. In a clone of its repository, the report names the commits in question and their authors
    #[arg(long, value_name = "COMMIT", value_parser = commit)]
    commit: Option<String>,
}

/// How many commits the report lists.
const MOST_COMMITS: usize = 10;

/// Parses a commit: a hash or the name of a revision.
fn commit(text: &str) -> Result<String, String> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "._/-".contains(letter);
    if text.is_empty() || text.len() > 100 || text.starts_with('-') || !text.chars().all(is_name) {
        return Err(
            "a commit must be a hash or a name with 1 to 100 characters: letters, digits, `.`, `_`, `/` and `-`, but no `-` at the start"
                .into(),
        );
    }
    Ok(text.to_owned())
}

impl HistoryArgs {
    /// Reads the earlier entries. A file that does not exist has none.
    pub(super) fn read(&self) -> anyhow::Result<Vec<Entry>> {
        let Some(path) = &self.history else {
            return Ok(Vec::new());
        };
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let mut entries = Vec::new();
        for (place, line) in text.lines().enumerate() {
            let Ok(entry) = serde_json::from_str::<Entry>(line) else {
                bail!(
                    "line {} of {} is not an entry of a history: restore the file, or remove the line",
                    place + 1,
                    path.display()
                );
            };
            let entry = Entry {
                commit: commit(&entry.commit).map_err(|error| anyhow::anyhow!(error))?,
                ..entry
            };
            entries = with(entries, entry);
        }
        Ok(entries)
    }

    /// Appends the comparison to the file. Returns the section of the report, empty if no number regressed.
    pub(super) fn keep(
        &self,
        earlier: Vec<Entry>,
        comparison: &Comparison,
    ) -> anyhow::Result<String> {
        let (Some(path), Some(commit)) = (&self.history, &self.commit) else {
            return Ok(String::new());
        };
        let latest = Entry::new(commit, comparison);
        append(path, &latest)?;
        let entries = with(earlier, latest);
        Ok(section(&origins(&entries, comparison), commits_of))
    }
}

fn append(path: &Path, entry: &Entry) -> anyhow::Result<()> {
    let mut line = serde_json::to_string(entry)? + "\n";
    // The last line is incomplete if a job was killed while it wrote.
    let text = std::fs::read(path).unwrap_or_default();
    if text.last().is_some_and(|last| *last != b'\n') {
        line.insert(0, '\n');
    }
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .with_context(|| format!("cannot append to {}", path.display()))
}

/// Lists the commits after the last good one up to the first bad one, newest first, with their authors. If there are several, adds
/// the one to measure next. Empty if git does not know the commits.
fn commits_of(origin: &Origin) -> Vec<String> {
    let bad = &origin.first_bad;
    let range = match &origin.last_good {
        Some(good) => format!("{good}..{bad}"),
        None => return git(&["log", "-1", FORMAT, bad]),
    };
    let mut commits = git(&["log", FORMAT, &range]);
    if commits.len() <= 1 {
        return commits;
    }
    let rest = commits.len().saturating_sub(MOST_COMMITS);
    commits.truncate(MOST_COMMITS);
    if rest > 0 {
        commits.push(format!("and {rest} more"));
    }
    let middle = git(&["rev-list", "--bisect", "--abbrev-commit", &range]);
    let next = middle.first().map(|commit| {
        format!("none of them was measured alone; to find the one, measure {commit} next")
    });
    commits.extend(next);
    commits
}

const FORMAT: &str = "--format=%h by %an, %as, %s";

/// Runs git in the current folder. Returns the lines of its output, none if it fails.
fn git(arguments: &[&str]) -> Vec<String> {
    let output = Command::new("git").args(arguments).arg("--").output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(ToOwned::to_owned).collect()
}
