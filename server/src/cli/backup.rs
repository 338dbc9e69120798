//! `unjank backup`: copies everything that an installation needs, while the server runs.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::{HumanBytes, ProgressBar};
use tokio::signal::unix::{SignalKind, signal};

use super::byte_bar::byte_bar;
use super::server::keep_files_private;
use super::{DEFAULT_WAIT, runtime, store_in_use};
use crate::backup::{BackupBucket, BackupPlan, BackupSet, ControlAt, Place, make};
use crate::config::{Shared, bucket_options, bytes};
use crate::serve::control_url;

/// Copy all data into a folder or a bucket, while the server runs
///
/// The backup contains the tables of ClickHouse, the ingest log, the control database, the secret, the dead letters and the symbol files. Every batch that was acknowledged before the copy of the log is in the backup, exactly once. Restore the backup with `unjank restore`.
///
/// The embedded engine first writes the tables into the data folder, so the data folder needs room for a second copy of the tables. A backup on the same disk protects against mistakes, not against the loss of the disk: copy it to another machine, or back up to a bucket.
///
/// A backup to a bucket (`s3://bucket/prefix`) is made in a staging folder and then uploaded. `backup.json` is uploaded last: without it, `unjank restore` refuses the backup. Credentials and region come from `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` and `AWS_ENDPOINT`, as for --symbols-url. The staging folder is deleted at the end. If the command is killed, the next backup to the same bucket with the same staging folder deletes what it left. Each server needs a prefix of its own.
///
/// Your own ClickHouse writes the tables to --clickhouse-to. If the control database is in PostgreSQL, `pg_dump` must be on the PATH. Symbol files in a bucket (--symbols-url) and the setting `UNJANK_SECRET` are not copied.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  unjank backup /backups/$(date -u +%F)                     the embedded engine
  unjank backup s3://backups/shop/$(hostname)/$(date -u +%F) to a bucket
  unjank backup /backups/today --most-mib-per-second 50     with less load on the disk
  unjank backup /backups/today --clickhouse-url http://clickhouse:8123 \\
      --clickhouse-to \"S3('https://bucket.s3.amazonaws.com/today/{part}', 'key', 'secret')\""
)]
pub(super) struct BackupArgs {
    /// The folder for the backup, or a prefix of a bucket, such as `s3://bucket/prefix`. It must not exist or must be empty. Only its owner can read the files of a folder.
    #[arg(value_name = "PLACE")]
    to: PathBuf,

    /// The folder below which a backup to a bucket is staged. It needs room for the whole backup. Unset: the data folder.
    #[arg(long, value_name = "DIR")]
    staging: Option<PathBuf>,

    /// Limit how fast ClickHouse reads the tables, in MiB per second. 0: no limit.
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    most_mib_per_second: u32,

    /// The minimum free space of the server, in bytes. The backup fails before the server rejects events: while the data folder's disk has less free space than twice this value, or than 1 GiB.
    #[arg(long, env = "UNJANK_MIN_FREE_BYTES", value_name = "BYTES", default_value_t = 256 << 20, value_parser = bytes)]
    min_free_bytes: u64,

    /// Where your own ClickHouse writes the tables: the destination of a BACKUP statement, with `{part}` in its name.
    #[arg(long, value_name = "SQL", value_parser = with_part)]
    clickhouse_to: Option<String>,
}

/// Checks that the parts of the tables have different places.
pub(super) fn with_part(text: &str) -> Result<String, String> {
    if text.contains("{part}") {
        return Ok(text.to_owned());
    }
    Err("must contain {part}, such as Disk('backups', 'today/{part}')".to_owned())
}

/// Returns the place of a backup, as the command line names it.
pub(super) fn place(
    shared: &Shared,
    place: &Path,
    staging: Option<PathBuf>,
) -> anyhow::Result<Place> {
    let url = place.to_str().filter(|text| text.contains("://"));
    let Some(url) = url else {
        anyhow::ensure!(
            staging.is_none(),
            "a backup in a folder needs no staging folder: remove --staging"
        );
        return Ok(Place::Folder(place.to_owned()));
    };
    Ok(Place::Bucket {
        bucket: BackupBucket::open(url, &bucket_options())?,
        staging: staging.unwrap_or_else(|| shared.data_dir.clone()),
    })
}

pub(super) fn run(shared: &Shared, args: BackupArgs) -> anyhow::Result<()> {
    keep_files_private();
    anyhow::ensure!(
        shared.clickhouse_url.is_some() || args.clickhouse_to.is_none(),
        "the embedded engine writes into the folder of the backup: remove --clickhouse-to, or set --clickhouse-url"
    );
    anyhow::ensure!(
        shared.clickhouse_url.is_none() || args.clickhouse_to.is_some(),
        "your own ClickHouse writes the tables itself: set --clickhouse-to, such as \"S3('https://…/{{part}}', '…', '…')\""
    );
    let plan = BackupPlan {
        to: place(shared, &args.to, args.staging)?,
        data_dir: shared.data_dir.clone(),
        control: ControlAt::url(control_url(shared)),
        clickhouse_to: args.clickhouse_to,
        most_bytes_per_second: u64::from(args.most_mib_per_second) << 20,
        min_free_bytes: args.min_free_bytes,
    };
    let bar = byte_bar();
    let report = |what: &str, done, all| show(&bar, what, done, all);
    let made = runtime()?.block_on(async {
        let store = store_in_use(shared, DEFAULT_WAIT).await?;
        make(&plan, &store, interrupted()?, &report).await
    });
    bar.finish_and_clear();
    Ok(say(&plan, &made?)?)
}

/// Resolves when a signal asks the command to end.
pub(super) fn interrupted() -> std::io::Result<impl Future> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    })
}

fn say(plan: &BackupPlan, set: &BackupSet) -> std::io::Result<()> {
    // Other servers that share PostgreSQL have logs of their own.
    let by = match plan.control {
        ControlAt::Sqlite(_) => "",
        ControlAt::Postgres(_) => " by this server",
    };
    writeln!(
        stdout().lock(),
        "{}: {}, with all batches that were acknowledged{by} before {}\nrestore it with: unjank restore {0} --data-dir NEW_FOLDER",
        plan.to,
        HumanBytes(set.bytes()),
        set.complete_until
    )
}

/// Shows progress on a bar.
pub(super) fn show(bar: &ProgressBar, what: &str, done: u64, all: u64) {
    bar.set_message(what.to_owned());
    bar.set_length(all.max(done));
    bar.set_position(done);
}
