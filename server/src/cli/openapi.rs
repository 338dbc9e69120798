//! `unjank openapi`: prints the API document, for client generators and for the copy in the repository.

use std::io::Write;

use crate::http;

pub(super) fn run(mut out: impl Write) -> anyhow::Result<()> {
    serde_json::to_writer_pretty(&mut out, &http::document())?;
    writeln!(out)?;
    Ok(())
}
