//! Device keys: they verify device tokens, which an app's own back end signs.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::{Change, Entry, new_id};
use super::checks;
use super::error::ControlError;
use super::grant::Grant;
use super::role::Role;
use super::secrets::Hidden;
use super::text_enum::text_enum;

text_enum! {
    /// How tokens are signed. Each key has one algorithm, so that a public key cannot be misused as a shared secret.
    DeviceKeyAlgorithm { Hs256 = "HS256", Es256 = "ES256", EdDsa = "EdDSA", Jwks = "JWKS" }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceKey {
    /// The `kid` of the tokens.
    pub id: Uuid,
    pub project: String,
    pub algorithm: DeviceKeyAlgorithm,
    /// A public key as PEM, or a JWKS. For HS256 the secret, encrypted by the caller.
    pub material: Hidden,
    /// The `aud` that tokens must have.
    pub audience: String,
    pub created_at: UnixTime,
    pub revoked_at: Option<UnixTime>,
}

impl DeviceKey {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            project: row.get("project")?,
            algorithm: row.parsed("algorithm")?,
            material: Hidden(row.get("material")?),
            audience: row.get("audience")?,
            created_at: row.get("created_at")?,
            revoked_at: row.get("revoked_at")?,
        })
    }
}

#[derive(Clone, Debug)]
pub struct NewDeviceKey {
    pub project: String,
    pub algorithm: DeviceKeyAlgorithm,
    pub material: Hidden,
    pub audience: String,
}

const MAX_MATERIAL_BYTES: usize = 64 * 1024;

const INSERT: &str = "
    INSERT INTO device_keys (id, project, algorithm, material, audience, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    RETURNING id, project, algorithm, material, audience, created_at, revoked_at";
const LIST: &str = "
    SELECT id, project, algorithm, material, audience, created_at, revoked_at
    FROM device_keys
    WHERE project = $1
    ORDER BY created_at DESC, id DESC";
const ALL_ACTIVE: &str = "
    SELECT id, project, algorithm, material, audience, created_at, revoked_at
    FROM device_keys
    WHERE revoked_at IS NULL
    ORDER BY id";
const REVOKE: &str = "
    UPDATE device_keys
    SET revoked_at = $3
    WHERE project = $1
      AND id = $2
      AND revoked_at IS NULL";

impl Control {
    pub async fn create_device_key(
        &self,
        new: NewDeviceKey,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<DeviceKey, ControlError> {
        checks::name(&new.audience)?;
        if new.material.0.is_empty() || new.material.0.len() > MAX_MATERIAL_BYTES {
            return Err(checks::invalid(
                "the material of a device key must have 1 byte to 64 KiB",
            ));
        }
        let mut change = Change::begin(self, actor, at).await?;
        let grant = Grant {
            project: Some(&new.project),
            role: Role::Viewer,
            until: None,
        };
        change.grants(grant).await?;
        let values = values![
            new_id(at),
            new.project.as_str(),
            new.algorithm.as_str(),
            new.material.0,
            new.audience.as_str(),
            at,
        ];
        let inserted = change.row(INSERT, values).await?;
        let key = DeviceKey::read(&inserted.ok_or(ControlError::NotFound)?)?;
        change
            .commit(Entry {
                action: Action::DeviceKeyCreated,
                project: Some(&key.project),
                subject: &key.id.to_string(),
                detail: json!({"algorithm": key.algorithm.as_str(), "audience": key.audience}),
            })
            .await?;
        Ok(key)
    }

    /// Returns the keys of a project, latest first, including revoked ones.
    pub async fn device_keys(&self, project: &str) -> Result<Vec<DeviceKey>, ControlError> {
        self.records(LIST, values![project], DeviceKey::read).await
    }

    /// Returns the keys of all projects that are not revoked, for the snapshot.
    pub async fn active_device_keys(&self) -> Result<Vec<DeviceKey>, ControlError> {
        self.records(ALL_ACTIVE, values![], DeviceKey::read).await
    }

    /// Revokes a key permanently.
    pub async fn revoke_device_key(
        &self,
        project: &str,
        id: Uuid,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let object = (project, id);
        self.change_object(REVOKE, Action::DeviceKeyRevoked, object, actor, at)
            .await
    }
}
