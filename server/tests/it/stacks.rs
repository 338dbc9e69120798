//! Janks: each distinct stack is stored once, with its class.

use serde_json::{Value, json};

use crate::server::{Server, batch};

fn jank(line: u32) -> Value {
    json!({
        "kind": "jank", "start": "2026-11-20T11:59:50Z", "duration_ms": 2300, "thread": "main",
        "stack": [
            {"class": "android.database.sqlite.SQLiteConnection", "function": "nativeExecute", "native": true},
            {"class": "com.example.shop.db.OrderDao", "function": "insert", "file": "OrderDao.java", "line": line},
        ],
    })
}

const RULES: &str = r#"
version = 7

[[rule]]
match = "com.example."
means = "in_app"
owner = "team-orders"

[[rule]]
match = "android.database."
means = "category"
category = "database on main thread"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_is_stored_once_and_classified_by_the_rules() {
    let rules = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(rules.path(), RULES).unwrap();
    let server = Server::with(&["--rules", rules.path().to_str().unwrap()]).await;
    for _ in 0..3 {
        let mut batch = batch();
        batch["janks"] = json!([jank(25), jank(25), jank(26)]);
        assert_eq!(
            server.send(&batch).await.outcome().1,
            "accepted 3 rejected 0"
        );
    }
    assert_eq!(
        server
            .stored("SELECT count(), uniqExact(stack_hash) FROM janks")
            .await,
        "9\t2"
    );
    assert_eq!(server.query("SELECT count() FROM stacks").await, "2");
    // Lines differ, the group does not.
    let classes = "SELECT count(), uniqExact(group_id), any(category), any(culprit), any(owner), any(rules_version) FROM stack_classes";
    assert_eq!(
        server.query(classes).await,
        "2\t1\tdatabase on main thread\tcom.example.shop.db.OrderDao.insert\tteam-orders\t0"
    );
    let joined = "SELECT count() FROM janks JOIN stack_classes USING (project, stack_hash) JOIN stacks USING (project, stack_hash)";
    assert_eq!(server.query(joined).await, "9");
}
