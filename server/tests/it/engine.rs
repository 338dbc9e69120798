//! The engine and the PostgreSQL that all tests share. `with-servers.sh` starts and ends them. `make test` runs all tests inside it;
//! without that, this starts it for the tests of one process.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

pub(crate) const UNJANK: &str = env!("CARGO_BIN_EXE_unjank");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

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
