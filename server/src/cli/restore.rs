//! `unjank restore`: fills an empty data folder from a backup.

use std::io::{Write, stdout};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use indicatif::HumanBytes;

use super::backup::{Progress, with_part};
use super::runtime;
use super::server::keep_files_private;
use crate::backup::{RestoreInto, RestorePlan, restore};
use crate::config::Shared;
use crate::secret::Secret;
use crate::serve::external;
use crate::store::{EnginePasswords, EngineSettings};

/// Fill an empty data folder from a backup
///
/// After it, `unjank serve` on the data folder continues where the backup ends: the server stores what waits in the ingest log, and no batch twice. Devices need not be told anything. A later version of unjank may restore the backup of an earlier one.
///
/// If the restore is interrupted, run the same command again. Until it has finished, `unjank serve` refuses the folder.
///
/// Events that were erased after the backup was made are in the backup: erase them again. Do not run the old server and the restored one at the same time, if they share a ClickHouse or a PostgreSQL.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  unjank restore /backups/2026-11-28 --data-dir /var/lib/unjank-new
  unjank restore /backups/today --data-dir /var/lib/unjank-new --clickhouse-url http://clickhouse:8123 \\
      --clickhouse-from \"S3('https://bucket.s3.amazonaws.com/today/{part}', 'key', 'secret')\""
)]
pub(super) struct RestoreArgs {
    /// The folder of the backup.
    folder: PathBuf,

    /// Where your own ClickHouse finds the tables, as in its statement RESTORE, with `{part}` in its name.
    #[arg(long, value_name = "SQL", value_parser = with_part)]
    clickhouse_from: Option<String>,

    /// The memory limit of the embedded engine, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 30)]
    max_memory_bytes: u64,
}

pub(super) fn run(shared: &Shared, args: RestoreArgs) -> anyhow::Result<()> {
    keep_files_private();
    let into = match &shared.clickhouse_url {
        Some(url) => RestoreInto::External {
            target: external(shared, url),
            from: args.clickhouse_from,
        },
        None => RestoreInto::Embedded(Box::new(engine(shared, args.max_memory_bytes)?)),
    };
    let control = shared.database_url.as_ref().map(Secret::reveal);
    anyhow::ensure!(
        !control.is_some_and(|url| url.starts_with("sqlite:")),
        "the control database is restored as control.sqlite in the data folder: leave out --database-url, and move the file afterwards"
    );
    let plan = RestorePlan {
        from: args.folder,
        data_dir: shared.data_dir.clone(),
        postgres: control.map(str::to_owned),
        into,
    };
    let progress = Progress::new();
    let report = |what: &str, done, all| progress.show(what, done, all);
    let restored = runtime()?.block_on(restore(&plan, &report));
    progress.end();
    let set = restored?;
    Ok(writeln!(
        stdout().lock(),
        "{}: restored {}, with all batches that were acknowledged before {}\nstart it with: unjank serve --data-dir {0}",
        plan.data_dir.display(),
        HumanBytes(set.bytes()),
        set.complete_until
    )?)
}

fn engine(shared: &Shared, max_memory_bytes: u64) -> anyhow::Result<EngineSettings> {
    Ok(EngineSettings {
        program: shared.engine_program()?,
        data_dir: shared.data_dir.clone(),
        engine_dir: shared.data_dir.join("engine"),
        binary: shared.engine_binary.clone(),
        library: shared.engine_library.clone(),
        cache_dir: shared.cache_dir.clone(),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        tcp_listen: None,
        database: shared.clickhouse_database.clone(),
        passwords: EnginePasswords::default(),
        sources: Vec::new(),
        max_memory_bytes,
        nice: 0,
    })
}
