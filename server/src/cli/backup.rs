//! `unjank backup`: copies everything that an installation needs, while the server runs.

use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::PathBuf;

use clap::Args;
use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use tokio::signal::unix::{SignalKind, signal};

use super::server::keep_files_private;
use super::{DEFAULT_WAIT, runtime, store_in_use};
use crate::backup::{BackupPlan, BackupSet, make};
use crate::config::Shared;

/// Copy all data into a folder, while the server runs
///
/// The folder gets the tables of ClickHouse, the ingest log, the control database, the secret, the dead letters and the symbol files. Every batch that was acknowledged before the log is copied is in the backup, once. Restore it with `unjank restore`.
///
/// The embedded engine first writes the tables into the data folder, so the data folder needs room for a second copy of the tables. A backup on the same disk protects against mistakes, not against the loss of the disk: copy it to another machine.
///
/// Your own ClickHouse writes the tables itself: --clickhouse-to says where. If the control database is in PostgreSQL, `pg_dump` must be on the PATH. Symbol files in a bucket (--symbols-url) and the setting `UNJANK_SECRET` are not copied.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  unjank backup /backups/$(date -u +%F)                     the embedded engine
  unjank backup /backups/today --most-mib-per-second 50     leave the disk to the server
  unjank backup /backups/today --clickhouse-url http://clickhouse:8123 \\
      --clickhouse-to \"S3('https://bucket.s3.amazonaws.com/today/{part}', 'key', 'secret')\""
)]
pub(super) struct BackupArgs {
    /// The folder for the backup. It must not exist, or be empty. Only its owner can read it.
    folder: PathBuf,

    /// How fast ClickHouse reads the tables, in MiB per second. 0: as fast as it can.
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    most_mib_per_second: u32,

    /// Where your own ClickHouse writes the tables, as in its statement BACKUP: a disk, a bucket or a file, with `{part}` in its name.
    #[arg(long, value_name = "SQL", value_parser = with_part)]
    clickhouse_to: Option<String>,
}

/// Checks that the three parts of the tables get three places.
pub(super) fn with_part(text: &str) -> Result<String, String> {
    if text.contains("{part}") {
        return Ok(text.to_owned());
    }
    Err("must contain {part}, such as Disk('backups', 'today/{part}')".to_owned())
}

pub(super) fn run(shared: &Shared, args: BackupArgs) -> anyhow::Result<()> {
    keep_files_private();
    anyhow::ensure!(
        shared.clickhouse_url.is_some() || args.clickhouse_to.is_none(),
        "the embedded engine writes into the folder of the backup: leave out --clickhouse-to, or set --clickhouse-url"
    );
    anyhow::ensure!(
        shared.clickhouse_url.is_none() || args.clickhouse_to.is_some(),
        "your own ClickHouse writes its tables itself: say where (--clickhouse-to), such as \"S3('https://…/{{part}}', '…', '…')\""
    );
    let plan = BackupPlan {
        to: args.folder,
        data_dir: shared.data_dir.clone(),
        control_url: control_url(shared),
        clickhouse_to: args.clickhouse_to,
        most_bytes_per_second: u64::from(args.most_mib_per_second) << 20,
    };
    let progress = Progress::new();
    let report = |what: &str, done, all| progress.show(what, done, all);
    let made = runtime()?.block_on(async {
        let store = store_in_use(shared, DEFAULT_WAIT).await?;
        make(&plan, &store, interrupted()?, &report).await
    });
    progress.end();
    Ok(say(&plan, &made?)?)
}

/// Resolves when the command has to end.
fn interrupted() -> std::io::Result<impl Future> {
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
    let by = match plan.control_url.starts_with("sqlite:") {
        true => "",
        false => " by this server",
    };
    writeln!(
        stdout().lock(),
        "{}: {}, with all batches that were acknowledged{by} before {}\nrestore it with: unjank restore {0} --data-dir NEW_FOLDER",
        plan.to.display(),
        HumanBytes(set.bytes()),
        set.complete_until
    )
}

/// The URL of the control database.
fn control_url(shared: &Shared) -> String {
    let default = || {
        format!(
            "sqlite:{}",
            shared.data_dir.join("control.sqlite").display()
        )
    };
    let url = shared.database_url.as_ref();
    url.map_or_else(default, |url| url.reveal().to_owned())
}

/// A bar on a terminal; nothing otherwise.
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new() -> Self {
        let bar = match stderr().is_terminal() {
            true => ProgressBar::new(0),
            false => ProgressBar::hidden(),
        };
        let template = "{elapsed_precise} [{bar:32}] {bytes}/{total_bytes} {bytes_per_sec} {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self(bar)
    }

    pub(super) fn show(&self, what: &str, done: u64, all: u64) {
        self.0.set_message(what.to_owned());
        self.0.set_length(all.max(done));
        self.0.set_position(done);
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}
