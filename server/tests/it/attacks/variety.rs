//! Endless new names and stacks.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::server::{NOW, Server, spans};

fn named(names: impl IntoIterator<Item = usize>) -> Value {
    let span = spans(1)["spans"][0].take();
    let named = names.into_iter().map(|name| {
        let mut span = span.clone();
        span["name"] = json!(format!("name-{name}"));
        span
    });
    let mut batch = spans(0);
    batch["spans"] = named.collect();
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn names_beyond_the_limit_are_stored_as_one_and_earlier_names_stay() {
    let server = Server::with(&["--max-names-per-hour", "100"]).await;
    for part in 0..5 {
        let names = (0..1_000).map(|name| part * 1_000 + name);
        assert_eq!(server.send(&named(names)).await.status, 202);
    }
    // Names that came before the attack stay as they are.
    assert_eq!(server.send(&named([7, 8])).await.status, 202);
    let found = "SELECT uniqExact(name), countIf(name = '(other)'), countIf(name = 'name-7'), count() FROM spans";
    assert_eq!(server.stored(found).await, "101\t4900\t2\t5002");
    let counted =
        "SELECT signal, reason, sum(count) FROM outcomes WHERE outcome = 'limited' GROUP BY ALL";
    server.answers(counted, "spans\tspan_name\t4900").await;
    let stored = "SELECT sum(count) FROM outcomes WHERE outcome = 'stored' AND signal = 'spans'";
    server.answers(stored, "5002").await;
    // The next hour begins with no names.
    server.pass(std::time::Duration::from_secs(3_600));
    assert_eq!(server.send(&named([4_000])).await.status, 202);
    let later = "SELECT count() FROM spans WHERE name = 'name-4000'";
    assert_eq!(server.stored(later).await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_beyond_the_limit_are_stored_as_one() {
    let server = Server::with(&["--max-names-per-hour", "50"]).await;
    let start = unjank_protocol::Timestamp::from_micros(NOW);
    let jank = |function: usize| {
        let stack = json!([{"class": "com.example.A", "function": format!("f{function}")}]);
        json!({"start": start, "duration_ms": 900, "stack": stack})
    };
    for _ in 0..2 {
        let mut batch = spans(0);
        batch["janks"] = (0..500).map(jank).collect();
        batch["batch_id"] = json!(Uuid::new_v4());
        assert_eq!(server.send(&batch).await.body["accepted"], 500);
    }
    assert_eq!(server.stored("SELECT count() FROM janks").await, "1000");
    // Stacks that were stored before the limit was reached stay as they are.
    let found =
        "SELECT uniqExact(stack_hash), countIf(has(frames.function, '(other)')) FROM stacks";
    assert_eq!(server.query(found).await, "51\t1");
    let used = "SELECT uniqExact(stack_hash) FROM janks";
    assert_eq!(server.query(used).await, "51");
}
