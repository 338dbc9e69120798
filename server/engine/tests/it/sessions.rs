//! Sessions: what they keep, and that they are locked, checked and bounded.

use crate::support::{Engine, Setup, shared, spawn};

#[tokio::test]
async fn a_session_keeps_its_tables_settings_and_database() {
    let engine = shared();
    let session = [("session_id", "keeps")];
    engine
        .ask(&session, "CREATE TEMPORARY TABLE mine (a Int8)")
        .await;
    engine
        .ask(&session, "INSERT INTO mine VALUES (1), (2)")
        .await;
    engine.ask(&session, "SET max_block_size = 777").await;
    engine.ask(&session, "USE system").await;
    let text = "SELECT (SELECT count() FROM mine), getSetting('max_block_size'), currentDatabase()";
    assert_eq!(engine.ask(&session, text).await, "2\t777\tsystem\n");
    assert_eq!(
        engine
            .refusal(&[("session_id", "other")], "SELECT * FROM mine")
            .await
            .0,
        60
    );
    assert_eq!(engine.refusal(&[], "SELECT * FROM mine").await.0, 60);
}

#[tokio::test]
async fn a_requests_settings_do_not_stay_in_its_session() {
    let engine = shared();
    let session = ("session_id", "borrowed");
    engine.ask(&[session], "SET max_block_size = 777").await;
    let text = "SELECT getSetting('max_block_size'), getSetting('max_result_rows'), getSetting('session_timezone')";
    let asked = [
        session,
        ("max_block_size", "888"),
        ("max_result_rows", "9"),
        ("session_timezone", "Asia/Tokyo"),
    ];
    assert_eq!(engine.ask(&asked, text).await, "888\t9\tAsia/Tokyo\n");
    assert_eq!(engine.ask(&[session], text).await, "777\t0\t\n");
    assert_eq!(
        engine.ask(&[session, ("readonly", "2")], "SELECT 1").await,
        "1\n"
    );
    assert_eq!(
        engine
            .refusal(
                &[session, ("readonly", "2")],
                "CREATE TABLE x (a Int8) ENGINE = Memory"
            )
            .await
            .0,
        164
    );
    engine.ask(&[session], "SET max_block_size = 778").await;
}

#[tokio::test]
async fn a_session_runs_one_statement_at_a_time() {
    let engine = shared();
    let session = [("session_id", "busy")];
    let first = engine
        .post(&session)
        .body("SELECT sleepEachRow(1), 'busy session' FROM numbers(2)")
        .send();
    let first = spawn(first);
    engine.until_running("busy session", 1).await;
    assert_eq!(engine.refusal(&session, "SELECT 1").await.0, 373);
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
    assert_eq!(engine.ask(&session, "SELECT 1").await, "1\n");
}

#[tokio::test]
async fn a_session_may_be_checked_closed_and_too_long() {
    let engine = shared();
    assert_eq!(
        engine
            .refusal(
                &[("session_id", "unknown"), ("session_check", "1")],
                "SELECT 1"
            )
            .await
            .0,
        372
    );
    assert_eq!(
        engine
            .refusal(
                &[("session_id", "long"), ("session_timeout", "3601")],
                "SELECT 1"
            )
            .await
            .0,
        374
    );
    engine
        .ask(
            &[("session_id", "closed")],
            "CREATE TEMPORARY TABLE mine (a Int8)",
        )
        .await;
    engine
        .ask(
            &[("session_id", "closed"), ("close_session", "1")],
            "SELECT * FROM mine",
        )
        .await;
    assert_eq!(
        engine
            .refusal(
                &[("session_id", "closed"), ("session_check", "1")],
                "SELECT 1"
            )
            .await
            .0,
        372
    );
    engine
        .ask(
            &[("session_id", "short"), ("session_timeout", "1")],
            "SELECT 1",
        )
        .await;
    crate::support::until(|| async {
        // Asking with a check does not make the session live longer than its second.
        let answer = engine
            .post(&[("session_id", "short2"), ("session_check", "1")])
            .body("SELECT 1")
            .send()
            .await
            .unwrap();
        answer.status() != 200
    })
    .await;
}

#[tokio::test]
async fn the_number_of_sessions_is_bounded() {
    let engine = Engine::start(&Setup {
        max_sessions: 3,
        ..Setup::default()
    })
    .unwrap();
    for id in ["a", "b", "c", "a"] {
        engine.ask(&[("session_id", id)], "SELECT 1").await;
    }
    assert_eq!(
        engine.refusal(&[("session_id", "d")], "SELECT 1").await,
        (202, 503)
    );
    engine
        .ask(&[("session_id", "a"), ("close_session", "1")], "SELECT 1")
        .await;
    engine.ask(&[("session_id", "d")], "SELECT 1").await;
    assert!(engine.end());
}
