//! `unjank restore`: fills an empty data folder from a backup.

use std::io::{Write, stdout};
use std::path::PathBuf;

use clap::Args;
use indicatif::HumanBytes;
use unjank_foundation::secret::Secret;

use super::backup::{interrupted, place, show, with_part};
use super::byte_bar::byte_bar;
use super::runtime;
use super::server::keep_files_private;
use crate::backup::{RestoreInto, RestorePlan, restore};
use crate::config::{Shared, bytes};
use crate::serve::{embedded, external};
use crate::store::EngineSettings;

/// Fill an empty data folder from a backup
///
/// Then start `unjank serve` on the data folder. The server stores the batches that wait in the ingest log, each exactly once. Devices need no change. A later version of unjank can restore the backup of an earlier version.
///
/// A backup in a bucket (`s3://bucket/prefix`) is downloaded into a staging folder first. Credentials and region come from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` and `AWS_ENDPOINT`. The staging folder is deleted at the end.
///
/// If a restore into the embedded engine is interrupted, run the same command again. With your own ClickHouse, first drop the database. Until the restore is complete, `unjank serve` refuses the folder.
///
/// The backup contains data that was erased later: erase the data again. Do not run the old server and the restored server at the same time if they share a ClickHouse or a PostgreSQL.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  unjank restore /backups/2026-11-28 --data-dir /var/lib/unjank-new
  unjank restore s3://backups/shop/server-1/2026-11-28 --data-dir /var/lib/unjank-new
  unjank restore /backups/today --data-dir /var/lib/unjank-new --clickhouse-url http://clickhouse:8123 \\
      --clickhouse-from \"S3('https://bucket.s3.amazonaws.com/today/{part}', 'key', 'secret')\""
)]
pub(super) struct RestoreArgs {
    /// The folder of the backup, or its prefix in a bucket, such as `s3://bucket/prefix`.
    #[arg(value_name = "PLACE")]
    from: PathBuf,

    /// The folder below which a backup in a bucket is staged. It needs room for the whole backup. Unset: the data folder.
    #[arg(long, value_name = "DIR")]
    staging: Option<PathBuf>,

    /// Where your own ClickHouse finds the tables: the source of a RESTORE statement, with `{part}` in its name.
    #[arg(long, value_name = "SQL", value_parser = with_part)]
    clickhouse_from: Option<String>,

    /// The memory limit of the embedded engine, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 30, value_parser = bytes)]
    max_memory_bytes: u64,
}

pub(super) fn run(shared: &Shared, args: RestoreArgs) -> anyhow::Result<()> {
    keep_files_private();
    let into = match &shared.clickhouse_url {
        Some(url) => RestoreInto::External {
            target: external(shared, url)?,
            from: args.clickhouse_from,
        },
        None => RestoreInto::Embedded(Box::new(EngineSettings {
            max_memory_bytes: args.max_memory_bytes,
            ..embedded(shared)?
        })),
    };
    let control = shared.database_url.as_ref().map(Secret::reveal);
    anyhow::ensure!(
        !control.is_some_and(|url| url.starts_with("sqlite:")),
        "the control database is restored as control.sqlite in the data folder: remove --database-url, and move the file after the restore"
    );
    let plan = RestorePlan {
        from: place(shared, &args.from, args.staging)?,
        data_dir: shared.data_dir.clone(),
        postgres: control.map(str::to_owned),
        into,
    };
    let bar = byte_bar();
    let report = |what: &str, done, all| show(&bar, what, done, all);
    let restored = runtime()?.block_on(async {
        let interrupted = interrupted()?;
        tokio::select! {
            restored = restore(&plan, &report) => restored,
            _ = interrupted => Err(anyhow::anyhow!("interrupted: {}", plan.after_failure())),
        }
    });
    bar.finish_and_clear();
    let set = restored?;
    Ok(writeln!(
        stdout().lock(),
        "{}: restored {}, with all batches that were acknowledged before {}\nstart it with: unjank serve --data-dir {0}",
        plan.data_dir.display(),
        HumanBytes(set.bytes()),
        set.complete_until
    )?)
}
