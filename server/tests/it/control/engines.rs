//! Migrations, notifications of changes, broken connections, wrong database URLs and the permissions of the file.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::timeout;
use unjank_database::{Control, ControlError, ErasureKind, JsonText, RuleText};
use unjank_foundation::task::Tasks;
use uuid::Uuid;

use super::place::Place;
use super::{ANN, at, on_both_engines, settings, with_project};
use crate::postgres::postgres;
use crate::wait;

on_both_engines![
    migrations_apply_once_and_data_stays,
    servers_that_start_at_once_all_start,
    subscribers_are_notified_of_a_change_but_not_of_a_refused_one,
    another_handle_is_notified_of_a_change,
];

async fn ticks(changes: &mut watch::Receiver<u64>) -> bool {
    let ticked = timeout(wait::PATIENCE, changes.changed()).await;
    ticked.is_ok_and(|changed| changed.is_ok())
}

async fn migrations_apply_once_and_data_stays(place: Place) {
    with_project(&place.control, "shop").await;
    for _ in 0..2 {
        let again = place.another().await;
        assert_eq!(again.project("shop").await.unwrap().settings.name, "shop");
        again.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_have_no_texts_of_an_erased_project() {
    let place = Place::sqlite().await;
    let control = &place.control;
    with_project(control, "shop").await;
    let mark = Uuid::new_v4().to_string();
    let text = RuleText {
        document: JsonText::new(&json!({"text": mark.repeat(1_000)})),
        name: "a rule".to_owned(),
        enabled: true,
        ends: None,
    };
    let rule = control.create_alert_rule("shop", text, &ANN, at(1));
    rule.await.unwrap();
    let file = place.url.strip_prefix("sqlite:").unwrap();
    let has_mark = || {
        ["", "-wal"].iter().any(|ending| {
            let bytes = std::fs::read(format!("{file}{ending}")).unwrap();
            bytes
                .windows(mark.len())
                .any(|part| part == mark.as_bytes())
        })
    };
    assert!(has_mark());
    let subject = ("shop", ErasureKind::Project, "");
    let erasure = control.request_erasure(subject, &ANN, at(1));
    erasure.await.unwrap();
    let skipped = BTreeSet::new();
    let pass = control.next_pass(at(3), &skipped, at(3)).await.unwrap();
    assert!(control.finish_pass(&pass, at(4)).await.unwrap());
    assert!(!has_mark());
}

async fn servers_that_start_at_once_all_start(place: Place) {
    let fresh = place.fresh_url().await;
    let tasks = Tasks::default();
    let opened = join_all((0..6).map(|_| Control::open(&fresh, &tasks))).await;
    for handle in opened {
        assert!(handle.unwrap().projects().await.unwrap().is_empty());
    }
}

async fn subscribers_are_notified_of_a_change_but_not_of_a_refused_one(place: Place) {
    let control = &place.control;
    let mut changes = control.subscribe();
    changes.mark_unchanged();
    with_project(control, "shop").await;
    assert!(ticks(&mut changes).await);
    control
        .create_project("shop", settings("again"), &ANN, at(1))
        .await
        .unwrap_err();
    assert!(
        timeout(Duration::from_millis(200), changes.changed())
            .await
            .is_err()
    );
}

async fn another_handle_is_notified_of_a_change(place: Place) {
    let another = place.another().await;
    let mut changes = another.subscribe();
    changes.mark_unchanged();
    with_project(&place.control, "shop").await;
    assert!(ticks(&mut changes).await);
    assert_eq!(another.projects().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_postgresql_closed_are_opened_again() {
    let place = Place::postgres().await;
    let mut changes = place.control.subscribe();
    changes.mark_unchanged();
    let end_all = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
         WHERE datname = current_database() AND application_name = 'unjank'";
    place.execute(end_all).await;
    // Changes may have been missed while the connection was closed, so a new connection also notifies subscribers.
    assert!(ticks(&mut changes).await);
    with_project(&place.control, "shop").await;
    assert!(ticks(&mut changes).await);
    assert_eq!(place.control.projects().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_for_a_wrong_url_names_the_fault_but_not_the_password() {
    let server = tokio::task::spawn_blocking(postgres).await.unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = free.local_addr().unwrap().port();
    drop(free);
    let port = server.port;
    for (url, expected) in [
        (
            "mysql://u:hunter2@host/db".to_owned(),
            "sqlite:path or postgres://",
        ),
        ("hunter2".to_owned(), "sqlite:path or postgres://"),
        ("sqlite:".to_owned(), "needs a file"),
        ("sqlite::memory:".to_owned(), "needs a file"),
        (
            "sqlite:/proc/none/control.db".to_owned(),
            "/proc/none/control.db",
        ),
        ("postgres://u:hunter2@host:port/db".to_owned(), "is invalid"),
        (
            format!("postgres://u:hunter2@127.0.0.1:{closed}/db"),
            "refused",
        ),
        (
            format!("postgres://postgres:hunter2@127.0.0.1:{port}/postgres"),
            "password authentication failed",
        ),
        (
            format!("postgres://postgres:test@127.0.0.1:{port}/nowhere"),
            "\"nowhere\" does not exist",
        ),
    ] {
        let Err(error) = Control::open(&url, &Tasks::default()).await else {
            panic!("{url} opens")
        };
        assert!(
            matches!(
                error,
                ControlError::Invalid(_) | ControlError::Unavailable(_)
            ),
            "{error:?}"
        );
        let text = error.to_string();
        assert!(text.contains(expected), "{url}: {text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_for_a_damaged_file_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("control.db");
    let url = format!("sqlite:{}", file.display());
    let tasks = Tasks::default();
    Control::open(&url, &tasks).await.unwrap().close().await;
    let mut broken_part = std::fs::read(&file).unwrap();
    broken_part[4_096..].fill(b'x');
    for damaged in [vec![b'x'; 4_096], broken_part] {
        std::fs::write(&file, damaged).unwrap();
        let Err(error) = Control::open(&url, &tasks).await else {
            panic!("a damaged file opens")
        };
        assert!(matches!(error, ControlError::Damaged(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("from the last backup"), "{text}");
    }
}

/// SQLite does so itself if the disk is full. The database goes on when the cause is gone, without a restart.
#[tokio::test(flavor = "multi_thread")]
async fn changes_work_again_after_sqlite_has_ended_a_transaction_by_itself() {
    let place = Place::sqlite().await;
    place
        .execute(
            "CREATE TRIGGER disk_full BEFORE INSERT ON projects \
             BEGIN SELECT RAISE(ROLLBACK, 'database or disk is full'); END",
        )
        .await;
    for n in 0..3 {
        let error = place
            .control
            .create_project("shop", settings("shop"), &ANN, at(n))
            .await
            .unwrap_err();
        assert!(error.to_string().contains("disk is full"), "{error}");
    }
    place.execute("DROP TRIGGER disk_full").await;
    let mut changes = place.control.subscribe();
    with_project(&place.control, "shop").await;
    // A change by another handle is still noticed.
    changes.mark_unchanged();
    with_project(&place.another().await, "bank").await;
    assert!(ticks(&mut changes).await);
    assert_eq!(place.control.projects().await.unwrap().len(), 2);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_can_read_the_sqlite_files() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::sqlite().await;
    with_project(&place.control, "shop").await;
    let path = place.url.strip_prefix("sqlite:").unwrap();
    for file in [
        path.to_owned(),
        format!("{path}-wal"),
        format!("{path}-shm"),
    ] {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
}
