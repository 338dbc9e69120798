//! Settings of the embedded engine that `serve` and `engine` share.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use unjank_engine::Source;

use crate::store::EnginePasswords;

/// The embedded engine.
#[derive(Args, Clone, Debug)]
pub struct Engine {
    /// The address of ClickHouse's native protocol, for `clickhouse-client` and Grafana's native mode; port 0 takes a free
    /// port. Unset: only HTTP.
    #[arg(long, env = "UNJANK_ENGINE_TCP_LISTEN", value_name = "ADDRESS")]
    pub engine_tcp_listen: Option<SocketAddr>,

    /// What the engine's user `admin` may read and write outside ClickHouse's own tables. Unset: nothing.
    #[arg(
        long,
        env = "UNJANK_ENGINE_SOURCES",
        value_name = "SOURCES",
        value_delimiter = ','
    )]
    pub engine_sources: Vec<AllowedSource>,
}

impl Engine {
    pub fn sources(&self) -> Vec<Source> {
        self.engine_sources
            .iter()
            .map(|allowed| allowed.source())
            .collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AllowedSource {
    /// Files in the folder of the engine's data.
    File,
    /// HTTP servers.
    Url,
    /// Buckets of S3 and what speaks like it.
    S3,
    /// Other ClickHouse servers.
    Remote,
}

impl AllowedSource {
    fn source(self) -> Source {
        match self {
            Self::File => Source::File,
            Self::Url => Source::Url,
            Self::S3 => Source::S3,
            Self::Remote => Source::Remote,
        }
    }
}

/// The passwords of the engine's users: `UNJANK_ENGINE_PASSWORD` for `admin`, who exists only with a password, and
/// `UNJANK_ENGINE_WRITER_PASSWORD` and `UNJANK_ENGINE_READER_PASSWORD` instead of random ones.
pub fn engine_passwords() -> EnginePasswords {
    EnginePasswords {
        admin: password("UNJANK_ENGINE_PASSWORD"),
        writer: password("UNJANK_ENGINE_WRITER_PASSWORD"),
        reader: password("UNJANK_ENGINE_READER_PASSWORD"),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "other users of the machine see arguments, so these are no flags"
)]
fn password(variable: &str) -> Option<String> {
    std::env::var(variable)
        .ok()
        .filter(|password| !password.is_empty())
}
