//! The sources of a side's runs: report files or the store.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::bail;
use unjank_foundation::clock::UnixTime;
use unjank_stacks::Rules;

use crate::cli::event_filters::EventFilters;
use crate::cli::export::of_file;
use crate::cli::{DEFAULT_WAIT, store_in_use};
use crate::compare::Side;
use crate::config::Shared;
use crate::query::{numbers_of_versions, sampled_sessions};
use crate::store::ClickHouse;
use crate::test_run::Measured;

const VERSION: &str = "app_version";

/// One value of `--base` or `--head`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    File(PathBuf),
    /// Events with this value in the store.
    Stored {
        dimension: String,
        value: String,
    },
}

impl FromStr for Source {
    type Err = Infallible;

    /// An existing file, or a text that looks like a file name, is a file: a mistyped name should be reported as such. Any other
    /// text without `=` is a version.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let path = Path::new(text);
        let looks_like_a_file = path
            .extension()
            .is_some_and(|end| end == "jsonl" || end == "json" || end == "ndjson")
            || text.contains(['/', '\\']);
        let stored = text.split_once('=').filter(|(name, _)| {
            name.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        });
        Ok(match stored {
            _ if text == "-" || path.is_file() => Self::File(path.to_owned()),
            Some((dimension, value)) => Self::Stored {
                dimension: dimension.to_owned(),
                value: value.to_owned(),
            },
            None if looks_like_a_file => Self::File(path.to_owned()),
            None => Self::Stored {
                dimension: VERSION.to_owned(),
                value: text.to_owned(),
            },
        })
    }
}

impl Source {
    fn label(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Stored { dimension, value } if dimension == VERSION => format!("version {value}"),
            Self::Stored { dimension, value } => format!("{dimension} {value}"),
        }
    }

    fn version(&self) -> Option<&str> {
        match self {
            Self::Stored { dimension, value } if dimension == VERSION => Some(value),
            _ => None,
        }
    }
}

/// Reads both sides.
pub(super) async fn sides(
    shared: &Shared,
    events: &EventFilters,
    base: &[Source],
    head: &[Source],
) -> anyhow::Result<(Side, Side)> {
    let from_store = |source: &Source| matches!(source, Source::Stored { .. });
    let store = if base.iter().chain(head).any(from_store) {
        Some(store_in_use(shared, DEFAULT_WAIT).await?)
    } else {
        None
    };
    if store.is_none() && !events.is_open() {
        bail!("--from, --to and --filter apply to the store, not to report files");
    }
    let reader = Reader {
        store,
        events,
        now: shared.now(),
        rules: Rules::built_in(),
    };
    let (mut base_side, mut head_side) = (reader.side(base).await?, reader.side(head).await?);
    if let ([one], [other], Some(store)) = (base, head, &reader.store)
        && let (Some(base), Some(head)) = (one.version(), other.version())
    {
        let ask = events.ask(reader.now)?;
        let versions = (base, head);
        let (of_base, of_head) =
            numbers_of_versions(store, events.project(), &ask, versions, reader.now).await?;
        (base_side.known, head_side.known) = (of_base, of_head);
    }
    Ok((base_side, head_side))
}

struct Reader<'r> {
    store: Option<ClickHouse>,
    events: &'r EventFilters,
    now: UnixTime,
    rules: Rules,
}

impl Reader<'_> {
    async fn side(&self, sources: &[Source]) -> anyhow::Result<Side> {
        let mut side = Side {
            label: sources
                .iter()
                .map(Source::label)
                .collect::<Vec<_>>()
                .join(", "),
            ..Side::default()
        };
        for source in sources {
            side.runs.extend(self.runs(source).await?);
        }
        Ok(side)
    }

    async fn runs(&self, source: &Source) -> anyhow::Result<Vec<Measured>> {
        let (dimension, value, store) = match (source, &self.store) {
            (Source::File(path), _) => return Ok(vec![of_file(path, &self.rules)?.measured]),
            (Source::Stored { dimension, value }, Some(store)) => (dimension, value, store),
            (Source::Stored { .. }, None) => bail!("{} needs a store", source.label()),
        };
        let mut ask = self.events.ask(self.now)?;
        ask.filters.push((dimension.clone(), value.clone()));
        let project = self.events.project();
        let runs = sampled_sessions(store, project, &ask, self.now, &self.rules).await?;
        if runs.is_empty() {
            bail!(
                "no events of {}: check --from, --to, --project and --filter",
                source.label()
            );
        }
        Ok(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_a_file_a_version_or_a_filter() {
        let stored = |dimension: &str, value: &str| Source::Stored {
            dimension: dimension.to_owned(),
            value: value.to_owned(),
        };
        let read = |text: &str| text.parse::<Source>().unwrap();
        assert_eq!(read("gone.jsonl"), Source::File("gone.jsonl".into()));
        assert_eq!(read("runs/gone"), Source::File("runs/gone".into()));
        assert_eq!(read("-"), Source::File("-".into()));
        assert_eq!(read("4.12.0"), stored("app_version", "4.12.0"));
        assert_eq!(read("app_version=a/b"), stored("app_version", "a/b"));
        assert_eq!(read("session_id=7"), stored("session_id", "7"));
    }
}
