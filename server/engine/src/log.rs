//! ClickHouse's log, line by line, as events of the server's log.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use serde::Deserialize;
use tokio::io::AsyncRead;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tracing::level_filters::LevelFilter;

/// The target of ClickHouse's events: `--log info,clickhouse=error` keeps its errors only.
const TARGET: &str = "clickhouse";

/// A line of ClickHouse's log.
#[derive(Deserialize)]
struct Line {
    level: String,
    #[serde(default)]
    query_id: String,
    #[serde(default)]
    logger_name: String,
    message: String,
}

/// The last error of ClickHouse itself, not of a query: often why it ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastError(Arc<Mutex<Option<String>>>);

/// How `clickhouse local` announces that one of its own statements failed.
const STATEMENT_FAILED: &str = "Received exception";

impl LastError {
    fn set(&self, error: &str) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The line after the announcement has the reason.
        *last = match last.take() {
            Some(before) if before == STATEMENT_FAILED => Some(format!("{before}: {error}")),
            _ => Some(error.trim_end_matches(':').to_owned()),
        };
    }

    /// Whether a statement failed that ClickHouse was started with.
    pub(crate) fn is_of_statement(&self) -> bool {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().is_some_and(|last| {
            last.len() > STATEMENT_FAILED.len() && last.starts_with(STATEMENT_FAILED)
        })
    }
}

impl std::fmt::Display for LastError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        formatter.write_str(last.as_deref().unwrap_or("it gave no reason"))
    }
}

/// The level that ClickHouse logs at. Its `information` is a line for each table that it opens, so `--log debug` asks for that.
/// Errors are always wanted: they say why it ended.
pub(crate) fn level() -> &'static str {
    match LevelFilter::current() {
        LevelFilter::TRACE => "trace",
        LevelFilter::DEBUG => "information",
        LevelFilter::INFO | LevelFilter::WARN => "warning",
        _ => "error",
    }
}

/// Longer lines are left out: a query may be as long as its author likes.
const LONGEST_LINE: usize = 64 << 10;

/// Logs what ClickHouse writes until it ends.
pub(crate) async fn forward(output: impl AsyncRead + Unpin, last_error: LastError) {
    let mut lines = FramedRead::new(output, LinesCodec::new_with_max_length(LONGEST_LINE));
    while let Some(line) = lines.next().await {
        let line = match line {
            Ok(line) => line,
            Err(LinesCodecError::MaxLineLengthExceeded) => continue,
            Err(LinesCodecError::Io(_)) => return,
        };
        if let Ok(parsed) = serde_json::from_str::<Line>(&line) {
            log(&parsed, &last_error);
        // `Empty query` is what it says when its terminal hangs up.
        } else if !matches!(line.trim(), "" | "Empty query") {
            // A crash report, or the process before it became ClickHouse.
            last_error.set(line.trim());
            tracing::warn!(target: TARGET, "{}", line.trim());
        }
    }
}

fn log(line: &Line, last_error: &LastError) {
    // Addresses without names: nothing that a reader could use.
    let message = line
        .message
        .split(", Stack trace")
        .next()
        .unwrap_or_default();
    let (logger, query_id) = (&line.logger_name, &line.query_id);
    match line.level.as_str() {
        // The author of a query has got its error, and its text may hold what no log should. `query_log` has both. The pools only
        // say that they are busy.
        _ if !query_id.is_empty() || logger.starts_with("BackgroundSchedulePool") => {
            tracing::debug!(target: TARGET, logger, query_id, "{message}");
        }
        "Fatal" | "Critical" | "Error" | "ERROR" => {
            last_error.set(message);
            tracing::error!(target: TARGET, logger, "{message}");
        }
        "Warning" | "WARN" => tracing::warn!(target: TARGET, logger, "{message}"),
        "Notice" | "Information" => tracing::info!(target: TARGET, logger, "{message}"),
        "Debug" => tracing::debug!(target: TARGET, logger, "{message}"),
        _ => tracing::trace!(target: TARGET, logger, "{message}"),
    }
}
