//! Ingest keys: credentials with which an app's devices send events. Stored as hashes; a key is shown once, when it is
//! created.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Notice, Row, values};
use super::change::{Change, Entry, new_id};
use super::checks;
use super::error::ControlError;
use super::grant::Grant;
use super::projects::Quotas;
use super::role::Role;
use super::secrets::SecretHash;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestKey {
    pub id: Uuid,
    pub project: String,
    pub name: String,
    /// The first eight characters, by which people identify their keys.
    pub prefix: String,
    pub hash: SecretHash,
    /// The apps that may send with this key. `None` means any.
    pub app_ids: Option<Vec<String>>,
    pub quotas: Quotas,
    pub created_at: UnixTime,
    pub created_by: String,
    pub expires_at: Option<UnixTime>,
    pub revoked_at: Option<UnixTime>,
    /// Accurate to a minute.
    pub last_used_at: Option<UnixTime>,
}

impl IngestKey {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            project: row.get("project")?,
            name: row.get("name")?,
            prefix: row.get("prefix")?,
            hash: SecretHash::read(row, "hash")?,
            app_ids: app_ids(row)?,
            quotas: Quotas::read(row)?,
            created_at: row.get("created_at")?,
            created_by: row.get("created_by")?,
            expires_at: row.get("expires_at")?,
            revoked_at: row.get("revoked_at")?,
            last_used_at: row.get("last_used_at")?,
        })
    }

    /// Whether the key is valid at `now`.
    #[must_use]
    pub fn is_active(&self, now: UnixTime) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| end > now)
    }
}

fn app_ids(row: &Row) -> Result<Option<Vec<String>>, ControlError> {
    match row.get::<Option<String>>("app_ids")? {
        None => Ok(None),
        Some(_) => row.json("app_ids").map(Some),
    }
}

#[derive(Clone, Debug)]
pub struct NewIngestKey {
    pub project: String,
    pub name: String,
    pub prefix: String,
    pub hash: SecretHash,
    pub app_ids: Option<Vec<String>>,
    pub quotas: Quotas,
    pub expires_at: Option<UnixTime>,
}

macro_rules! columns {
    () => {
        "id, project, name, prefix, hash, app_ids, events_per_second, bytes_per_day, created_at, created_by, expires_at,
        revoked_at, last_used_at"
    };
}

const INSERT: &str = concat!(
    "
    INSERT INTO ingest_keys (id, project, name, prefix, hash, app_ids, events_per_second, bytes_per_day, created_at,
        created_by, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    RETURNING ",
    columns!()
);
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM ingest_keys WHERE project = $1 ORDER BY created_at DESC, id DESC"
);
/// The maximum number of hashes per statement.
const AT_ONCE: usize = 16;
const BY_HASH: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM ingest_keys WHERE hash IN ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)"
);
const ALL_ACTIVE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM ingest_keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1) ORDER BY id"
);
/// Never moves the time backwards, whichever of two servers writes first.
const TOUCH: &str =
    "UPDATE ingest_keys SET last_used_at = $2 WHERE id = $1 AND COALESCE(last_used_at, 0) < $2";
const REVOKE: &str = "
    UPDATE ingest_keys
    SET revoked_at = $3
    WHERE project = $1
      AND id = $2
      AND revoked_at IS NULL";
/// A revoked or expired key cannot be reactivated.
const CHANGE: &str = "
    UPDATE ingest_keys
    SET expires_at = CASE WHEN $4 THEN $5 ELSE expires_at END, events_per_second = CASE WHEN $6 THEN $7
        ELSE events_per_second END, bytes_per_day = CASE WHEN $6 THEN $8 ELSE bytes_per_day END
    WHERE project = $1
      AND id = $2
      AND revoked_at IS NULL
      AND (expires_at IS NULL OR expires_at > $3)";

/// To rotate a key without interruption, create the new one, then let the old one expire after a while.
impl Control {
    pub async fn create_ingest_key(
        &self,
        new: NewIngestKey,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<IngestKey, ControlError> {
        checks::name(&new.name)?;
        checks::name(&new.prefix)?;
        let mut change = Change::begin(self, actor, at).await?;
        let grant = Grant {
            project: Some(&new.project),
            role: Role::Viewer,
            until: new.expires_at,
        };
        change.grants(grant).await?;
        let apps = new.app_ids.as_ref().map(|apps| json!(apps).to_string());
        let values = values![
            new_id(at),
            new.project.as_str(),
            new.name.as_str(),
            new.prefix.as_str(),
            new.hash,
            apps,
            checks::quota(new.quotas.events_per_second)?,
            checks::quota(new.quotas.bytes_per_day)?,
            at,
            actor.to_string(),
            new.expires_at,
        ];
        let inserted = change.row(INSERT, values).await?;
        let key = IngestKey::read(&inserted.ok_or(ControlError::NotFound)?)?;
        let detail = json!({
            "name": key.name, "prefix": key.prefix, "app_ids": key.app_ids,
            "quotas": key.quotas.json(), "expires_at": key.expires_at,
        });
        let action = Action::IngestKeyCreated;
        let id = key.id.to_string();
        change
            .commit(entry(action, &key.project, &id, detail))
            .await?;
        Ok(key)
    }

    /// Returns the keys of a project, latest first, including revoked and expired ones.
    pub async fn ingest_keys(&self, project: &str) -> Result<Vec<IngestKey>, ControlError> {
        self.records(LIST, values![project], IngestKey::read).await
    }

    /// Returns the keys with these hashes, including revoked and expired ones.
    pub async fn ingest_keys_by_hash(
        &self,
        hashes: &[SecretHash],
    ) -> Result<Vec<IngestKey>, ControlError> {
        let mut keys = Vec::new();
        for some in hashes.chunks(AT_ONCE) {
            // Repeats hashes, because the statement has a fixed number of values.
            let padded = some.iter().cycle().take(AT_ONCE);
            let values = padded.map(|hash| (*hash).into()).collect();
            keys.extend(self.records(BY_HASH, values, IngestKey::read).await?);
        }
        Ok(keys)
    }

    /// Returns the keys of all projects that are valid at `now`, for the snapshot. Callers must still check for expiry
    /// later.
    pub async fn active_ingest_keys(&self, now: UnixTime) -> Result<Vec<IngestKey>, ControlError> {
        self.records(ALL_ACTIVE, values![now], IngestKey::read)
            .await
    }

    /// Records when keys were last used, without an audit entry. Call it occasionally.
    pub async fn touch_ingest_keys(
        &self,
        used: &[(Uuid, UnixTime)],
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let actor = Actor::system("ingest");
        let mut change = Change::begin(self, &actor, at).await?;
        for (id, at) in used {
            change.execute(TOUCH, values![*id, *at]).await?;
        }
        change.commit_unrecorded(Notice::Silent).await
    }

    /// Revokes a key permanently.
    pub async fn revoke_ingest_key(
        &self,
        project: &str,
        id: Uuid,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let object = (project, id);
        self.change_object(REVOKE, Action::IngestKeyRevoked, object, actor, at)
            .await
    }

    /// Changes the expiry or quotas of a key. Rejects an empty change, which would leave an empty audit entry.
    pub async fn change_ingest_key(
        &self,
        wanted: KeyChange,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let KeyChange {
            project,
            id,
            expires_at,
            quotas,
        } = wanted;
        if expires_at.is_none() && quotas.is_none() {
            return Err(checks::invalid(
                "nothing to change; set `expires_at` or `quotas`",
            ));
        }
        let (sets_quotas, most) = (quotas.is_some(), quotas.unwrap_or_default());
        let values = values![
            project.as_str(),
            id,
            at,
            expires_at.is_some(),
            expires_at.flatten(),
            sets_quotas,
            checks::quota(most.events_per_second)?,
            checks::quota(most.bytes_per_day)?,
        ];
        let mut change = Change::begin(self, actor, at).await?;
        if let Some(until) = expires_at {
            let grant = Grant {
                project: Some(&project),
                role: Role::Viewer,
                until,
            };
            change.grants(grant).await?;
        }
        change.execute_found(CHANGE, values).await?;
        let id = id.to_string();
        if let Some(end) = expires_at {
            let detail = json!({"expires_at": end});
            let entry = entry(Action::IngestKeyExpirySet, &project, &id, detail);
            change.record(entry).await?;
        }
        if let Some(quotas) = quotas {
            let detail = json!({"quotas": quotas.json()});
            let entry = entry(Action::IngestKeyQuotasSet, &project, &id, detail);
            change.record(entry).await?;
        }
        change.commit_recorded().await
    }
}

/// A change of a key. Fields that are `None` stay unchanged.
#[derive(Clone, Debug)]
pub struct KeyChange {
    pub project: String,
    pub id: Uuid,
    /// The new expiry. `Some(None)` means never.
    pub expires_at: Option<Option<UnixTime>>,
    pub quotas: Option<Quotas>,
}

fn entry<'a>(
    action: Action,
    project: &'a str,
    id: &'a str,
    detail: serde_json::Value,
) -> Entry<'a> {
    Entry {
        action,
        project: Some(project),
        subject: id,
        detail,
    }
}
