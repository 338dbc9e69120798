//! The state that all handlers and background tasks of one server share.

use std::sync::Arc;
use std::time::Duration;

use unjank_database::Control;
use unjank_foundation::clock::Clock;
use unjank_foundation::shares::Shares;
use unjank_foundation::task::Failure;
use unjank_stacks::RuleSet;

use crate::access::logins::Logins;
use crate::access::{Access, InstanceSecret, Throttle};
use crate::alerts::notify::Notifier;
use crate::auditor::AuditBoard;
use crate::history::{DryRuns, ProgressBoard};
use crate::intake::Intake;
use crate::metrics::Metrics;
use crate::openid_connect::OpenIdConnect;
use crate::query::{KnownVersions, Releases};
use crate::readiness::Readiness;
use crate::store::{ClickHouse, IngestLog, LastBackup, Retention};
use crate::symbols::Assemblies;
use crate::trusted_proxies::TrustedProxies;
use crate::web_origins::WebOrigins;

/// The shared state of one server.
pub struct App {
    pub clock: Clock,
    pub access: Arc<Access>,
    pub control: Control,
    pub logins: Logins,
    /// Login with an identity provider, if the settings name one.
    pub openid_connect: Option<OpenIdConnect>,
    pub trusted_proxies: TrustedProxies,
    /// The origins of web apps that report from a browser.
    pub web_origins: WebOrigins,
    pub secret: Arc<InstanceSecret>,
    /// The classification rules of projects without rules of their own.
    pub default_rules: Arc<RuleSet>,
    pub dry_runs: DryRuns,
    /// The progress of the reclassification of stored stacks.
    pub reclassification: Arc<ProgressBoard>,
    /// The result of the last audit.
    pub audit: Arc<AuditBoard>,
    pub intake: Arc<Intake>,
    pub log: IngestLog,
    pub last_backup: LastBackup,
    pub clickhouse: ClickHouse,
    /// The known versions of all apps, for comparisons at the same age.
    pub versions: KnownVersions,
    /// When each version began to reach users.
    pub releases: Releases,
    /// The default retention of each table.
    pub retention: Retention,
    pub metrics: Metrics,
    /// The maximum number of connections.
    pub connections: usize,
    /// Memory in KiB for the bodies of requests by people and tools, and for the values decoded from them.
    pub management_bodies: Arc<Shares>,
    pub body_timeout: Duration,
    /// Concurrent previews of changes. Each may use ClickHouse for seconds.
    pub previews: Arc<Shares>,
    /// Concurrent queries by people.
    pub questions: Arc<Shares>,
    /// Concurrent exports of raw rows. Each lasts as long as its reader takes.
    pub exports: Arc<Shares>,
    /// Uploads of symbol files.
    pub symbols: Arc<Assemblies>,
    /// Concurrent requests with chunks of symbol files, or that search for them.
    pub symbol_uploads: Arc<Shares>,
    pub notifier: Arc<Notifier>,
    /// Limits tests of notification channels.
    pub channel_tests: Throttle,
    /// Whether batches can be accepted.
    pub readiness: Readiness,
    /// The failure of a background task.
    pub failure: Failure,
}
