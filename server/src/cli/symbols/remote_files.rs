//! The symbol files of a project, on the server.

use reqwest::Url;
use serde::Deserialize;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use crate::cli::api_client::Server;

/// A symbol file that the server has.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteFile {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) uploaded_at: UnixTime,
    pub(super) last_used_at: Option<UnixTime>,
    pub(super) builds: Vec<RemoteBuild>,
    pub(super) builds_total: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteBuild {
    pub(super) id: String,
    pub(super) format: String,
    pub(super) arch: String,
    pub(super) has_functions: bool,
    pub(super) has_lines: bool,
}

#[derive(Deserialize)]
pub(super) struct RemoteFiles {
    pub(super) files: Vec<RemoteFile>,
    pub(super) next: Option<Uuid>,
    pub(super) bytes: u64,
    pub(super) max_bytes: u64,
}

impl Server {
    /// Returns the URL of a path below the project's symbols.
    pub(super) fn symbols(&self, rest: &[&str]) -> anyhow::Result<Url> {
        let start = ["api", "v1", "projects", &self.project, "symbols"];
        self.path(&[&start, rest].concat())
    }

    /// Returns a page of the files of the project, latest first.
    pub(super) async fn files(&self, before: Option<Uuid>) -> anyhow::Result<RemoteFiles> {
        let mut url = self.symbols(&["files"])?;
        if let Some(before) = before {
            url.query_pairs_mut()
                .append_pair("before", &before.to_string());
        }
        self.get(url).await
    }

    /// Returns the latest files with symbols of a build, each with this build only.
    pub(super) async fn files_of(&self, symbol_id: &str) -> anyhow::Result<Vec<RemoteFile>> {
        let mut url = self.symbols(&["files"])?;
        url.query_pairs_mut().append_pair("symbol_id", symbol_id);
        let files: RemoteFiles = self.get(url).await?;
        Ok(files.files)
    }
}
