//! The report in JSON, for other programs.

use std::path::Path;

use anyhow::{Context, Result};

use super::Report;

pub(crate) fn write(report: &Report, path: &Path) -> Result<()> {
    let text = serde_json::to_string_pretty(report).context("encoding the report")?;
    std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))
}
