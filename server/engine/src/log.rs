//! ClickHouse's log, line by line, as events of the server's log.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
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

/// What ClickHouse said last of its errors: often why it ended.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastWords(Arc<Mutex<Option<String>>>);

impl LastWords {
    fn set(&self, words: &str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(words.to_owned());
    }
}

impl std::fmt::Display for LastWords {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        formatter.write_str(words.as_deref().unwrap_or("it gave no reason"))
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

/// Logs what ClickHouse writes until it ends.
pub(crate) async fn forward(output: impl AsyncRead + Unpin, last_words: LastWords) {
    let mut lines = BufReader::new(output).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        let line = String::from_utf8_lossy(&line);
        if let Ok(parsed) = serde_json::from_str::<Line>(&line) {
            log(&parsed, &last_words);
        } else if !line.trim().is_empty() {
            // A crash report, or the process before it became ClickHouse.
            last_words.set(line.trim());
            tracing::warn!(target: TARGET, "{}", line.trim());
        }
    }
}

fn log(line: &Line, last_words: &LastWords) {
    // Addresses without names: nothing that a reader could use.
    let message = line
        .message
        .split(", Stack trace")
        .next()
        .unwrap_or_default();
    let (logger, query_id) = (&line.logger_name, &line.query_id);
    match line.level.as_str() {
        "Fatal" | "Critical" | "Error" | "ERROR" => {
            last_words.set(message);
            tracing::error!(target: TARGET, logger, query_id, "{message}");
        }
        "Warning" | "WARN" => tracing::warn!(target: TARGET, logger, query_id, "{message}"),
        "Notice" | "Information" => {
            tracing::info!(target: TARGET, logger, query_id, "{message}");
        }
        "Debug" => tracing::debug!(target: TARGET, logger, query_id, "{message}"),
        _ => tracing::trace!(target: TARGET, logger, query_id, "{message}"),
    }
}
