//! The control database: projects, keys, users, configurations, rules, and the audit log. It is a SQLite file, or
//! PostgreSQL if several servers share it. It never stores plain secrets, only hashes and data that the caller has
//! encrypted.
//!
//! Each file holds one subject: its records, and its operations as methods of [`Control`]. An operation is written once,
//! on top of the few calls that an engine implements in [`Backend`]. Time is a parameter of each operation. Each change
//! is one transaction that includes its audit entry. Changes that affect a snapshot are announced through
//! [`Control::subscribe`].

mod acknowledgements;
mod alert_rules;
mod api_tokens;
mod assignee;
mod assignees;
mod audit;
mod backend;
mod change;
mod channels;
mod checks;
mod claims;
mod comments;
mod copy;
mod device_keys;
mod documents;
mod erased_alerts;
mod erasure;
mod erasures;
mod error;
mod federated_identities;
mod forward;
mod grant;
mod handled_groups;
mod incident_announcements;
mod incident_snapshot;
mod incidents;
mod ingest_keys;
mod invitations;
mod json_text;
mod leases;
mod listener;
mod memberships;
mod mutes;
mod names;
mod notifications;
mod postgres;
mod projects;
mod role;
mod saved_views;
mod scrubbing;
mod secrets;
mod sessions;
mod set_up;
mod signal_quotas;
mod source_links;
mod sqlite;
mod storage;
mod symbol_aliases;
mod symbol_builds;
mod symbol_files;
mod symbol_removals;
mod text_enum;
mod trace_links;
mod users;

use std::sync::Arc;

pub use self::alert_rules::{AlertRule, RuleText};
pub use self::api_tokens::{ApiToken, NewApiToken, TokenScope};
pub use self::assignee::Assignee;
pub use self::audit::{Action, Actor, ActorKind, AuditCursor, AuditEntry, AuditFilter};
pub use self::change::new_id;
pub use self::channels::{Channel, ChannelFields, ChannelKind, NewChannel, Severity};
#[cfg(feature = "model")]
pub use self::claims::ClaimModel;
pub use self::claims::{Claim, ClaimStore, Claimed, Claiming, Claims, EndedLease, Owner, TakeOver};
pub use self::comments::{Comment, Commented};
pub use self::copy::{copy_sqlite, is_empty_postgres};
pub use self::device_keys::{DeviceKey, DeviceKeyAlgorithm, NewDeviceKey};
pub use self::documents::{Document, DocumentChange, DocumentKind, NewDocument};
pub use self::erased_alerts::FinishedErasures;
pub use self::erasure::{Erasure, ErasureKind, ErasureState, Receipt, Work};
pub use self::erasures::ENFORCED_DAYS;
pub use self::error::ControlError;
pub use self::federated_identities::{
    Admission, FederatedLogin, GivenRoles, ProviderEmail, Refusal,
};
pub use self::forward::SavedForward;
pub use self::handled_groups::{GroupDecision, HandledGroup, NewDecision};
pub use self::incident_announcements::{Announced, UnannouncedRule};
pub use self::incident_snapshot::IncidentSnapshot;
pub use self::incidents::{
    ActionNote, ActionState, AlertState, Evaluated, GroupMove, GroupState, Incident,
    IncidentFilter, IncidentKind, IncidentState,
};
pub use self::ingest_keys::{IngestKey, KeyChange, NewIngestKey};
pub use self::invitations::{Invitation, OpenInvitation};
pub use self::json_text::JsonText;
pub use self::memberships::Membership;
pub use self::mutes::{Mute, NewMute};
pub use self::notifications::{
    Attempt, Backlog, NewNotification, Notification, NotificationFilter, NotificationState,
};
pub use self::projects::{DeviceTokens, Project, ProjectSettings, Quotas};
pub use self::role::Role;
pub use self::saved_views::{SavedView, SavedViewChange};
pub use self::secrets::{Hidden, SecretHash};
pub use self::sessions::{NewSession, Rotation, Session, TokenExchange};
pub use self::set_up::FirstAdmin;
pub use self::signal_quotas::SignalQuotas;
pub use self::storage::{KeepDays, Storage};
pub use self::symbol_builds::{SharedSymbols, UsableBuild};
pub use self::symbol_files::{Build, NewSymbolFile, SymbolFile, SymbolFileFilter, SymbolUsage};
pub use self::symbol_removals::UnusedContent;
pub use self::users::{NewUser, TokensOfUser, User};

use tokio::sync::watch;
use unjank_foundation::task::Tasks;

use self::backend::{Backend, Row, Statements, Values};
use self::postgres::PostgresBackend;
use self::sqlite::SqliteBackend;

/// The control database. Clones share its connections.
#[derive(Clone)]
pub struct Control {
    backend: Arc<dyn Backend>,
}

impl Control {
    /// Opens `sqlite:path` or `postgres://…` and brings its schema up to date.
    pub async fn open(url: &str, tasks: &Tasks) -> Result<Self, ControlError> {
        let backend: Arc<dyn Backend> = match url.split_once(':') {
            Some(("sqlite", rest)) => {
                let path = sqlite::path_of(rest)?;
                Arc::new(SqliteBackend::open(&path, tasks).await?)
            }
            Some(("postgres" | "postgresql", _)) => {
                Arc::new(PostgresBackend::open(url, tasks).await?)
            }
            // The URL is not quoted, because it may contain a password.
            _ => {
                return Err(ControlError::Invalid(
                    "the URL of the control database must be sqlite:path or postgres://user:password@host:5432/database"
                        .to_owned(),
                ));
            }
        };
        Ok(Self { backend })
    }

    /// Returns a receiver that is notified after each change that may affect a snapshot, by any server. The value has
    /// no meaning.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.backend.subscribe()
    }

    /// Closes all connections, waiting for those in use.
    pub async fn close(&self) {
        self.backend.close().await;
    }

    /// Reads rows outside of a transaction.
    async fn rows(&self, sql: &'static str, values: Values) -> Result<Vec<Row>, ControlError> {
        self.backend.rows(sql, values).await
    }

    /// Reads the first row.
    async fn row(&self, sql: &'static str, values: Values) -> Result<Row, ControlError> {
        let rows = self.rows(sql, values).await?;
        rows.into_iter().next().ok_or(ControlError::NotFound)
    }

    /// Reads all rows as records.
    async fn records<T>(
        &self,
        sql: &'static str,
        values: Values,
        read: impl Fn(&Row) -> Result<T, ControlError>,
    ) -> Result<Vec<T>, ControlError> {
        self.rows(sql, values).await?.iter().map(read).collect()
    }

    /// Begins a transaction that may write. Dropping it rolls it back.
    async fn begin(&self) -> Result<Box<dyn Statements>, ControlError> {
        self.backend.begin().await
    }
}
