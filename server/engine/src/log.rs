//! Forwards ClickHouse's log, line by line, to the server's log.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use serde::Deserialize;
use tokio::io::AsyncRead;
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};
use tracing::level_filters::LevelFilter;

/// The target of ClickHouse's events. `--log info,clickhouse=error` only logs its errors.
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

/// The last error of ClickHouse itself, not of a query. Often the reason why it ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastError(Arc<Mutex<Option<String>>>);

/// The line in which `clickhouse local` announces that one of its own statements failed.
const STATEMENT_FAILED: &str = "Received exception";

impl LastError {
    fn set(&self, error: &str) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The reason is in the line after the announcement.
        *last = match last.take() {
            Some(before) if before == STATEMENT_FAILED => Some(format!("{before}: {error}")),
            _ => Some(error.trim_end_matches(':').to_owned()),
        };
    }

    /// Whether a statement that ClickHouse was started with has failed.
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
        formatter.write_str(last.as_deref().unwrap_or("no reason given"))
    }
}

/// Returns the log level for ClickHouse. Its level `information` logs a line for each table that it opens, so it is used for `--log debug`. Errors
/// are always logged, because they explain why ClickHouse ended.
pub(crate) fn level() -> &'static str {
    match LevelFilter::current() {
        LevelFilter::TRACE => "trace",
        LevelFilter::DEBUG => "information",
        LevelFilter::INFO | LevelFilter::WARN => "warning",
        _ => "error",
    }
}

/// Longer lines are dropped: a query may be arbitrarily long.
const LONGEST_LINE: usize = 64 << 10;

/// Logs the output of ClickHouse until it ends.
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
        // ClickHouse prints `Empty query` when its terminal hangs up.
        } else if !matches!(line.trim(), "" | "Empty query") {
            // A crash report, or output of the process before it became ClickHouse.
            last_error.set(line.trim());
            tracing::warn!(target: TARGET, "{}", line.trim());
        }
    }
}

fn log(line: &Line, last_error: &LastError) {
    // The stack trace consists of bare addresses, which are of no use.
    let message = line
        .message
        .split(", Stack trace")
        .next()
        .unwrap_or_default();
    let (logger, query_id) = (&line.logger_name, &line.query_id);
    match line.level.as_str() {
        // The author of a query has received its error, and its text may contain secrets. `query_log` has both. The pools only report that they are
        // busy.
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
