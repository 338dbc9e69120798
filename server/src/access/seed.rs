//! Creates the project and ingest keys from the settings at start, if they are missing.

use unjank_database::{
    Actor, Control, ControlError, NewIngestKey, ProjectSettings, Quotas, SecretHash,
};
use unjank_foundation::clock::UnixTime;

use super::settings_keys::{IngestKeys, SeedKey};

/// Creates the project and keys that do not exist. A revoked key stays revoked.
pub async fn seed(
    control: &Control,
    project: &str,
    keys: &IngestKeys,
    now: UnixTime,
) -> Result<(), ControlError> {
    if control.is_erased(project).await? {
        tracing::warn!(
            project,
            "the project in the settings has been erased and is not created again"
        );
        return Ok(());
    }
    let actor = Actor::system("settings");
    let settings = ProjectSettings::named(project);
    ignore_existing(
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
            hash: SecretHash::new(key),
            app_ids: apps,
            quotas: Quotas::default(),
            expires_at: None,
        };
        ignore_existing(control.create_ingest_key(new, &actor, now).await.map(drop))?;
    }
    Ok(())
}

fn ignore_existing(made: Result<(), ControlError>) -> Result<(), ControlError> {
    match made {
        Err(ControlError::AlreadyExists) => Ok(()),
        other => other,
    }
}

/// Returns at most a quarter of a key to show, because keys that people choose may be short.
pub(super) fn shown(key: &str) -> String {
    let most = (key.chars().count() / 4).min(8);
    let mut shown: String = key.chars().take(most).collect();
    shown.push('…');
    shown
}
