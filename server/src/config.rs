//! The settings: each is a flag, an environment variable and a line of a TOML file. They are read once, here.
//!
//! Precedence: flag, environment, file, default. The doc comments are the `--help` texts and the reference.

mod bucket;
mod byte_count;
mod cluster;
mod engine;
mod notifications;
mod oidc;
mod retention;
mod sources;
mod symbols;
mod web;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::FalseyValueParser;
use unjank_protocol::Timestamp;

pub use self::bucket::bucket_options;
pub(crate) use self::byte_count::{bytes, bytes_in};
pub use self::cluster::Cluster;
pub use self::engine::{AllowedSource, Engine, engine_passwords};
pub use self::notifications::Notifications;
pub use self::oidc::Oidc;
pub use self::retention::Keep;
pub use self::sources::{parse, unknown_variables};
pub use self::symbols::Symbols;
pub use self::web::Web;

use unjank_foundation::clock::{Clock, UnixTime};
use unjank_foundation::secret::Secret;

use crate::access::IngestKeys;

const DATA_DIR: &str = "data";

/// Settings shared by all commands.
#[derive(Args, Clone, Debug)]
pub struct Shared {
    /// A TOML file with settings, named like the flags without the leading dashes: `data-dir = "/var/lib/unjank"`.
    #[arg(long, env = "UNJANK_CONFIG", value_name = "FILE", global = true)]
    pub config: Option<PathBuf>,

    /// The folder for all data on this machine: ingest log, dead letters, embedded engine.
    #[arg(
        long,
        env = "UNJANK_DATA_DIR",
        value_name = "DIR",
        default_value = DATA_DIR,
        global = true
    )]
    pub data_dir: PathBuf,

    /// The log filter: a level, or directives such as `info,unjank_server::store=debug`.
    #[arg(
        long,
        env = "UNJANK_LOG",
        value_name = "FILTER",
        default_value = "info,h2=error",
        global = true
    )]
    pub log: String,

    /// Log plain text instead of JSON. This is the default if standard error is a terminal. In the environment: `1`, or `0` for JSON.
    #[arg(long, env = "UNJANK_LOG_PLAIN", value_parser = FalseyValueParser::new(), global = true)]
    pub log_plain: bool,

    /// The HTTP address of ClickHouse, such as <http://clickhouse:8123>. Unset: the embedded engine in the data folder.
    #[arg(long, env = "UNJANK_CLICKHOUSE_URL", value_name = "URL", global = true)]
    pub clickhouse_url: Option<String>,

    /// The ClickHouse user.
    #[arg(
        long,
        env = "UNJANK_CLICKHOUSE_USER",
        value_name = "NAME",
        default_value = "default",
        global = true
    )]
    pub clickhouse_user: String,

    /// The ClickHouse user's password.
    #[arg(
        long,
        env = "UNJANK_CLICKHOUSE_PASSWORD",
        value_name = "SECRET",
        default_value = "",
        hide_env_values = true,
        hide_default_value = true,
        global = true
    )]
    pub clickhouse_password: Secret,

    /// The ClickHouse database. It is created if it does not exist.
    #[arg(long, env = "UNJANK_CLICKHOUSE_DATABASE", value_name = "NAME", default_value = "unjank", value_parser = database_name, global = true)]
    pub clickhouse_database: String,

    #[command(flatten)]
    pub cluster: Cluster,

    /// The control database with projects, keys, users and configurations: `sqlite:FILE`, or
    /// `postgres://user:password@host/database` for several servers. Unset: SQLite in `control.sqlite` in the data folder.
    #[arg(
        long,
        env = "UNJANK_DATABASE_URL",
        value_name = "URL",
        hide_env_values = true,
        global = true
    )]
    pub database_url: Option<Secret>,

    /// The secret of the installation, at least 32 characters, the same for all servers on one control database. It signs sessions
    /// and encrypts stored secrets. Unset: generated at the first start and stored in `secret` in the data folder.
    #[arg(
        long,
        env = "UNJANK_SECRET",
        value_name = "SECRET",
        hide_env_values = true,
        global = true
    )]
    pub secret: Option<Secret>,

    /// The library of the embedded engine (libchdb.so). Unset: downloaded once with npm and cached.
    #[arg(
        long,
        env = "UNJANK_ENGINE_LIBRARY",
        value_name = "FILE",
        global = true
    )]
    pub engine_library: Option<PathBuf>,

    /// The program `clickhouse`, to use in place of the embedded engine's library. Unset: the library, or `clickhouse` on the PATH
    /// if there is no library.
    #[arg(long, env = "UNJANK_ENGINE_BINARY", value_name = "FILE", global = true)]
    pub engine_binary: Option<PathBuf>,

    /// The program `unjank` for separate processes: the embedded engine and the parser of symbol files. Unset: this one.
    #[arg(
        long,
        env = "UNJANK_ENGINE_PROGRAM",
        value_name = "FILE",
        global = true,
        hide = true
    )]
    pub engine_program: Option<PathBuf>,

    /// The cache folder for downloaded libraries. Unset: `unjank/engine` in the user's cache folder.
    #[arg(long, env = "UNJANK_CACHE_DIR", value_name = "DIR", global = true)]
    pub cache_dir: Option<PathBuf>,

    /// The time that a command takes for now, for tests. Unset: the machine's. Servers always use the machine's.
    #[arg(long, value_name = "TIME", value_parser = timestamp, global = true, hide = true)]
    pub now: Option<Timestamp>,
}

fn timestamp(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "must be a time such as 2026-11-20T00:00:00Z".to_owned())
}

impl Shared {
    /// Returns the time of a command.
    pub fn now(&self) -> UnixTime {
        self.now
            .map_or_else(|| Clock::system().now(), UnixTime::from)
    }

    /// Returns the program for separate processes.
    pub fn engine_program(&self) -> std::io::Result<PathBuf> {
        match &self.engine_program {
            Some(program) => Ok(program.clone()),
            None => std::env::current_exe(),
        }
    }
}

/// Settings of `unjank serve`.
#[derive(Args, Clone, Debug)]
pub struct Serve {
    /// The public address, for devices and users.
    #[arg(
        long,
        env = "UNJANK_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8080"
    )]
    pub listen: SocketAddr,

    /// The address for operators, with metrics and health. Do not expose it to the internet.
    #[arg(
        long,
        env = "UNJANK_ADMIN_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:9090"
    )]
    pub admin_listen: SocketAddr,

    #[command(flatten)]
    pub web: Web,

    /// Ingest keys as `key=app_id,other_key=app_id`, separated by commas; `key=*` allows any app. Name a key several times to allow several
    /// apps: `key=app_id,key=other_app_id`. Repeatable.
    #[arg(
        long,
        env = "UNJANK_INGEST_KEYS",
        value_name = "KEYS",
        default_value = "",
        hide_default_value = true,
        hide_env_values = true
    )]
    pub ingest_keys: Vec<IngestKeys>,

    /// The project of the ingest keys.
    #[arg(long, env = "UNJANK_PROJECT", value_name = "NAME", default_value = "default", value_parser = project_name)]
    pub project: String,

    /// Classification rules for stacks (TOML), for projects without saved rules. Unset: the built-in rules, see `unjank classify
    /// --print-rules`.
    #[arg(long, env = "UNJANK_RULES", value_name = "FILE")]
    pub rules: Option<PathBuf>,

    /// How often to look for stored stacks that are not classified by their project's latest rules, in milliseconds. A server that
    /// has not received the latest rules may store such stacks.
    #[arg(long, env = "UNJANK_LATE_STACKS_INTERVAL_MS", value_name = "MS", default_value_t = 600_000, value_parser = clap::value_parser!(u64).range(10..=86_400_000))]
    pub late_stacks_interval_ms: u64,

    /// How often to check that acknowledged events are stored and rolled up, in milliseconds. `unjank rollups check` runs the same
    /// check once.
    #[arg(long, env = "UNJANK_BOOKS_INTERVAL_MS", value_name = "MS", default_value_t = 600_000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub books_interval_ms: u64,

    /// Whether to rebuild roll-ups that differ from their raw rows, each hour at most once an hour. `unjank rollups rebuild` does
    /// the same manually.
    #[arg(
        long,
        env = "UNJANK_BOOKS_REBUILD",
        value_name = "ON|OFF",
        value_enum,
        ignore_case = true,
        default_value = "on"
    )]
    pub books_rebuild: Switch,

    /// How often alert rules are evaluated, in milliseconds.
    #[arg(long, env = "UNJANK_ALERTS_INTERVAL_MS", value_name = "MS", default_value_t = 60_000, value_parser = clap::value_parser!(u64).range(10..=3_600_000))]
    pub alerts_interval_ms: u64,

    /// How long other servers wait before they take over from a server that evaluated alert rules and died, in milliseconds.
    #[arg(long, env = "UNJANK_ALERTS_LEASE_MS", value_name = "MS", default_value_t = 90_000, value_parser = clap::value_parser!(u64).range(500..=3_600_000))]
    pub alerts_lease_ms: u64,

    /// How often to send events to ClickHouse when few arrive, in milliseconds. After a pause, the first events are sent
    /// immediately.
    #[arg(long, env = "UNJANK_FLUSH_INTERVAL_MS", value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub flush_interval_ms: u64,

    /// The size limit of the ingest log on disk, in bytes. When it is full, devices get 503 and retry later.
    #[arg(long, env = "UNJANK_LOG_MAX_BYTES", value_name = "BYTES", default_value_t = 8 << 30, value_parser = bytes_in::<{ 1 << 20 }, { u64::MAX }>)]
    pub log_max_bytes: u64,

    /// The minimum free space on the disk of the data folder, in bytes. Below it, batches are rejected (503), because ClickHouse needs
    /// space to drain the log.
    #[arg(long, env = "UNJANK_MIN_FREE_BYTES", value_name = "BYTES", default_value_t = 256 << 20, value_parser = bytes)]
    pub min_free_bytes: u64,

    /// The size limit of the dead-letter folder on disk, in bytes.
    #[arg(long, env = "UNJANK_DEAD_LETTER_MAX_BYTES", value_name = "BYTES", default_value_t = 1 << 30, value_parser = bytes)]
    pub dead_letter_max_bytes: u64,

    /// The address of the embedded engine's HTTP interface, for Grafana and other clients. Port 0 picks a free port, which
    /// `engine.json` in the data folder contains. Keep it on loopback.
    #[arg(
        long,
        env = "UNJANK_ENGINE_LISTEN",
        value_name = "ADDRESS",
        default_value = "127.0.0.1:0"
    )]
    pub engine_listen: SocketAddr,

    /// The memory limit of the embedded engine, in bytes.
    #[arg(long, env = "UNJANK_ENGINE_MAX_MEMORY_BYTES", value_name = "BYTES", default_value_t = 4 << 30, value_parser = bytes)]
    pub engine_max_memory_bytes: u64,

    /// The nice level of the embedded engine, added to the server's: by default, devices are answered before parts are merged.
    #[arg(long, env = "UNJANK_ENGINE_NICE", value_name = "LEVEL", default_value_t = 10, value_parser = clap::value_parser!(i32).range(0..=19))]
    pub engine_nice: i32,

    /// The maximum size of a request body as sent, in bytes.
    #[arg(long, env = "UNJANK_MAX_COMPRESSED_BYTES", value_name = "BYTES", default_value_t = 1 << 20, value_parser = bytes_in::<1, { 64 << 20 }>)]
    pub max_compressed_bytes: u64,

    /// The maximum size of a request body after decompression, in bytes.
    #[arg(long, env = "UNJANK_MAX_DECOMPRESSED_BYTES", value_name = "BYTES", default_value_t = 10 << 20, value_parser = bytes_in::<1, { 256 << 20 }>)]
    pub max_decompressed_bytes: u64,

    /// The maximum number of events in a batch.
    #[arg(long, env = "UNJANK_MAX_BATCH_EVENTS", value_name = "EVENTS", default_value_t = unjank_protocol::Limits::EVENTS as u64, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max_batch_events: u64,

    /// The maximum number of distinct span names, functions and stacks of a project in an hour. Half of it applies to pages and
    /// device models, a tenth to other names such as versions. Names above the limit are stored as `(other)` and counted on Ingest
    /// health.
    #[arg(long, env = "UNJANK_MAX_NAMES_PER_HOUR", value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max_names_per_hour: u64,

    /// The maximum number of connections. A quarter of it applies to a single address, unless it is a trusted proxy. The limit is
    /// lower if the system allows fewer open files.
    #[arg(long, env = "UNJANK_MAX_CONNECTIONS", value_name = "COUNT", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub max_connections: u64,

    /// The memory limit for request bodies in flight, in bytes. Requests above it get 503 and must be retried later.
    #[arg(long, env = "UNJANK_MAX_BODY_MEMORY_BYTES", value_name = "BYTES", default_value_t = 64 << 20, value_parser = bytes_in::<{ 1 << 20 }, { 1 << 40 }>)]
    pub max_body_memory_bytes: u64,

    /// How long a client may take to send its request, in milliseconds, before the server returns 408.
    #[arg(long, env = "UNJANK_BODY_TIMEOUT_MS", value_name = "MS", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(10..=600_000))]
    pub body_timeout_ms: u64,

    /// How long shutdown may drain the ingest log, in milliseconds. The rest is drained at the next start.
    #[arg(long, env = "UNJANK_SHUTDOWN_TIMEOUT_MS", value_name = "MS", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    pub shutdown_timeout_ms: u64,

    #[command(flatten)]
    pub keep: Keep,

    #[command(flatten)]
    pub symbols: Symbols,

    #[command(flatten)]
    pub engine: Engine,

    #[command(flatten)]
    pub notifications: Notifications,

    #[command(flatten)]
    pub oidc: Oidc,
}

impl Serve {
    pub fn ingest_keys(&self) -> IngestKeys {
        self.ingest_keys.iter().cloned().collect()
    }

    pub fn flush_interval(&self) -> Duration {
        Duration::from_millis(self.flush_interval_ms)
    }

    pub fn late_stacks_interval(&self) -> Duration {
        Duration::from_millis(self.late_stacks_interval_ms)
    }

    pub fn books_interval(&self) -> Duration {
        Duration::from_millis(self.books_interval_ms)
    }

    pub fn alerts_interval(&self) -> Duration {
        Duration::from_millis(self.alerts_interval_ms)
    }

    pub fn alerts_lease(&self) -> Duration {
        Duration::from_millis(self.alerts_lease_ms)
    }

    pub fn body_timeout(&self) -> Duration {
        Duration::from_millis(self.body_timeout_ms)
    }

    pub fn shutdown_timeout(&self) -> Duration {
        Duration::from_millis(self.shutdown_timeout_ms)
    }
}

/// A setting that can be turned on or off. Arguments of this type ignore the case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Switch {
    #[value(aliases = ["true", "yes", "1"])]
    On,
    #[value(aliases = ["false", "no", "0"])]
    Off,
}

fn project_name(name: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=63).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('-') {
        return Ok(name.to_owned());
    }
    Err(
        "a project name must have 1 to 63 lower-case letters, digits and dashes, such as `my-shop`"
            .to_owned(),
    )
}

fn database_name(name: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(name.to_owned());
    }
    Err("a database name must have 1 to 64 letters, digits, dashes and underscores".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    /// As on the command line: of flags that are no lists, the last one holds.
    #[derive(Parser)]
    #[command(args_override_self = true)]
    struct Line {
        #[command(flatten)]
        serve: Serve,
    }

    fn parsed(line: &str) -> Serve {
        let arguments = std::iter::once("unjank").chain(line.split(' '));
        Line::try_parse_from(arguments).unwrap().serve
    }

    #[test]
    fn lists_may_be_given_with_commas_and_with_several_flags() {
        let once = parsed(
            "--ingest-keys a=*,b=com.b,b=com.c --web-origins https://a.example,https://b.example \
             --trusted-proxies 10.0.0.0/8,::1 --notify-allow a.internal,10.0.0.5",
        );
        let repeated = parsed(
            "--ingest-keys a=* --web-origins https://a.example --trusted-proxies 10.0.0.0/8 --notify-allow a.internal \
             --ingest-keys b=com.b,b=com.c --web-origins https://b.example --trusted-proxies ::1 --notify-allow 10.0.0.5",
        );
        assert_eq!(repeated.ingest_keys(), once.ingest_keys());
        assert_eq!(repeated.ingest_keys().seeds().len(), 2);
        assert_eq!(repeated.web.web_origins(), once.web.web_origins());
        assert_eq!(repeated.web.trusted_proxies(), once.web.trusted_proxies());
        let allowed = repeated.notifications.notify_allow();
        assert_eq!(allowed, once.notifications.notify_allow());
        assert!(parsed("--project shop").ingest_keys().is_empty());
    }
}
