//! Queries ClickHouse over its HTTP interface, either a ClickHouse server or the embedded engine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use reqwest::Client;
use serde::Deserialize;

/// How to reach the store.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// A ClickHouse server that the operator runs.
    Server(Login),
    /// The embedded engine. Its address is in `engine.json` of the server's data folder, which is read before each attempt
    /// because a restarted engine has a new port and password.
    Engine(PathBuf),
}

/// Address and account.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Login {
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) user: String,
    #[serde(default)]
    pub(crate) password: String,
    /// Process id of the engine.
    #[serde(default)]
    pub(crate) pid: Option<u32>,
}

/// Reads the file that the server writes for its embedded engine.
pub(crate) fn engine_login(data_dir: &Path) -> Result<Login> {
    let path = data_dir.join("engine.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("reading {}: is the server running?", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))
}

/// Runs queries in the database `unjank`.
#[derive(Clone)]
pub(crate) struct ClickHouse {
    access: Access,
    client: Client,
}

/// Rows of a tab-separated response, split into fields.
pub(crate) type Rows = Vec<Vec<String>>;

/// ClickHouse's answer to a query.
enum Answer {
    Rows(String),
    Rejected(anyhow::Error),
}

const TRIES: u32 = 20;
const BETWEEN_TRIES: Duration = Duration::from_millis(500);

impl ClickHouse {
    pub(crate) fn new(access: Access) -> Result<Self> {
        let client = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(300))
            .build()
            .context("building the ClickHouse client")?;
        Ok(Self { access, client })
    }

    /// Runs a query. Retries for some seconds while ClickHouse is unreachable, as the engine may be restarting.
    pub(crate) async fn rows(&self, sql: &str) -> Result<Rows> {
        let mut failed = anyhow!("no attempt was made");
        for _ in 0..TRIES {
            match self.exchange(sql).await {
                Ok(Answer::Rows(text)) => return parse(sql, &text),
                Ok(Answer::Rejected(error)) => return Err(error),
                Err(error) => failed = error,
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
        Err(failed.context("ClickHouse is unreachable"))
    }

    /// Returns the first field of the first row.
    pub(crate) async fn value<T: std::str::FromStr>(&self, sql: &str) -> Result<T> {
        let rows = self.rows(sql).await?;
        rows.first()
            .and_then(|row| row.first())
            .and_then(|field| field.parse().ok())
            .with_context(|| format!("the query returned no value of the expected type: {sql}"))
    }

    /// Sends a query. Fails if ClickHouse is unreachable.
    async fn exchange(&self, sql: &str) -> Result<Answer> {
        let login = match &self.access {
            Access::Server(login) => login.clone(),
            Access::Engine(data_dir) => engine_login(data_dir)?,
        };
        let response = self
            .client
            .post(format!(
                "{}/?database=unjank&default_format=TabSeparated",
                login.url.trim_end_matches('/')
            ))
            .header("X-ClickHouse-User", &login.user)
            .header("X-ClickHouse-Key", &login.password)
            .body(sql.to_owned())
            .send()
            .await
            .context("querying ClickHouse")?;
        let status = response.status();
        let text = response
            .text()
            .await
            .context("reading ClickHouse's response")?;
        if !status.is_success() {
            return Ok(Answer::Rejected(anyhow!(
                "ClickHouse: {status}: {}\nfor: {sql}",
                text.trim()
            )));
        }
        Ok(Answer::Rows(text))
    }
}

fn parse(sql: &str, text: &str) -> Result<Rows> {
    // After the first rows ClickHouse can no longer change the status, so it appends the error to the body.
    if text.contains("DB::Exception") {
        bail!("ClickHouse failed in the middle of: {sql}\n{text}");
    }
    Ok(text
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect())
}
