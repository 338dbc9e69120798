//! The engine and the PostgreSQL that all tests share. `with-servers.sh` starts and ends them. `make test` runs all tests inside it;
//! without that, this starts it for the tests of one process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::Client;
use uuid::Uuid;

pub(crate) const UNJANK: &str = env!("CARGO_BIN_EXE_unjank");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// How long a test waits for the deletion of its database.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) struct Servers {
    /// The address of the engine.
    pub(crate) url: String,
    pub(crate) postgres_port: u16,
    /// Keeps the script's standard input open. The servers end when it is closed.
    _script: Option<Child>,
}

/// Tests connect as the administrator, since each creates its own database. `processes` tests the rights that a server needs, with
/// separate users.
pub(crate) const USER: &str = "admin";
pub(crate) const PASSWORD: &str = "test";

pub(crate) fn engine() -> &'static Servers {
    static SERVERS: OnceLock<Servers> = OnceLock::new();
    let given = |name: &str| std::env::var_os(name)?.into_string().ok();
    SERVERS.get_or_init(|| {
        let servers = (given("UNJANK_TEST_ENGINE"), given("UNJANK_TEST_POSTGRES"));
        match servers {
            (Some(url), Some(port)) => Servers::at(url, &port, None),
            _ => start(),
        }
    })
}

impl Servers {
    fn at(url: String, port: &str, script: Option<Child>) -> Self {
        let postgres_port = port.parse().expect("a port");
        Self {
            url,
            postgres_port,
            _script: script,
        }
    }
}

fn start() -> Servers {
    let mut script = Command::new("sh")
        .arg(format!("{ROOT}/server/tests/with-servers.sh"))
        .args([UNJANK, "sh", "-c"])
        .arg("echo $UNJANK_TEST_ENGINE; echo $UNJANK_TEST_POSTGRES; cat > /dev/null")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(script.stdout.take().unwrap()).lines();
    let mut line = || lines.next().expect("the output above says why").unwrap();
    let (url, port) = (line(), line());
    Servers::at(url, &port, Some(script))
}

/// Returns a name for a database that no other test has.
pub(crate) fn unique_name() -> String {
    format!("test_{}", Uuid::new_v4().simple())
}

/// Returns the flags with which the program uses a database of the engine.
pub(crate) fn clickhouse_flags(database: &str) -> [&str; 8] {
    [
        "--clickhouse-url",
        engine().url.as_str(),
        "--clickhouse-user",
        USER,
        "--clickhouse-password",
        PASSWORD,
        "--clickhouse-database",
        database,
    ]
}

/// A database of the engine. It is deleted with this value, so that the engine does not grow with every test.
pub(crate) struct Database(String);

impl Database {
    /// Takes a name that no other test has.
    pub(crate) fn new() -> Self {
        Self(unique_name())
    }

    /// The database of this name.
    pub(crate) fn of(name: &str) -> Self {
        Self(name.to_owned())
    }

    pub(crate) fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE IF EXISTS `{}` SYNC", self.0);
        let dropping = async {
            let request = Client::new().post(&engine().url).body(sql);
            let request = request.basic_auth(USER, Some(PASSWORD)).timeout(PATIENCE);
            request.send().await?.error_for_status().map(drop)
        };
        // The runtime of the test cannot wait here.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let dropped = std::thread::spawn(move || runtime.unwrap().block_on(dropping)).join();
        #[expect(clippy::print_stderr, reason = "the test itself need not fail")]
        if !matches!(dropped, Ok(Ok(()))) {
            eprintln!("the database {} stays: {dropped:?}", self.0);
        }
    }
}
