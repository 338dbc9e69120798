//! A response of the server, read completely.

use reqwest::{Response, StatusCode};
use serde_json::Value;

/// A response of the server.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<String>,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) async fn of(response: Response) -> Self {
        let status = response.status();
        let retry_after = response
            .headers()
            .get("retry-after")
            .map(|value| value.to_str().unwrap().to_owned());
        let text = response.text().await.unwrap();
        Self {
            status,
            retry_after,
            body: serde_json::from_str(&text).unwrap_or(Value::String(text)),
        }
    }

    /// Returns the status, with the code of a problem or the counts of a receipt.
    pub(crate) fn outcome(&self) -> (u16, String) {
        let code = self.body["code"].as_str().map_or_else(
            || {
                format!(
                    "accepted {} rejected {}",
                    self.body["accepted"],
                    self.body["rejected"].as_array().map_or(0, Vec::len)
                )
            },
            str::to_owned,
        );
        (self.status.as_u16(), code)
    }
}
