//! Health, readiness and metrics, for operators.

use crate::server::{Answer, Server, spans};
use crate::wait;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_its_store_is_ready() {
    let server = Server::start().await;
    server.send(&spans(1)).await;
    server.drained().await;
    for base in [&server.url, &server.admin_url] {
        let ready = Answer::of(
            server
                .client
                .get(format!("{base}/readyz"))
                .send()
                .await
                .unwrap(),
        )
        .await;
        assert_eq!(
            (
                ready.status.as_u16(),
                ready.body["status"].as_str().unwrap().to_owned()
            ),
            (200, "ready".to_owned())
        );
        assert_eq!(
            server
                .client
                .get(format!("{base}/healthz"))
                .send()
                .await
                .unwrap()
                .status(),
            200
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_queries_clickhouse_once_a_second_and_gives_the_reason_to_operators_only() {
    let server = Server::start().await;
    server.ready().await;
    let asked = "SELECT count() FROM system.query_log WHERE type = 'QueryFinish' AND query LIKE 'SELECT 1%' \
                 AND current_database = currentDatabase()";
    let count = async || {
        server.query("SYSTEM FLUSH LOGS").await;
        server.query(asked).await.parse::<u64>().unwrap()
    };
    let before = count().await;
    for _ in 0..200 {
        server.readiness().await;
    }
    let more = count().await - before;
    assert!(more < 60, "{more}");

    let server = Server::away(&[]).await;
    let reason = async |url: &str| {
        let answer = server.client.get(format!("{url}/readyz")).send().await;
        Answer::of(answer.unwrap()).await.body["clickhouse"].to_string()
    };
    assert_eq!(reason(&server.url).await, "\"away\"");
    assert!(reason(&server.admin_url).await.len() > 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_for_operators_only_and_count_every_event() {
    let server = Server::start().await;
    let mut batch = spans(3);
    batch["spans"][0]["duration_us"] = serde_json::json!(-1);
    server.send(&batch).await;
    server.send(&batch).await;
    server.send_bytes("{").await;
    assert_eq!(
        server
            .client
            .get(format!("{}/metrics", server.url))
            .send()
            .await
            .unwrap()
            .status(),
        404
    );
    let metrics = server.metrics().await;
    let ours: Vec<_> = metrics
        .lines()
        .filter(|line| {
            line.starts_with("unjank_ingest_requests_total")
                || line.starts_with("unjank_ingest_events_total")
        })
        .collect();
    insta::assert_snapshot!(ours.join("\n"), @r#"
    unjank_ingest_events_total{outcome="duplicate",signal="spans"} 3
    unjank_ingest_events_total{outcome="rejected",signal="spans"} 1
    unjank_ingest_events_total{outcome="stored",signal="spans"} 2
    unjank_ingest_requests_total{code="accepted",status="202"} 1
    unjank_ingest_requests_total{code="duplicate",status="202"} 1
    unjank_ingest_requests_total{code="invalid_json",status="400"} 1
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_batches_are_counted_in_the_store() {
    let mut server = Server::start().await;
    server.send_bytes("{").await;
    server.end().await;
    assert_eq!(
        server
            .query("SELECT signal, outcome, reason, sum(count) FROM outcomes WHERE project != '' GROUP BY ALL")
            .await,
        "batch\trejected\tinvalid_json\t1"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_are_neither_sniffed_nor_cached() {
    let server = Server::start().await;
    let token = server.token("admin").await;
    let get = async |path: &str| {
        let request = server.client.get(format!("{}{path}", server.url));
        request.bearer_auth(&token).send().await.unwrap()
    };
    for path in [
        "/api/v1/tokens",
        "/healthz",
        "/openapi.json",
        "/",
        "/api/v1/nothing",
    ] {
        let answer = get(path).await;
        assert_eq!(
            answer.headers()["x-content-type-options"],
            "nosniff",
            "{path}"
        );
        if path.starts_with("/api/v1") {
            assert_eq!(answer.headers()["cache-control"], "no-store", "{path}");
        }
    }
    let new = serde_json::json!({"name": "of a test"});
    let path = format!("{}/api/v1/projects/default/keys", server.url);
    let made = server.client.post(path).bearer_auth(&token).json(&new);
    let made = made.send().await.unwrap();
    assert_eq!(
        (made.status().as_u16(), &made.headers()["cache-control"]),
        (201, &"no-store".parse().unwrap())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_use_of_keys_and_tokens_is_shown() {
    let server = Server::start().await;
    let token = server.token("admin").await;
    server.send(&spans(1)).await;
    let list = async |path: &str, of: &str| {
        let path = format!("/api/v1{path}");
        let answer = server.call(&token, reqwest::Method::GET, &path, None).await;
        answer.body[of].as_array().unwrap().clone()
    };
    let tokens = list("/tokens?of_projects=true", "tokens").await;
    assert_eq!(tokens[0]["last_used_at"], crate::server::NOW);
    // Any change makes the server reload its keys.
    let new = serde_json::json!({"name": "another"});
    let path = "/api/v1/projects/default/keys";
    server
        .call(&token, reqwest::Method::POST, path, Some(new))
        .await;
    let is_used = |key: &serde_json::Value| key["last_used_at"] == crate::server::NOW;
    let mut keys = Vec::new();
    wait::until("the use of the key is shown", async || {
        keys = list("/projects/default/keys", "keys").await;
        keys.iter().any(is_used)
    })
    .await;
    assert!(keys.iter().any(|key| key["last_used_at"].is_null()));
}

/// Returns what a server that cannot start writes to its log.
fn log_of(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mut child = std::process::Command::new(crate::engine::UNJANK)
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--clickhouse-url",
            "http://127.0.0.1:9",
        ])
        .args(["--retention-days", "1", "--data-dir"])
        .arg(folder.path())
        .args(arguments)
        .env_remove("UNJANK_LOG_PLAIN")
        .envs(environment.iter().copied())
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stderr = child.stderr.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stderr), &mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    line
}

#[test]
fn logs_are_plain_on_request_and_have_no_colours_outside_a_terminal() {
    let settings = include_str!("../../../docs/reference/settings.md").split('`');
    let variables = settings.filter(|code| code.starts_with("UNJANK_"));
    let empty: Vec<_> = variables.map(|name| (name, "")).collect();
    assert!(empty.len() > 50, "{empty:?}");
    for (arguments, environment, is_plain) in [
        (&["--log-plain"][..], &[][..], true),
        (&[], &[("UNJANK_LOG_PLAIN", "1")], true),
        (&[], &[("UNJANK_LOG_PLAIN", "yes")], true),
        (&[], &[("UNJANK_LOG_PLAIN", "true")], true),
        (&[], &[("UNJANK_LOG_PLAIN", "0")], false),
        (&[], &empty[..], false),
        (&["--log-plain"], &empty[..], true),
        (&["--books-rebuild", "true"], &[], false),
        (&[], &[("UNJANK_BOOKS_REBUILD", "OFF")], false),
        (&[], &[], false),
    ] {
        let log = log_of(arguments, environment);
        assert!(!log.contains('\u{1b}'), "{log:?}");
        assert_eq!(log.starts_with('{'), !is_plain, "{environment:?}: {log:?}");
        assert!(
            log.contains("INFO") || log.contains("WARN"),
            "{environment:?}: {log:?}"
        );
    }
}

#[test]
fn variables_that_are_no_settings_are_named_without_their_values() {
    let misspelled = [("UNJANK_LOG_MAX_BYTE", "a-value")];
    let log = log_of(&[], &misspelled);
    assert!(log.contains("UNJANK_LOG_MAX_BYTE"), "{log}");
    assert!(!log.contains("a-value"), "{log}");
}

/// A server that ends right after it has looked at its data folder, because its rules do not exist.
fn log_on(folder: &std::path::Path) -> String {
    let output = std::process::Command::new(crate::engine::UNJANK)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(["--admin-listen", "127.0.0.1:0", "--clickhouse-url"])
        .args([
            "http://127.0.0.1:9",
            "--rules",
            "/nonexistent",
            "--data-dir",
        ])
        .arg(folder)
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn lost_files_of_a_used_data_folder_and_one_that_others_can_read_are_reported() {
    let control = "the control database is missing";
    let secret = "the secret of the installation is missing";
    let open = "other users of this machine";
    for (files, mode, expected) in [
        (&[][..], 0o700, &[][..]),
        (&["drain.json"], 0o700, &[control, secret]),
        (&["drain.json", "secret"], 0o700, &[control]),
        // Commands make it before the first start.
        (&["control.sqlite"], 0o700, &[]),
        (&["control.sqlite", "drain.json"], 0o755, &[secret, open]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        std::fs::set_permissions(
            folder.path(),
            std::os::unix::fs::PermissionsExt::from_mode(mode),
        )
        .unwrap();
        let log = log_on(folder.path());
        for text in [control, secret, open] {
            assert_eq!(
                log.contains(text),
                expected.contains(&text),
                "{files:?}: {log}"
            );
        }
    }
}
