//! Asks ClickHouse over its HTTP interface: the server's own or the embedded engine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use reqwest::Client;
use serde::Deserialize;

/// How to reach the store.
#[derive(Clone, Debug)]
pub(crate) enum Access {
    /// A ClickHouse of one's own.
    Server(Login),
    /// The embedded engine: `engine.json` in the server's data folder says where it listens. Read again for each try,
    /// since a restarted engine has a new port and password.
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
    /// The engine's process.
    #[serde(default)]
    pub(crate) pid: Option<u32>,
}

/// The file the server writes for its embedded engine.
pub(crate) fn engine_login(data_dir: &Path) -> Result<Login> {
    let path = data_dir.join("engine.json");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("reading {}: does the server run?", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))
}

/// Runs queries in the database `unjank`.
#[derive(Clone)]
pub(crate) struct ClickHouse {
    access: Access,
    client: Client,
}

/// Rows as tab-separated text, cut into fields.
pub(crate) type Rows = Vec<Vec<String>>;

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

    /// Runs a query. Tries again for some seconds while nobody answers: the engine may be restarting.
    pub(crate) async fn rows(&self, sql: &str) -> Result<Rows> {
        let mut failed = anyhow!("never tried");
        for _ in 0..TRIES {
            match self.exchange(sql).await {
                Ok(answer) => return parse(sql, &answer?),
                Err(error) => failed = error,
            }
            tokio::time::sleep(BETWEEN_TRIES).await;
        }
        Err(failed.context("ClickHouse did not answer"))
    }

    /// One value: the first field of the first row.
    pub(crate) async fn value<T: std::str::FromStr>(&self, sql: &str) -> Result<T> {
        let rows = self.rows(sql).await?;
        rows.first()
            .and_then(|row| row.first())
            .and_then(|field| field.parse().ok())
            .with_context(|| format!("no value from: {sql}"))
    }

    /// The outer result fails when nobody answers, the inner one when ClickHouse refuses the query.
    async fn exchange(&self, sql: &str) -> Result<Result<String>> {
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
            .context("asking ClickHouse")?;
        let status = response.status();
        let text = response
            .text()
            .await
            .context("reading ClickHouse's answer")?;
        if !status.is_success() {
            return Ok(Err(anyhow!(
                "ClickHouse: {status}: {}\nfor: {sql}",
                text.trim()
            )));
        }
        Ok(Ok(text))
    }
}

fn parse(sql: &str, text: &str) -> Result<Rows> {
    // An error after the first rows cannot change the status any more: it ends the body.
    if text.contains("DB::Exception") {
        bail!("ClickHouse failed in the middle of: {sql}\n{text}");
    }
    Ok(text
        .lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect())
}
