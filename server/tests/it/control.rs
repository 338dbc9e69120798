//! The control database: one suite, on SQLite and on a real PostgreSQL.

mod access;
mod documents;
mod engines;
mod erasures;
mod evaluations;
mod federated_identities;
mod groups;
mod incident_handling;
mod people;
pub(crate) mod place;
mod saved_views;
mod symbol_files;

use std::fmt::Debug;
use std::sync::LazyLock;

use unjank_database::{Actor, AuditFilter, Control, ControlError, ProjectSettings, SecretHash};
use unjank_foundation::clock::UnixTime;

/// Runs each test on both engines, with a database of its own.
macro_rules! on_both_engines {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(crate::control::place::Place::sqlite().await).await;
                }
            )*
        }
        mod postgres {
            $(
                #[tokio::test(flavor = "multi_thread")]
                async fn $test() {
                    super::$test(crate::control::place::Place::postgres().await).await;
                }
            )*
        }
    };
}
pub(crate) use on_both_engines;

/// The time `n` seconds after the start of a test.
pub(crate) fn at(n: i64) -> UnixTime {
    UnixTime::from_secs(1_790_000_000 + n)
}

/// The actor of changes for which the actor does not matter.
pub(crate) static ANN: LazyLock<Actor> = LazyLock::new(|| Actor::cli("ann"));

pub(crate) fn hash(secret: &str) -> SecretHash {
    SecretHash::new(secret)
}

pub(crate) fn settings(name: &str) -> ProjectSettings {
    ProjectSettings::named(name)
}

pub(crate) async fn with_project(control: &Control, id: &str) {
    control
        .create_project(id, settings(id), &ANN, at(0))
        .await
        .unwrap();
}

/// Returns the actions in the audit log, oldest first.
pub(crate) async fn done(control: &Control) -> Vec<String> {
    let entries = control.audit(&AuditFilter::default(), 1_000).await.unwrap();
    let mut actions: Vec<_> = entries.into_iter().map(|entry| entry.action).collect();
    actions.reverse();
    actions
}

/// Asserts that a change fails with this error and leaves nothing in the audit log.
pub(crate) async fn refused<T: Debug>(
    control: &Control,
    change: impl Future<Output = Result<T, ControlError>>,
    error: ControlError,
) {
    let before = done(control).await;
    assert_eq!(change.await.unwrap_err(), error);
    assert_eq!(done(control).await, before);
}
