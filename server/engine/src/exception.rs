//! Errors as ClickHouse words them (`Code: N. DB::Exception: …. (NAME)`), and the one place that gives them HTTP statuses.

use hyper::StatusCode;

/// The version the library reports, which error texts end with.
pub(crate) const CLICKHOUSE_VERSION: &str = "26.7.2.1";

/// An error of ClickHouse's, or of this interface in ClickHouse's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exception {
    pub(crate) code: u32,
    /// The whole text, without a line break at its end.
    pub(crate) text: String,
}

impl Exception {
    pub(crate) fn new(code: u32, name: &str, message: impl std::fmt::Display) -> Self {
        Self {
            code,
            text: format!(
                "Code: {code}. DB::Exception: {message}. ({name}) (version {CLICKHOUSE_VERSION} (embedded))"
            ),
        }
    }

    pub(crate) fn bad_arguments(message: impl std::fmt::Display) -> Self {
        Self::new(36, "BAD_ARGUMENTS", message)
    }

    pub(crate) fn syntax(message: impl std::fmt::Display) -> Self {
        Self::new(62, "SYNTAX_ERROR", message)
    }

    pub(crate) fn not_implemented(message: impl std::fmt::Display) -> Self {
        Self::new(48, "NOT_IMPLEMENTED", message)
    }

    pub(crate) fn cannot_read(message: impl std::fmt::Display) -> Self {
        Self::new(33, "CANNOT_READ_ALL_DATA", message)
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(
            394,
            "QUERY_WAS_CANCELLED",
            "Query was cancelled: the client went away",
        )
    }

    /// An error the engine reported.
    pub(crate) fn from_engine(text: &str) -> Self {
        let text = text.trim();
        let Some(code) = code_of(text) else {
            let text = if text.is_empty() {
                "The engine gave no reason"
            } else {
                text
            };
            return Self::new(1002, "UNKNOWN_EXCEPTION", text);
        };
        let bare = format!(" (version {CLICKHOUSE_VERSION})");
        let text = text.strip_suffix(&bare).unwrap_or(text);
        Self {
            code,
            text: format!("{text} (version {CLICKHOUSE_VERSION} (embedded))"),
        }
    }

    /// The status the code travels with, as ClickHouse's HTTP interface maps it.
    pub(crate) fn status(&self) -> StatusCode {
        match self.code {
            // A password is missing.
            194 => StatusCode::UNAUTHORIZED,
            // Unknown user, wrong password, not allowed.
            192 | 193 | 195 | 291 | 492 | 497 | 516 => StatusCode::FORBIDDEN,
            // What was sent cannot be parsed, or does not fit.
            6 | 26 | 27 | 33 | 36 | 38 | 41 | 43 | 53 | 62 | 69 | 70 | 72 | 117 | 130 | 131
            | 158 | 167 | 168 | 190 | 321 | 349 | 372 | 374 | 376 | 386 | 396 | 432 | 441 | 456
            | 457 | 467 | 469 | 675 | 691 => StatusCode::BAD_REQUEST,
            // Unknown table, database, function, identifier, type, storage, setting, format, role …
            46 | 47 | 50 | 56 | 60 | 63 | 73 | 78 | 81 | 115 | 336 | 511 => StatusCode::NOT_FOUND,
            159 => StatusCode::REQUEST_TIMEOUT,
            48 => StatusCode::NOT_IMPLEMENTED,
            124 => StatusCode::PAYLOAD_TOO_LARGE,
            // The engine has no room for one more statement right now.
            202 | 439 | 76 | 209 => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// `Code: 60. DB::Exception: …` → 60.
fn code_of(text: &str) -> Option<u32> {
    text.strip_prefix("Code: ")?.split_once('.')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_error_keeps_its_code_and_names_the_version_once() {
        let error = Exception::from_engine(
            "Code: 60. DB::Exception: Table t does not exist. (UNKNOWN_TABLE) (version 26.7.2.1)",
        );
        assert_eq!(error.code, 60);
        assert_eq!(error.status(), StatusCode::NOT_FOUND);
        assert!(
            error
                .text
                .ends_with("(UNKNOWN_TABLE) (version 26.7.2.1 (embedded))"),
            "{}",
            error.text
        );
    }

    #[test]
    fn an_error_without_a_code_gets_one() {
        let error = Exception::from_engine("Invalid insert stream");
        assert_eq!(error.code, 1002);
        assert_eq!(error.status(), StatusCode::INTERNAL_SERVER_ERROR);
    }
}
