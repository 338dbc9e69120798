//! What the settings say must be there: a project and its ingest keys, made at start when they are missing.

use super::ingest_keys::{IngestKeys, SeedKey};
use crate::store::control::{
    Actor, Control, ControlError, NewIngestKey, ProjectSettings, Quotas, SecretHash,
};

/// Makes the project and the keys that are not there. A key that was revoked stays revoked.
pub async fn seed(
    control: &dyn Control,
    project: &str,
    keys: &IngestKeys,
    now: i64,
) -> Result<(), ControlError> {
    if control.is_erased(project).await? {
        tracing::warn!(
            project,
            "the project of the settings was erased: it is not made again"
        );
        return Ok(());
    }
    let actor = Actor::system("settings");
    let settings = ProjectSettings::named(project);
    unless_there(
        control
            .create_project(project, settings, &actor, now)
            .await
            .map(drop),
    )?;
    for SeedKey { key, apps } in keys.seeds() {
        let new = NewIngestKey {
            project: project.to_owned(),
            name: "from the settings".to_owned(),
            prefix: shown(key),
            hash: SecretHash::of(key),
            app_ids: apps,
            quotas: Quotas::default(),
            expires_at: None,
        };
        unless_there(control.create_ingest_key(new, &actor, now).await.map(drop))?;
    }
    Ok(())
}

fn unless_there(made: Result<(), ControlError>) -> Result<(), ControlError> {
    match made {
        Err(ControlError::AlreadyExists) => Ok(()),
        other => other,
    }
}

/// A quarter of a key at most: those of the settings may be short.
fn shown(key: &str) -> String {
    let most = (key.chars().count() / 4).min(8);
    let mut shown: String = key.chars().take(most).collect();
    shown.push('…');
    shown
}
