//! `unjank cluster`, and `unjank migrate` for a cluster.

use std::io::{Write, stdout};

use anyhow::Context as _;
use clap::{Args, Subcommand};

use super::runtime;
use crate::config::Shared;
use crate::serve::any_host;
use crate::store::{Cluster, HostReport};

/// A ClickHouse cluster: check the schema of its hosts
#[derive(Args, Debug)]
pub(super) struct ClusterArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List the hosts of a cluster, and what their schema lacks
    ///
    /// Prints a line for each host: its shard, its address in `system.clusters`, its HTTP address, and its state. Changes nothing. `unjank migrate` with the same settings brings hosts that are behind up to date.
    #[command(
        verbatim_doc_comment,
        after_long_help = "\
Example:
  unjank cluster check --clickhouse-url http://ch1:8123 --clickhouse-cluster main

Exit codes: 0 if all hosts are current, 1 otherwise."
    )]
    Check,
}

pub(super) fn run(shared: &Shared, args: &ClusterArgs) -> anyhow::Result<()> {
    let Command::Check = args.command;
    let reports = runtime()?.block_on(async {
        let cluster = open(shared).await?;
        anyhow::Ok(cluster.check().await)
    })?;
    print(&reports)
}

pub(super) fn migrate(shared: &Shared) -> anyhow::Result<()> {
    let reports = runtime()?.block_on(async {
        let cluster = open(shared).await?;
        anyhow::Ok(cluster.migrate().await)
    })?;
    print(&reports)
}

async fn open(shared: &Shared) -> anyhow::Result<Cluster> {
    let settings = &shared.cluster;
    let name = settings
        .clickhouse_cluster
        .as_deref()
        .context("set --clickhouse-cluster to the name of the cluster in `system.clusters`")?;
    let url = shared
        .clickhouse_url
        .as_deref()
        .context("set --clickhouse-url to the HTTP address of a host of the cluster")?;
    let target = any_host(shared, url);
    Ok(Cluster::open(name, target, &settings.clickhouse_hosts).await?)
}

/// Prints a line for each host. Fails if a host is not current.
fn print(reports: &[HostReport]) -> anyhow::Result<()> {
    let mut out = stdout().lock();
    for report in reports {
        let HostReport {
            shard,
            address,
            url,
            state,
        } = report;
        writeln!(out, "shard {shard}\t{address}\t{url}\t{state}")?;
    }
    let current = reports.iter().filter(|report| report.state.is_current());
    let current = current.count();
    anyhow::ensure!(
        current == reports.len(),
        "{current} of {} hosts are current",
        reports.len()
    );
    Ok(())
}
