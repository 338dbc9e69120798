//! Settings of a ClickHouse cluster.

use clap::Args;

use crate::store::HostUrl;

/// A part of [`super::Shared`].
#[derive(Args, Clone, Debug)]
pub struct Cluster {
    /// The name of a ClickHouse cluster, as in `system.clusters` of `--clickhouse-url`, which is any of its hosts. `unjank migrate` and `unjank
    /// cluster check` make and check its schema. Servers cannot store rows in a cluster yet. Unset: a single ClickHouse.
    #[arg(long, env = "UNJANK_CLICKHOUSE_CLUSTER", value_name = "NAME", value_parser = cluster_name, global = true)]
    pub clickhouse_cluster: Option<String>,

    /// The HTTP addresses of hosts of the cluster as `host:port=URL,…`, with host and port as in `system.clusters`. Unset: the host with the
    /// scheme and the port of `--clickhouse-url`.
    #[arg(
        long,
        env = "UNJANK_CLICKHOUSE_HOSTS",
        value_name = "HOSTS",
        value_delimiter = ',',
        global = true
    )]
    pub clickhouse_hosts: Vec<HostUrl>,
}

impl Cluster {
    /// Fails if the settings name a cluster, for what only works with a single ClickHouse.
    pub(crate) fn refuse(&self) -> anyhow::Result<()> {
        anyhow::ensure!(
            self.clickhouse_cluster.is_none(),
            "--clickhouse-cluster is set, but only `unjank migrate` and `unjank cluster check` work with a cluster yet: remove it, and set \
             --clickhouse-url to a single ClickHouse"
        );
        Ok(())
    }
}

fn cluster_name(name: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if (1..=64).contains(&name.len()) && name.bytes().all(plain) {
        return Ok(name.to_owned());
    }
    Err("a cluster name must have 1 to 64 letters, digits, dashes, underscores and dots".to_owned())
}
