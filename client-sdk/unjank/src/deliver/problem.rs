//! Why nothing arrives, in a sentence for the developer.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::exchange::Answer;
use super::transport::{Response, TransportError};
use crate::report::print;

/// The current problem, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Problem {
    text: Mutex<Option<String>>,
    /// Whether to print each problem to standard error, and later that it is solved.
    is_printed: bool,
}

impl Problem {
    pub(crate) fn new(is_printed: bool) -> Self {
        Self {
            text: Mutex::default(),
            is_printed,
        }
    }

    pub(crate) fn text(&self) -> Option<String> {
        self.lock().clone()
    }

    pub(crate) fn set(&self, text: String) {
        let mut now = self.lock();
        if now.as_ref() != Some(&text) {
            self.print(&text);
            *now = Some(text);
        }
    }

    /// The server accepted a request.
    pub(crate) fn clear(&self) {
        if self.lock().take().is_some() {
            self.print("the server accepts requests");
        }
    }

    pub(crate) fn print(&self, text: &str) {
        if self.is_printed {
            print(text);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns why the built-in client cannot use an endpoint. Returns `None` if it can.
pub(crate) fn of_endpoint(endpoint: &str) -> Option<String> {
    let scheme = endpoint.split_once("://").map(|(scheme, _)| scheme);
    let is_known = scheme.is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http")
    });
    if !is_known {
        return Some(format!(
            "the endpoint `{endpoint}` does not begin with https:// or http://: give the address of the server, such as https://perf.example.com"
        ));
    }
    let host = endpoint.split_once("://").map_or("", |(_, rest)| rest);
    if host.is_empty() || host.starts_with(['/', ':', '?', '#']) {
        return Some(format!(
            "the endpoint `{endpoint}` has no host: give the address of the server, such as https://perf.example.com"
        ));
    }
    if endpoint.contains(['?', '#']) || endpoint.contains(char::is_whitespace) {
        return Some(format!(
            "the endpoint `{endpoint}` has more than an address: leave out what follows the host and the port"
        ));
    }
    None
}

/// Says why there was no response.
pub(crate) fn of_connection(endpoint: &str, error: &TransportError) -> String {
    let what = error.to_string();
    let is_certificate = ["certificate", "UnknownIssuer"]
        .iter()
        .any(|sign| what.contains(sign));
    let advice = if is_certificate {
        ". If a private authority signed the server's certificate, pass its certificate to `Config::root_certificates`"
    } else {
        ": check that the address is right and that the server runs"
    };
    format!("cannot reach {endpoint} ({what}){advice}. What is recorded waits on the device")
}

/// Says why the server did not accept a request.
pub(crate) fn of_response(endpoint: &str, response: &Response) -> String {
    let detail = detail(&response.body).map_or(String::new(), |detail| format!(": {detail}"));
    match response.status {
        401 => format!(
            "{endpoint} does not know the key{detail}. Check the ingest key that is passed to `Config::new`"
        ),
        403 => format!("{endpoint} does not allow this key to send{detail}"),
        300..=399 | 404 | 405 => {
            let has_path = endpoint.split('/').nth(3).is_some();
            let advice = if has_path {
                "leave out the path of the endpoint, and"
            } else {
                "check the endpoint:"
            };
            format!(
                "{endpoint} answers {} and seems not to be an unjank server: {advice} give the address of the server, such as https://perf.example.com",
                response.status
            )
        }
        413 => format!(
            "{endpoint} takes no batch of this size: a proxy before the server may have a lower limit than 1 MiB"
        ),
        429 => format!("{endpoint} asks to wait, because the project is over a quota{detail}"),
        500.. => format!(
            "{endpoint} cannot take anything at the moment ({}){detail}. What is recorded waits on the device",
            response.status
        ),
        400 | 415 | 422 if is_of_the_way(response) => format!(
            "what was sent to {endpoint} did not arrive as it was sent ({}){detail}: a proxy may change requests. It is sent again, eight times at most in one run of the app",
            response.status
        ),
        status => format!("{endpoint} refused what was sent ({status}){detail}"),
    }
}

/// The codes of refusals of a body or of headers that a proxy or a broken connection changed: the SDK never sends such.
const CHANGED_ON_THE_WAY: [&str; 6] = [
    "body_truncated",
    "content_encoding",
    "content_type",
    "corrupt_encoding",
    "invalid_columns",
    "invalid_json",
];

/// Whether a refusal says nothing about the batch: the request did not arrive as it was sent, or the answer is not the server's, because it
/// has no code.
pub(crate) fn is_of_the_way(response: &Response) -> bool {
    code(response).is_none_or(|code| CHANGED_ON_THE_WAY.contains(&code.as_str()))
}

/// Whether a refusal of a batch in columns may be a refusal of columns: it says so, or it is not the server's, because it has no code.
pub(crate) fn may_be_of_form(response: &Response) -> bool {
    let is_of_request = (400..500).contains(&response.status);
    let is_of_another_cause = matches!(response.status, 401 | 408 | 413 | 429);
    let code = code(response);
    let may_be =
        code.is_none_or(|code| ["content_type", "invalid_columns"].contains(&code.as_str()));
    is_of_request && !is_of_another_cause && may_be
}

/// Whether the server answered that it takes nothing now. Otherwise, something on the way did, or nothing.
pub(crate) fn is_of_the_server(answer: &Answer) -> bool {
    answer
        .as_ref()
        .is_ok_and(|response| code(response).is_some())
}

/// The stable name of the reason in a problem document of the server.
fn code(response: &Response) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(&response.body).ok()?;
    body.get("code")?.as_str().map(str::to_owned)
}

/// The reason in a problem document (RFC 9457).
fn detail(body: &[u8]) -> Option<String> {
    let body: serde_json::Value = serde_json::from_slice(body).ok()?;
    let detail = body.get("detail").or_else(|| body.get("title"))?.as_str()?;
    Some(detail.chars().take(300).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_that_cannot_work_is_named_before_anything_is_sent() {
        for good in [
            "https://perf.example.com",
            "http://127.0.0.1:8080",
            "HTTPS://[::1]:1",
            "https://a.example/behind/a/proxy",
        ] {
            assert_eq!(of_endpoint(good), None, "{good}");
        }
        for (bad, expected) in [
            ("perf.example.com", "does not begin with https://"),
            ("ftp://perf.example.com", "does not begin with https://"),
            ("", "does not begin with https://"),
            ("https://", "has no host"),
            ("https:///v1", "has no host"),
            ("https://a.example?x=1", "has more than an address"),
            ("https://a.example b", "has more than an address"),
        ] {
            let problem = of_endpoint(bad).unwrap_or_default();
            assert!(problem.contains(expected), "{bad}: {problem}");
        }
    }

    #[test]
    fn each_answer_says_what_to_do() {
        let text = |endpoint: &str, status: u16, body: &str| {
            let response = Response {
                status,
                body: body.as_bytes().to_vec(),
                ..Response::default()
            };
            of_response(endpoint, &response)
        };
        let server = "https://perf.example.com";
        assert!(text(server, 401, "").contains("does not know the key"));
        let detail = r#"{"detail": "this ingest key is not for the app `a`"}"#;
        assert!(text(server, 403, detail).contains("not for the app `a`"));
        assert!(text(server, 404, "").contains("check the endpoint"));
        assert!(text("https://a.example/shop", 404, "").contains("leave out the path"));
        assert!(text(server, 503, "<html>").contains("503"));
        assert!(text(server, 400, "<html>").contains("a proxy may change requests"));
        let refused = r#"{"code": "invalid_envelope", "detail": "`batch_id` is missing"}"#;
        assert!(text(server, 400, refused).contains("refused what was sent (400): `batch_id`"));
        let error = TransportError("invalid peer certificate: UnknownIssuer".to_owned());
        assert!(of_connection(server, &error).contains("root_certificates"));
    }
}
