//! The server's program: starts, stops and queries it.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Returns `target/debug`, where `cargo build --workspace` and `cargo test` put programs.
fn programs() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    this.parent().unwrap().parent().unwrap().to_owned()
}

pub(crate) fn program(name: &str) -> PathBuf {
    let program = programs().join(name);
    assert!(
        program.exists(),
        "{} is missing: build it with `make test` or `cargo build --workspace`",
        program.display()
    );
    program
}

pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) listen: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) folder: tempfile::TempDir,
}

impl Server {
    /// `rules` is the content of a classification rule file.
    pub(crate) fn start(rules: &str) -> Self {
        let mut folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rules.toml"), rules).unwrap();
        let free = || {
            TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
        };
        let mut log = String::new();
        for _ in 0..3 {
            let (listen, admin) = (free(), free());
            let mut server = Self {
                child: Self::serve(folder.path(), listen, admin),
                listen,
                admin,
                folder,
            };
            if server.becomes_ready() {
                return server;
            }
            log = server.log();
            folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join("rules.toml"), rules).unwrap();
        }
        panic!("no server started: {log}")
    }

    /// Starts the program on an existing folder and given ports.
    pub(crate) fn serve(folder: &Path, listen: SocketAddr, admin: SocketAddr) -> Child {
        let log = folder.join("server.log");
        let mut log_options = std::fs::OpenOptions::new();
        let log = log_options.create(true).append(true).open(log).unwrap();
        Command::new(program("unjank"))
            .arg("serve")
            .env("UNJANK_LISTEN", listen.to_string())
            .env("UNJANK_ADMIN_LISTEN", admin.to_string())
            .env("UNJANK_DATA_DIR", folder.join("data"))
            .env("UNJANK_INGEST_KEYS", "demo=com.example.shop")
            .env("UNJANK_RULES", folder.join("rules.toml"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.listen)
    }

    /// Waits until the server answers. Returns `false` if it has ended, which it does if another process has taken its port.
    pub(crate) fn becomes_ready(&mut self) -> bool {
        let begun = Instant::now();
        while !self.is_ready() {
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            // On a new machine, the engine's library is downloaded first.
            assert!(begun.elapsed() < Duration::from_secs(600), "{}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
        true
    }

    fn is_ready(&self) -> bool {
        let answer = ureq::get(format!("{}/readyz", self.url())).call();
        answer.is_ok_and(|mut answer| {
            let body = answer.body_mut().read_to_string();
            body.is_ok_and(|body| body.contains("\"ready\""))
        })
    }

    pub(crate) fn wait(&self, what: &str, done: impl Fn() -> bool) {
        self.wait_for(Duration::from_secs(60), what, done);
    }

    fn wait_for(&self, longest: Duration, what: &str, done: impl Fn() -> bool) {
        let begun = Instant::now();
        while !done() {
            assert!(begun.elapsed() < longest, "{what}: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn is_drained(&self) -> bool {
        let answer = ureq::get(format!("http://{}/metrics", self.admin)).call();
        let metrics = answer.unwrap().body_mut().read_to_string().unwrap();
        metrics
            .lines()
            .any(|line| line == "unjank_log_pending_records 0")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default()
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(program("unjank"));
        let output = command
            .args(arguments)
            .arg("--data-dir")
            .arg(self.data_dir())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    pub(crate) fn sql(&self, query: &str) -> String {
        self.command(&["sql", query])
    }

    pub(crate) fn configure(&self, configuration: &Value) {
        let token = self.command(&["token", "create", "--name", "test", "--role", "editor"]);
        let body = json!({"expected_revision": 0, "configuration": configuration});
        let url = format!("{}/api/v1/projects/default/config", self.url());
        let request = ureq::put(url).header("authorization", format!("Bearer {token}"));
        let saved = request
            .header("content-type", "application/json")
            .send(body.to_string());
        assert_eq!(saved.unwrap().status(), 201);
        // The server serves a change within a second, and the shop polls only once.
        self.wait("waiting for the configuration", || {
            let url = format!("{}/v1/config", self.url());
            let answer = ureq::get(url).header("authorization", "Bearer demo").call();
            let text = answer.unwrap().body_mut().read_to_string().unwrap();
            serde_json::from_str::<Value>(&text).unwrap()["revision"] == 1
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The engine is part of the process.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}
