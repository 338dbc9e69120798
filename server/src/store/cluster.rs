//! A ClickHouse cluster: the schema on each of its hosts. The tables of a shard are those of a single ClickHouse. The tables for reading are in a
//! database beside them.

mod hosts;
mod read_tables;

use std::fmt;

pub use self::hosts::{BadCluster, HostUrl};

use self::hosts::{Host, difference, hosts, known_clusters, list};
use self::read_tables::ReadTables;
use super::clickhouse::{ClickHouse, Failure, Target};
use super::migrations::{SchemaState, migrate, schema_state};

/// The hosts of a cluster, in the order of their shards.
pub struct Cluster {
    name: String,
    hosts: Vec<Host>,
    target: Target,
    read_tables: ReadTables,
}

#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(transparent)]
    ClickHouse(#[from] Failure),
    #[error(transparent)]
    Bad(#[from] BadCluster),
}

/// The schema of one host.
pub struct HostReport {
    pub shard: u32,
    /// The address of the native protocol, as in `system.clusters`.
    pub address: String,
    pub url: String,
    pub state: HostState,
}

/// How the schema of a host compares with the one of this version.
pub enum HostState {
    Current,
    Behind {
        /// The migrations that are missing, in order.
        missing: Vec<&'static str>,
        are_read_tables_current: bool,
    },
    /// A newer version has migrated the host. This version leaves it alone.
    Newer {
        unknown: Vec<String>,
    },
    /// Migrations were applied with a different text.
    Changed {
        migrations: Vec<&'static str>,
    },
    /// The host lists other shards, or is another one.
    Different(String),
    Failed(Failure),
}

impl Cluster {
    /// Reads the hosts of the cluster `name` from the ClickHouse of `target`. The other hosts have the same users and passwords.
    pub async fn open(name: &str, target: Target, given: &[HostUrl]) -> Result<Self, ClusterError> {
        let first = handle(&target, &target.url);
        first.ping().await?;
        let client = first.client()?;
        let listed = list(&client, name).await?;
        if listed.is_empty() {
            return Err(ClusterError::Bad(BadCluster::Unknown {
                name: name.to_owned(),
                known: known_clusters(&client).await?,
            }));
        }
        Ok(Self {
            name: name.to_owned(),
            hosts: hosts(&listed, &target.url, given)?,
            read_tables: ReadTables::of(name, &target.database),
            target,
        })
    }

    /// Compares the schema of each host with the one of this version. Changes nothing.
    pub async fn check(&self) -> Vec<HostReport> {
        let mut reports = Vec::new();
        for host in &self.hosts {
            let state = self.state_of(host).await;
            reports.push(HostReport {
                shard: host.shard,
                address: host.address.clone(),
                url: host.url.clone(),
                state: state.unwrap_or_else(HostState::Failed),
            });
        }
        reports
    }

    /// Migrates the hosts one after the other, and then makes the tables for reading. A host that fails does not stop the others. A second call
    /// continues where the first one stopped.
    pub async fn migrate(&self) -> Vec<HostReport> {
        let mut all = true;
        for host in &self.hosts {
            all &= self.migrate_rows(host).await;
        }
        if !all {
            tracing::warn!(
                "the tables for reading stay as they are until all hosts are migrated: they must not name a column that a shard lacks"
            );
            return self.check().await;
        }
        for host in &self.hosts {
            if let Err(failure) = self.make_read_tables(host).await {
                tracing::error!(%failure, host = host.address, "cannot make the tables for reading");
            }
        }
        self.check().await
    }

    async fn state_of(&self, host: &Host) -> Result<HostState, Failure> {
        let clickhouse = handle(&self.target, &host.url);
        clickhouse.ping().await?;
        let listed = list(&clickhouse.client()?, &self.name).await?;
        if let Some(difference) = difference(&self.hosts, host, &listed) {
            return Ok(HostState::Different(difference));
        }
        let SchemaState {
            missing,
            unknown,
            changed,
        } = schema_state(&clickhouse).await?;
        if !unknown.is_empty() {
            return Ok(HostState::Newer { unknown });
        }
        if missing.is_empty() && !changed.is_empty() {
            return Ok(HostState::Changed {
                migrations: changed,
            });
        }
        let are_read_tables_current = self.read_tables.are_current(&clickhouse).await?;
        if missing.is_empty() && are_read_tables_current {
            return Ok(HostState::Current);
        }
        Ok(HostState::Behind {
            missing,
            are_read_tables_current,
        })
    }

    /// Migrates the tables with rows. Returns whether the host has all migrations now.
    async fn migrate_rows(&self, host: &Host) -> bool {
        match self.state_of(host).await {
            Ok(HostState::Current) => return true,
            Ok(HostState::Behind { .. } | HostState::Changed { .. }) => {}
            Ok(state) => {
                tracing::error!(host = host.address, "cannot migrate this host: it {state}");
                return false;
            }
            Err(failure) => {
                tracing::error!(%failure, host = host.address, "cannot migrate this host");
                return false;
            }
        }
        match migrate(&handle(&self.target, &host.url)).await {
            Ok(applied) => {
                let applied = applied.len();
                tracing::info!(host = host.address, applied, "has all migrations");
                true
            }
            Err(failure) => {
                tracing::error!(%failure, host = host.address, "cannot migrate this host");
                false
            }
        }
    }

    async fn make_read_tables(&self, host: &Host) -> Result<(), Failure> {
        let clickhouse = handle(&self.target, &host.url);
        if !self.read_tables.are_current(&clickhouse).await? {
            self.read_tables.replace(&clickhouse).await?;
            tracing::info!(host = host.address, "made the tables for reading");
        }
        Ok(())
    }
}

/// Returns a handle to the host at `url`.
fn handle(target: &Target, url: &str) -> ClickHouse {
    let clickhouse = ClickHouse::away(&target.database);
    clickhouse.point_at(Some(&Target {
        url: url.to_owned(),
        ..target.clone()
    }));
    clickhouse
}

impl HostState {
    #[must_use]
    pub fn is_current(&self) -> bool {
        matches!(self, Self::Current)
    }
}

/// The predicate of a sentence about the host.
impl fmt::Display for HostState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Current => formatter.write_str("is current"),
            Self::Behind {
                missing,
                are_read_tables_current,
            } => {
                let read_tables = (!are_read_tables_current).then_some("the tables for reading");
                let missing: Vec<&str> = missing.iter().copied().chain(read_tables).collect();
                write!(formatter, "is behind: it lacks {}", missing.join(", "))
            }
            Self::Newer { unknown } => write!(
                formatter,
                "was migrated by a newer version of unjank ({}): use that version",
                unknown.join(", ")
            ),
            Self::Changed { migrations } => write!(
                formatter,
                "has migrations with a different text ({}): check its schema by hand",
                migrations.join(", ")
            ),
            Self::Different(difference) => formatter.write_str(difference),
            Self::Failed(failure) => write!(formatter, "cannot be checked: {failure}"),
        }
    }
}
