//! The example beside a real server: what it says it did is what arrives.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// `target/debug`, where `cargo build --workspace` and `cargo test` put programs.
fn programs() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    this.parent().unwrap().parent().unwrap().to_owned()
}

fn program(name: &str) -> PathBuf {
    let program = programs().join(name);
    assert!(
        program.exists(),
        "{} is missing: `make test` builds it, or `cargo build --workspace`",
        program.display()
    );
    program
}

struct Server {
    child: Child,
    url: String,
    admin_url: String,
    folder: tempfile::TempDir,
}

impl Server {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let rules = folder.path().join("rules.toml");
        std::fs::write(&rules, RULES).unwrap();
        let free = || {
            TcpListener::bind("127.0.0.1:0")
                .unwrap()
                .local_addr()
                .unwrap()
        };
        let (listen, admin) = (free(), free());
        let log = std::fs::File::create(folder.path().join("server.log")).unwrap();
        let child = Command::new(program("unjank"))
            .arg("serve")
            .env("UNJANK_LISTEN", listen.to_string())
            .env("UNJANK_ADMIN_LISTEN", admin.to_string())
            .env("UNJANK_DATA_DIR", folder.path().join("data"))
            .env("UNJANK_INGEST_KEYS", "demo=com.example.shop")
            .env("UNJANK_RULES", rules)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let server = Self {
            child,
            url: format!("http://{listen}"),
            admin_url: format!("http://{admin}"),
            folder,
        };
        server.wait("the server is ready", || {
            let answer = ureq::get(format!("{}/readyz", server.url)).call();
            answer.is_ok_and(|mut answer| {
                answer
                    .body_mut()
                    .read_to_string()
                    .unwrap()
                    .contains("\"ready\"")
            })
        });
        server
    }

    fn wait(&self, what: &str, done: impl Fn() -> bool) {
        let begun = Instant::now();
        while !done() {
            assert!(
                // On a fresh machine the engine's library is fetched first.
                begun.elapsed() < Duration::from_secs(600),
                "{what}: {}",
                self.log()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn is_drained(&self) -> bool {
        let answer = ureq::get(format!("{}/metrics", self.admin_url)).call();
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

    fn command(&self, arguments: &[&str]) -> String {
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

    fn sql(&self, query: &str) -> String {
        self.command(&["sql", query])
    }

    fn configure(&self, configuration: &Value) {
        let token = self.command(&["token", "create", "--name", "test", "--role", "editor"]);
        let body = json!({"expected_revision": 0, "configuration": configuration});
        let url = format!("{}/api/v1/projects/default/config", self.url);
        let request = ureq::put(url).header("authorization", format!("Bearer {token}"));
        let saved = request
            .header("content-type", "application/json")
            .send(body.to_string());
        assert_eq!(saved.unwrap().status(), 201);
        // A change is served within a second, and the shop asks once.
        self.wait("the configuration is served", || {
            let url = format!("{}/v1/config", self.url);
            let answer = ureq::get(url).header("authorization", "Bearer demo").call();
            let text = answer.unwrap().body_mut().read_to_string().unwrap();
            serde_json::from_str::<Value>(&text).unwrap()["revision"] == 1
        });
    }

    fn shop(&self, data_dir: &Path) -> Value {
        let output = Command::new(program("examples/shop"))
            .args(["--server", &self.url, "--key", "demo", "--data-dir"])
            .arg(data_dir)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its engine ends with it.
        self.child.kill().unwrap_or_default();
        self.child.wait().map(drop).unwrap_or_default();
    }
}

/// Whose code it is, and what blocks main threads in it.
const RULES: &str = r#"
version = 2
built_in = true

[[rule]]
match = "serde_json::"
means = "category"
category = "JSON on main thread"

[[rule]]
match = "sqlx_"
means = "category"
category = "database on main thread"

[[rule]]
match = "tokio::"
means = "ignore"

[[rule]]
match = "shop::"
means = "in_app"
"#;

fn within(row: &str, truth: &[&Value], tolerance: i64) {
    let values: Vec<i64> = row
        .split('\t')
        .map(|value| value.parse().expect(row))
        .collect();
    for (value, truth) in values.iter().zip(truth) {
        let truth = truth.as_i64().unwrap();
        assert!(
            (value - truth).abs() <= tolerance,
            "{row:?} is not {truth} ± {tolerance}"
        );
    }
}

#[test]
fn what_the_shop_did_is_what_arrives() {
    let server = Server::start();
    server.configure(&json!({"base": {
        "pages": [{"page": "MainActivity", "api": ["/home/head", "/poi/filter"]}],
        "traffic": {"sources": [{"source": "api", "hosts": ["*.example.com"]}]},
    }}));
    let data = server.folder.path().join("shop");
    let truth = server.shop(&data);
    assert_eq!(truth["sent"], true, "{truth}");
    server.wait("the log is drained", || server.is_drained());

    let page = server.sql("SELECT t1_ms, t2_ms, t3_ms, total_ms FROM page_loads");
    let parts = ["t1_ms", "t2_ms", "t3_ms", "total_ms"].map(|part| &truth["page"][part]);
    within(&page, &parts, 5);

    let frames = server.sql("SELECT sum(frames_drawn), sum(frames_dropped) FROM frame_windows WHERE page = 'FeedActivity'");
    within(
        &frames,
        &[&truth["frames"]["drawn"], &truth["frames"]["dropped"]],
        0,
    );

    let traffic = server.sql("SELECT sum(tx_bytes), sum(rx_bytes), sum(requests) FROM traffic WHERE source = 'api' AND network = 'wifi'");
    let bytes = ["tx_bytes", "rx_bytes", "requests"].map(|part| &truth["traffic"][part]);
    within(&traffic, &bytes, 0);

    let stalls = server.sql(
        "SELECT culprit, duration_ms, page, length(run_log.message) > 0 FROM janks \
         INNER JOIN stack_class_current AS class ON class.stack_hash = janks.stack_hash AND class.project = janks.project ORDER BY start",
    );
    let stalls: Vec<&str> = stalls.lines().collect();
    assert_eq!(stalls.len(), 3, "{stalls:?}");
    for (row, truth) in stalls.iter().zip(truth["stalls"].as_array().unwrap()) {
        let columns: Vec<&str> = row.split('\t').collect();
        let culprit = truth["culprit"].as_str().unwrap();
        assert_eq!(columns[0], format!("shop::stalls::{culprit}"), "{row}");
        within(columns[1], &[&truth["duration_ms"]], 20);
        assert_eq!(columns[2..], ["CartActivity", "1"]);
    }
    assert_eq!(
        server.sql("SELECT count() FROM app_starts WHERE kind = 'cold'"),
        "1"
    );
    assert_eq!(
        server.sql("SELECT uniqExact(config_revision) FROM janks WHERE config_revision = 1"),
        "1"
    );
}
