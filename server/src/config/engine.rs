//! Settings of the embedded engine, shared by `serve` and `engine`.

use std::net::SocketAddr;

use clap::{Args, ValueEnum};
use unjank_engine::Source;

use crate::store::EnginePasswords;

/// The embedded engine.
#[derive(Args, Clone, Debug)]
pub struct Engine {
    /// The address of ClickHouse's native protocol, for `clickhouse-client` and Grafana's native mode. Port 0 picks a free port.
    /// Unset: HTTP only.
    #[arg(long, env = "UNJANK_ENGINE_TCP_LISTEN", value_name = "ADDRESS")]
    pub engine_tcp_listen: Option<SocketAddr>,

    /// Sources outside ClickHouse's own tables that the engine's user `admin` may read and write. Unset: none.
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
    /// Buckets of S3 and compatible services.
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

/// The variables of the passwords of `admin`, which exists only with a password, and of `writer` and `reader`, in place of random passwords.
pub(super) const PASSWORDS: [&str; 3] = [
    "UNJANK_ENGINE_PASSWORD",
    "UNJANK_ENGINE_WRITER_PASSWORD",
    "UNJANK_ENGINE_READER_PASSWORD",
];

/// Reads the passwords of the engine's users.
pub fn engine_passwords() -> EnginePasswords {
    let [admin, writer, reader] = PASSWORDS.map(password);
    EnginePasswords {
        admin,
        writer,
        reader,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "other users of the machine can see arguments, so these are not flags"
)]
fn password(variable: &str) -> Option<String> {
    std::env::var(variable)
        .ok()
        .filter(|password| !password.is_empty())
}
