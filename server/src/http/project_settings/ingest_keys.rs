//! `/api/v1/projects/{project}/keys`: the keys of devices. To rotate a key, create the new one, then let the old one expire later.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use unjank_database::{IngestKey, KeyChange, NewIngestKey, Quotas};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::projects::QuotasBody;
use crate::access::{Credential, CredentialKind};
use crate::app::App;
use crate::http::api::object::{Object, no_list};
use crate::http::api::openapi::{GrantsAccess, Invalid, JsonBody, Missing, Overloaded, Refused};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Admin, CredentialExpiry, Viewer};

#[derive(Serialize, ToSchema)]
#[schema(as = IngestKey)]
pub(super) struct KeyBody {
    id: Uuid,
    name: String,
    /// The first characters, to recognize the key.
    prefix: String,
    /// The apps that may send with the key. `null`: all apps.
    app_ids: Option<Vec<String>>,
    quotas: QuotasBody,
    created_by: String,
    created_at: UnixTime,
    expires_at: Option<UnixTime>,
    revoked_at: Option<UnixTime>,
    /// When devices last used the key, to within a minute. `null`: never, or only with an older server.
    last_used_at: Option<UnixTime>,
    /// The key itself. Returned only once, by the request that creates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

impl From<IngestKey> for KeyBody {
    fn from(key: IngestKey) -> Self {
        Self {
            id: key.id,
            name: key.name,
            prefix: key.prefix,
            app_ids: key.app_ids,
            quotas: key.quotas.into(),
            created_by: key.created_by,
            created_at: key.created_at,
            expires_at: key.expires_at,
            revoked_at: key.revoked_at,
            last_used_at: key.last_used_at,
            key: None,
        }
    }
}

/// All keys of a project, newest first.
#[derive(Serialize, ToSchema)]
#[schema(as = IngestKeyList)]
pub(super) struct KeyList {
    keys: Vec<KeyBody>,
}

/// Lists the ingest keys of the project, newest first.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/keys", tag = "ingest_keys",
    responses((status = 200, body = KeyList), Refused<(Viewer,)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<KeyList>, Problem> {
    let keys = app.control.ingest_keys(&member.project).await?;
    let keys = keys.into_iter().map(KeyBody::from).collect();
    Ok(Json(KeyList { keys }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewIngestKey)]
pub(super) struct NewKey {
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    name: String,
    /// The apps that may send with the key. Missing: all apps.
    app_ids: Option<Vec<String>>,
    #[serde(default, deserialize_with = "no_list")]
    quotas: QuotasBody,
    /// If missing or `null`, the key never expires, or expires with the token that creates it.
    expires_at: Option<UnixTime>,
}

/// Creates an ingest key. The key itself is returned only once.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/keys", tag = "ingest_keys",
    request_body = NewKey,
    responses((status = 201, body = KeyBody), Refused<(Admin, JsonBody, Invalid, GrantsAccess, Overloaded)>),
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    CredentialExpiry(until): CredentialExpiry,
    Object(new, ..): Object<NewKey>,
) -> Result<(StatusCode, Json<KeyBody>), Problem> {
    let credential =
        Credential::new(CredentialKind::IngestKey).map_err(|_| Problem::overloaded())?;
    let new = NewIngestKey {
        project: member.project,
        name: new.name,
        prefix: credential.shown().to_owned(),
        hash: credential.hash(),
        app_ids: new.app_ids,
        quotas: new.quotas.into(),
        expires_at: new.expires_at.or(until),
    };
    let now = app.clock.now();
    let key = app
        .control
        .create_ingest_key(new, &member.actor, now)
        .await?;
    let body = KeyBody {
        key: Some(credential.reveal().to_owned()),
        ..key.into()
    };
    Ok((StatusCode::CREATED, Json(body)))
}

/// A key or token that this server refused recently.
#[derive(Serialize, ToSchema)]
#[schema(as = RefusedKey)]
pub(super) struct RefusedBody {
    /// The time of the latest request.
    at: UnixTime,
    /// The code of the problem, such as `key_unknown`.
    code: &'static str,
    /// The first characters of the key. Empty: the requests had no key.
    prefix: String,
    /// The number of requests.
    requests: u64,
    /// The id of the key, if it is a key of this project, such as a revoked or expired one. `null`: no project has this key.
    key: Option<Uuid>,
}

/// At most 64 keys, most recently sent first.
#[derive(Serialize, ToSchema)]
#[schema(as = RefusedKeyList)]
pub(super) struct RefusedList {
    refused: Vec<RefusedBody>,
}

/// Lists keys and tokens that this server has refused since its start: keys of this project, and keys that no project has.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/keys/refused", tag = "ingest_keys",
    responses((status = 200, body = RefusedList), Refused<(Admin,)>),
)]
pub(super) async fn refused(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
) -> Result<Json<RefusedList>, Problem> {
    let latest = app.intake.refused_keys.latest();
    let hashes: Vec<_> = latest.iter().filter_map(|one| one.hash).collect();
    let keys = app.control.ingest_keys_by_hash(&hashes).await?;
    let mut refused = Vec::new();
    for one in latest {
        let key = keys.iter().find(|key| Some(key.hash) == one.hash);
        // Keys of other projects stay hidden.
        if key.is_none_or(|key| key.project == member.project) {
            refused.push(RefusedBody {
                at: one.at,
                code: one.code,
                prefix: one.prefix,
                requests: one.requests,
                key: key.map(|key| key.id),
            });
        }
    }
    Ok(Json(RefusedList { refused }))
}

type KeyPath = Result<Path<(String, Uuid)>, PathRejection>;

/// Missing fields stay unchanged. A change of quotas does not reset the usage.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = IngestKeyPatch)]
pub(super) struct KeyPatch {
    /// When the key expires. `null`: never.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<i64>)]
    expires_at: Option<Option<UnixTime>>,
    /// Replaces all quotas. A missing quota means no limit.
    #[serde(default, deserialize_with = "no_list")]
    quotas: Option<QuotasBody>,
}

/// Distinguishes `null` from a missing field.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<UnixTime>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// Changes the expiry or the quotas of a key.
#[utoipa::path(
    patch, path = "/api/v1/projects/{project}/keys/{key}", tag = "ingest_keys",
    request_body = KeyPatch,
    responses((status = 204), Refused<(Admin, Missing, JsonBody, Invalid, GrantsAccess)>),
)]
pub(super) async fn update(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    path: KeyPath,
    Object(patch, ..): Object<KeyPatch>,
) -> Result<StatusCode, Problem> {
    let Path((_, id)) = path.map_err(|_| Problem::not_found())?;
    let wanted = KeyChange {
        project: member.project,
        id,
        expires_at: patch.expires_at,
        quotas: patch.quotas.map(Quotas::from),
    };
    let now = app.clock.now();
    app.control
        .change_ingest_key(wanted, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Revokes a key permanently.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/keys/{key}", tag = "ingest_keys",
    responses((status = 204), Refused<(Admin, Missing)>),
)]
pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    path: KeyPath,
) -> Result<StatusCode, Problem> {
    let Path((_, id)) = path.map_err(|_| Problem::not_found())?;
    let now = app.clock.now();
    app.control
        .revoke_ingest_key(&member.project, id, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
