//! `/api/v1/projects/{project}/device-keys`: the keys that verify device tokens. A token is a JWT with `kid` (the id of the key, or a `kid` of the
//! key set), `aud` (the project), `sub` (the install id) and `exp` (at most 24 hours ahead).

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unjank_database::{DeviceKey, DeviceKeyAlgorithm, Hidden, NewDeviceKey};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::DeviceKeys;
use crate::app::App;
use crate::http::api::object::{Exact, KEY_SET, Object};
use crate::http::api::openapi::{
    GrantsAccess, Invalid, JsonBody, Missing, Refused, Unfit, algorithm,
};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Admin;

/// A registered key, without its key material.
#[derive(Serialize, ToSchema)]
#[schema(as = DeviceKey)]
pub(super) struct DeviceKeyBody {
    /// The `kid` of the key's tokens.
    id: Uuid,
    #[schema(schema_with = algorithm)]
    algorithm: &'static str,
    created_at: UnixTime,
    revoked_at: Option<UnixTime>,
}

impl From<DeviceKey> for DeviceKeyBody {
    fn from(key: DeviceKey) -> Self {
        Self {
            id: key.id,
            algorithm: key.algorithm.as_str(),
            created_at: key.created_at,
            revoked_at: key.revoked_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct DeviceKeyList {
    keys: Vec<DeviceKeyBody>,
}

/// Lists all keys for device tokens, newest first.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/device-keys", tag = "device_keys",
    responses((status = 200, body = DeviceKeyList), Refused<(Admin,)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
) -> Result<Json<DeviceKeyList>, Problem> {
    let keys = app.control.device_keys(&member.project).await?;
    let keys = keys.into_iter().map(DeviceKeyBody::from).collect();
    Ok(Json(DeviceKeyList { keys }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewDeviceKey)]
pub(super) struct NewKey {
    /// `HS256`, `ES256`, `EdDSA` or `JWKS`. A token cannot choose another algorithm.
    #[schema(schema_with = algorithm)]
    algorithm: String,
    /// The secret (HS256), the public key in PEM (ES256, `EdDSA`), or the JSON of the key set.
    #[schema(min_length = 1, max_length = 65536)]
    material: String,
}

/// Registers a key for device tokens.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/device-keys", tag = "device_keys",
    request_body = NewKey,
    responses((status = 201, body = DeviceKeyBody), Refused<(Admin, JsonBody, Unfit, Invalid, GrantsAccess)>),
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    Object(
        NewKey {
            algorithm,
            material,
        },
        ..,
    ): Exact<NewKey, KEY_SET>,
) -> Result<(StatusCode, Json<DeviceKeyBody>), Problem> {
    let algorithm: DeviceKeyAlgorithm = algorithm.parse().map_err(|_| {
        Problem::unfit_key("`algorithm` must be `HS256`, `ES256`, `EdDSA` or `JWKS`")
    })?;
    // A key is tried before it is saved, so that every saved key can be used.
    DeviceKeys::default()
        .add(
            &Arc::from(member.project.as_str()),
            "",
            algorithm,
            &material,
        )
        .map_err(Problem::unfit_key)?;
    let material = match algorithm {
        DeviceKeyAlgorithm::Hs256 => app
            .secret
            .seal(&member.project, &material)
            .map_err(|_| Problem::overloaded())?,
        _ => material,
    };
    let new = NewDeviceKey {
        audience: member.project.clone(),
        project: member.project,
        algorithm,
        material: Hidden(material),
    };
    let now = app.clock.now();
    let key = app
        .control
        .create_device_key(new, &member.actor, now)
        .await?;
    Ok((StatusCode::CREATED, Json(key.into())))
}

/// Revokes a key permanently. Its tokens are no longer accepted.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/device-keys/{key}", tag = "device_keys",
    responses((status = 204), Refused<(Admin, Missing)>),
)]
pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    path: Result<Path<(String, Uuid)>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path((_, id)) = path.map_err(|_| Problem::not_found())?;
    let now = app.clock.now();
    app.control
        .revoke_device_key(&member.project, id, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
