//! One running server: what its handlers share, and how it is put together and taken down.

use std::sync::Arc;
use std::time::Duration;

use crate::alerts::notify::Notifier;
use crate::auditor::AuditBoard;
use crate::clock::Clock;
use crate::control::people::Logins;
use crate::control::{Access, InstanceSecret, Throttle};
use crate::history::{DryRuns, ProgressBoard};
use crate::intake::Intake;
use crate::metrics::Metrics;
use crate::openid_connect::OpenIdConnect;
use crate::proxies::TrustedProxies;
use crate::readiness::Readiness;
use crate::shares::Shares;
use crate::stacks::RuleSet;
use crate::store::control::Control;
use crate::store::{ClickHouse, IngestLog, Retention};
use crate::task::Failure;

/// What handlers share.
pub struct App {
    pub clock: Clock,
    pub access: Arc<Access>,
    pub control: Arc<dyn Control>,
    pub logins: Logins,
    /// Logins with an identity provider, if the settings name one.
    pub openid_connect: Option<OpenIdConnect>,
    pub trusted_proxies: TrustedProxies,
    pub secret: Arc<InstanceSecret>,
    /// The rules of projects that saved none.
    pub default_rules: Arc<RuleSet>,
    pub dry_runs: DryRuns,
    /// How far stored stacks are classified anew.
    pub reclassification: Arc<ProgressBoard>,
    /// Whether the books balance.
    pub audit: Arc<AuditBoard>,
    pub intake: Arc<Intake>,
    pub log: IngestLog,
    pub clickhouse: ClickHouse,
    /// How long rows are kept, unless their project has other times.
    pub retention: Retention,
    pub metrics: Metrics,
    /// Connections at a time.
    pub connections: usize,
    /// The same for the bodies of people and their tools, and for what is read from them.
    pub management_bodies: Arc<Shares>,
    pub body_timeout: Duration,
    /// Predictions at a time of what a change would do: each may take seconds of ClickHouse.
    pub previews: Arc<Shares>,
    /// Questions about what is stored that are answered at a time.
    pub questions: Arc<Shares>,
    /// Files of raw rows that are sent at a time: as slowly as their readers read.
    pub exports: Arc<Shares>,
    pub notifier: Arc<Notifier>,
    /// How often channels may be tested.
    pub channel_tests: Throttle,
    /// Whether batches can be accepted.
    pub readiness: Readiness,
    /// Of the tasks beside the requests.
    pub failure: Failure,
}
