//! The control database: projects, keys, users, configurations, rules, and the audit log. It is a SQLite file, or
//! PostgreSQL if several servers share it. It never stores plain secrets, only hashes and data that the caller has
//! encrypted.
//!
//! There is one trait per subject, all combined in [`Control`]. Each operation is written once, on top of the few calls
//! that an engine implements in [`Backend`]. Time is a parameter of each operation. Each change is one transaction that
//! includes its audit entry. Changes that affect a snapshot are announced through [`Backend::subscribe`].

mod alert_rules;
mod api_tokens;
mod audit;
mod backend;
mod change;
mod channels;
mod checks;
mod claims;
mod closed;
mod device_keys;
mod documents;
mod erasures;
mod error;
mod federated_identities;
mod grant;
mod incident_snapshot;
mod incidents;
mod ingest_keys;
mod invitations;
mod leases;
mod listener;
mod memberships;
mod mutes;
mod notifications;
mod postgres;
mod projects;
mod scrubbing;
mod secrets;
mod sessions;
mod signal_quotas;
mod sqlite;
mod storage;
mod users;

use std::sync::Arc;

pub use self::alert_rules::{AlertRule, AlertRules, RuleText};
pub use self::api_tokens::{ApiToken, ApiTokens, NewApiToken};
pub use self::audit::{Action, Actor, ActorKind, AuditCursor, AuditEntry, AuditFilter, AuditLog};
pub use self::backend::{Backend, Notice, Row, Statements, Value, Values};
pub use self::change::new_id;
pub use self::channels::{Channel, ChannelFields, ChannelKind, Channels, NewChannel, Severity};
pub use self::claims::{Alone, Claim, Claimed, Claims, Owner};
pub use self::device_keys::{DeviceKey, DeviceKeyAlgorithm, DeviceKeys, NewDeviceKey};
pub use self::documents::{Document, DocumentKind, Documents, NewDocument};
pub use self::erasures::{
    ENFORCED_DAYS, Erasure, ErasureKind, ErasureState, Erasures, Receipt, Work,
};
pub use self::error::ControlError;
pub use self::federated_identities::{
    Admission, FederatedIdentities, FederatedLogin, GivenRoles, ProviderEmail, Refusal,
};
pub use self::incident_snapshot::IncidentSnapshot;
pub use self::incidents::{
    ActionNote, ActionState, AlertState, Evaluated, GroupState, Incident, IncidentFilter,
    IncidentKind, IncidentState, Incidents,
};
pub use self::ingest_keys::{IngestKey, IngestKeys, KeyChange, NewIngestKey};
pub use self::invitations::{Invitation, Invitations, Purpose};
pub use self::leases::Leases;
pub use self::memberships::{Membership, Memberships, Role};
pub use self::mutes::{Mute, Mutes, NewMute};
pub use self::notifications::{
    Attempt, Backlog, NewNotification, Notification, NotificationFilter, NotificationState,
    Notifications, UnannouncedRule,
};
pub use self::postgres::PgControl;
pub use self::projects::{DeviceTokens, Project, ProjectSettings, Projects, Quotas};
pub use self::scrubbing::ScrubbingSettings;
pub use self::secrets::{Hidden, SecretHash};
pub use self::sessions::{NewSession, Rotation, Session, Sessions, TokenExchange};
pub use self::signal_quotas::SignalQuotas;
pub use self::sqlite::SqliteControl;
pub use self::storage::{KeepDays, Storage, StorageSettings};
pub use self::users::{NewUser, TokensOfUser, User, Users};

use crate::task::Tasks;

/// All operations of the control database.
pub trait Control:
    AlertRules
    + ApiTokens
    + AuditLog
    + Channels
    + Claims
    + DeviceKeys
    + Documents
    + Erasures
    + FederatedIdentities
    + Incidents
    + IngestKeys
    + Invitations
    + Leases
    + Memberships
    + Mutes
    + Notifications
    + Projects
    + ScrubbingSettings
    + Sessions
    + StorageSettings
    + Users
{
}

macro_rules! on {
    ($engine:ty: $($subject:ident),*) => { $(impl $subject for $engine {})* };
}

on!(SqliteControl: AlertRules, ApiTokens, AuditLog, Channels, Control, DeviceKeys, Documents, Erasures, FederatedIdentities, Incidents, IngestKeys, Invitations, Leases, Memberships, Mutes, Notifications, Projects, ScrubbingSettings, Sessions, StorageSettings, Users);
on!(PgControl: AlertRules, ApiTokens, AuditLog, Channels, Control, DeviceKeys, Documents, Erasures, FederatedIdentities, Incidents, IngestKeys, Invitations, Leases, Memberships, Mutes, Notifications, Projects, ScrubbingSettings, Sessions, StorageSettings, Users);

/// Opens `sqlite:path` or `postgres://…` and brings its schema up to date.
pub async fn open(url: &str, tasks: &Tasks) -> Result<Arc<dyn Control>, ControlError> {
    match url.split_once(':') {
        Some(("sqlite", rest)) => {
            let path = sqlite::path_of(rest)?;
            Ok(Arc::new(SqliteControl::open(&path, tasks).await?))
        }
        Some(("postgres" | "postgresql", _)) => Ok(Arc::new(PgControl::open(url, tasks).await?)),
        // The URL is not quoted, because it may contain a password.
        _ => Err(ControlError::Invalid(
            "the URL of the control database must be sqlite:path or postgres://user:password@host:5432/database"
                .to_owned(),
        )),
    }
}
