//! Servers are killed repeatedly while they evaluate rules: no incident is lost or opened twice.

use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use unjank_foundation::clock::Clock;

use crate::alerts::{slow_checkout, spans};
use crate::engine::{Database, clickhouse_flags};
use crate::processes::{Program, token};

const GROUPS: usize = 8;

/// Two servers on one PostgreSQL and one ClickHouse.
struct Pair {
    settings: Vec<String>,
    folders: [tempfile::TempDir; 2],
    programs: [Program; 2],
    token: String,
    _database: Database,
}

impl Pair {
    async fn start() -> Self {
        let postgres = tokio::task::spawn_blocking(crate::postgres::postgres).await;
        let url = postgres.unwrap().database().await;
        let database = Database::new();
        let settings: Vec<String> = [
            ["serve", "--alerts-interval-ms=20", "--alerts-lease-ms=1000"].as_slice(),
            &["--flush-interval-ms", "10", "--database-url", &url],
            &clickhouse_flags(database.name()),
            &["--secret", "one secret for all servers of this test"],
        ]
        .concat()
        .into_iter()
        .map(str::to_owned)
        .collect();
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let one = run(folders[0].path(), &settings).await;
        let other = run(folders[1].path(), &settings).await;
        let token = token(folders[0].path(), "admin", &["--database-url", &url]);
        Self {
            settings,
            folders,
            programs: [one, other],
            token,
            _database: database,
        }
    }

    /// Kills and restarts the two servers in turn, while the other one continues. Returns how long the restart took.
    async fn kill(&mut self, number: usize) -> Duration {
        let which = number % 2;
        self.programs[which].kill();
        let begun = Instant::now();
        self.programs[which] = run(self.folders[which].path(), &self.settings).await;
        begun.elapsed()
    }

    async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let program = &self.programs[0];
        let url = format!("{}/api/v1/projects/default/{path}", program.listen);
        let request = program.client.request(method, url).bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await.unwrap();
        assert!(
            answer.status().is_success(),
            "{}",
            answer.text().await.unwrap()
        );
        answer.json().await.unwrap()
    }

    async fn incidents(&self) -> Vec<Value> {
        let body = self.call(Method::GET, "incidents", None).await;
        body["incidents"].as_array().unwrap().clone()
    }

    async fn wait(&self, what: &str, holds: impl Fn(&[Value]) -> bool) {
        let waiting = async {
            while !holds(&self.incidents().await) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(120), waiting).await;
        assert!(waited.is_ok(), "{what}: {:#?}", self.incidents().await);
    }

    async fn send(&self, group: usize, durations_ms: &[u64]) {
        let mut batch = spans("4.12.0", durations_ms);
        for span in batch["spans"].as_array_mut().unwrap() {
            span["name"] = json!(format!("group {group}"));
        }
        let sent = self.programs[0].send(&batch).await;
        assert_eq!(sent["rejected"], json!([]));
    }
}

async fn run(folder: &Path, settings: &[String]) -> Program {
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    Program::run(folder, &settings).await
}

fn of_rule<'i>(all: &'i [Value], rule: &Value) -> Vec<&'i Value> {
    all.iter().filter(|one| one["rule"] == rule["id"]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_servers_lose_no_incident_and_open_none_twice() {
    let mut pair = Pair::start().await;
    let (mut at_once, mut patient) = (slow_checkout(), slow_checkout());
    at_once["metric"]["filters"] = json!({});
    patient["metric"]["filters"] = json!({});
    patient["for_minutes"] = json!(1);
    let at_once = pair.call(Method::POST, "alert-rules", Some(&at_once)).await;
    let patient = pair.call(Method::POST, "alert-rules", Some(&patient)).await;
    let began = Clock::system().now();
    for group in 0..GROUPS {
        pair.send(group, &[800; 20]).await;
        tokio::time::sleep(Duration::from_millis(37 * group as u64)).await;
        pair.kill(group).await;
    }
    // One rule waits for a minute, across all of these kills. The other one fires at once.
    pair.wait("the rule without a wait fires", |all| {
        of_rule(all, &at_once).len() == GROUPS
    })
    .await;
    let mut kills = GROUPS;
    let mut started = Duration::ZERO;
    while of_rule(&pair.incidents().await, &patient).len() < GROUPS {
        // On a busy machine, a server that lives no longer than its start evaluates nothing.
        tokio::time::sleep(Duration::from_millis(700) + 2 * started).await;
        started = pair.kill(kills).await;
        kills += 1;
        let waited = Clock::system().now().since(began);
        assert!(
            waited < Duration::from_secs(600),
            "{:#?}",
            pair.incidents().await
        );
    }
    for group in 0..GROUPS {
        pair.send(group, &[100; 1_000]).await;
        pair.kill(kills + group).await;
    }
    let resolved = |all: &[Value]| all.iter().all(|one| one["state"] == "resolved");
    pair.wait("all incidents are resolved", resolved).await;
    let all = pair.incidents().await;
    for rule in [&at_once, &patient] {
        let of_rule = of_rule(&all, rule);
        let groups: std::collections::BTreeSet<_> =
            of_rule.iter().map(|one| one["group"].to_string()).collect();
        assert_eq!(
            (of_rule.len(), groups.len()),
            (GROUPS, GROUPS),
            "{of_rule:#?}"
        );
        assert!(
            of_rule
                .iter()
                .all(|one| one["resolved_because"] == "recovered")
        );
    }
}
