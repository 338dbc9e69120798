//! The forms of a batch, and which of them the server reads. What it last said is remembered for the next start.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::problem;
use super::transport::Response;

/// How a batch is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Form {
    /// JSON without `sent_at` and without the closing brace: batches on the disk that an earlier version sealed.
    #[default]
    Json,
    /// Columns without the time of sending.
    Columns,
}

impl Form {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Columns => unjank_columns::MEDIA_TYPE,
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        *self == Self::Json
    }
}

/// What is known of the server.
#[derive(Debug)]
pub(crate) struct ServerForm {
    /// Has the address of the server that reads columns. Without a folder, each start begins with JSON.
    file: Option<PathBuf>,
    endpoint: String,
    reads_columns: bool,
    /// A batch in columns was refused, so this process sends JSON. Otherwise, a proxy that lets no columns pass would refuse each batch once.
    has_refused: bool,
    /// Attempts in columns in a row that the server did not answer, as far as is known. The network may be away, or something on the way may drop
    /// what it does not know.
    unanswered: u32,
    /// JSON passed where columns did not.
    is_in_doubt: bool,
}

/// After this many attempts in columns without an answer, JSON is tried.
const MOST_UNANSWERED: u32 = 3;

impl ServerForm {
    pub(crate) fn new(file: Option<PathBuf>, endpoint: &str) -> Self {
        let known = file.as_ref().and_then(|file| std::fs::read(file).ok());
        Self {
            reads_columns: known.is_some_and(|known| known == endpoint.as_bytes()),
            has_refused: false,
            unanswered: 0,
            is_in_doubt: false,
            endpoint: endpoint.to_owned(),
            file,
        }
    }

    pub(crate) fn reads_columns(&self) -> bool {
        self.reads_columns && self.unanswered < MOST_UNANSWERED
    }

    /// Notes what the server says that accepted a batch in this form.
    pub(crate) fn accepted(&mut self, form: Form, response: &Response) {
        if form == Form::Columns {
            (self.unanswered, self.is_in_doubt) = (0, false);
        } else if self.unanswered >= MOST_UNANSWERED {
            // The network may have come back. Columns have one more attempt.
            self.has_refused |= self.is_in_doubt;
            (self.unanswered, self.is_in_doubt) = (MOST_UNANSWERED - 1, true);
        }
        self.set(names_columns(response) && !self.has_refused);
    }

    /// Notes that a batch in columns got no answer, or none of the server.
    pub(crate) fn unanswered(&mut self) {
        self.unanswered = self.unanswered.saturating_add(1);
    }

    /// Notes a response to columns. Returns whether the batch is to be sent again as JSON.
    pub(crate) fn refused(&mut self, response: &Response) -> bool {
        let is_of_form = problem::may_be_of_form(response);
        if is_of_form {
            self.has_refused = true;
            self.set(false);
        }
        is_of_form
    }

    fn set(&mut self, reads_columns: bool) {
        if self.reads_columns == reads_columns {
            return;
        }
        self.reads_columns = reads_columns;
        let Some(file) = &self.file else { return };
        let written = match reads_columns {
            true => std::fs::write(file, &self.endpoint),
            false => std::fs::remove_file(file),
        };
        // If this fails, the next start begins with the other form.
        let _failed = written.is_err();
    }
}

fn names_columns(response: &Response) -> bool {
    let types = response.accept_post.as_deref().unwrap_or_default();
    let mut types = types.split(',').filter_map(|one| one.split(';').next());
    types.any(|one| one.trim().eq_ignore_ascii_case(unjank_columns::MEDIA_TYPE))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "https://perf.example.com";

    fn naming(types: &str) -> Response {
        Response {
            status: 202,
            accept_post: Some(types.to_owned()),
            ..Response::default()
        }
    }

    fn refusing(status: u16, body: &str) -> Response {
        Response {
            status,
            body: body.as_bytes().to_vec(),
            ..Response::default()
        }
    }

    #[test]
    fn a_server_is_remembered_by_its_address_until_it_says_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let file = || Some(folder.path().join("columns"));
        let mut form = ServerForm::new(file(), SERVER);
        assert!(!form.reads_columns());
        form.accepted(
            Form::Json,
            &naming("application/json, Application/Vnd.Unjank.Batch.V2"),
        );
        assert!(form.reads_columns());
        assert!(ServerForm::new(file(), SERVER).reads_columns());
        assert!(!ServerForm::new(file(), "https://other.example.com").reads_columns());
        form.accepted(Form::Columns, &naming("application/json"));
        assert!(!form.reads_columns());
        assert!(!ServerForm::new(file(), SERVER).reads_columns());
    }

    #[test]
    fn a_refusal_that_may_be_of_the_form_ends_columns_in_this_process() {
        let columns = naming(unjank_columns::MEDIA_TYPE);
        for (status, body) in [
            (415, r#"{"code":"content_type"}"#),
            (400, r#"{"code":"invalid_columns"}"#),
            (403, "<html>"),
            (406, ""),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let file = || Some(folder.path().join("columns"));
            let mut form = ServerForm::new(file(), SERVER);
            form.accepted(Form::Json, &columns);
            assert!(form.refused(&refusing(status, body)), "{status}");
            form.accepted(Form::Json, &columns);
            assert!(!form.reads_columns(), "{status}");
            assert!(!ServerForm::new(file(), SERVER).reads_columns());
        }
        let mut form = ServerForm::new(None, SERVER);
        form.accepted(Form::Json, &columns);
        for (status, body) in [
            (400, r#"{"code":"invalid_envelope"}"#),
            (400, r#"{"code":"corrupt_encoding"}"#),
            (401, ""),
            (403, r#"{"code":"key_not_for_app"}"#),
            (408, ""),
            (413, ""),
            (429, ""),
            (503, ""),
        ] {
            assert!(!form.refused(&refusing(status, body)), "{status} {body}");
        }
        assert!(form.reads_columns());
    }

    #[test]
    fn json_is_sent_if_it_passes_where_columns_do_not() {
        let columns = naming(unjank_columns::MEDIA_TYPE);
        let mut form = ServerForm::new(None, SERVER);
        form.accepted(Form::Json, &columns);
        let fail = |form: &mut ServerForm, times: u32| {
            for _ in 0..times {
                assert!(form.reads_columns());
                form.unanswered();
            }
            assert!(!form.reads_columns());
        };
        // The network was away.
        fail(&mut form, 3);
        form.accepted(Form::Json, &columns);
        assert!(form.reads_columns());
        form.accepted(Form::Columns, &columns);
        // Something on the way drops columns.
        fail(&mut form, 3);
        form.accepted(Form::Json, &columns);
        fail(&mut form, 1);
        for _ in 0..5 {
            form.accepted(Form::Json, &columns);
            assert!(!form.reads_columns());
        }
    }
}
