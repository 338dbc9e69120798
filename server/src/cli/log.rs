//! `unjank log`: the ingest log of a server that is lost.

use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::pin::pin;

use clap::{Args, Subcommand};
use tokio_util::sync::CancellationToken;

use super::backup::{interrupted, show};
use super::byte_bar::byte_bar;
use super::runtime;
use super::server::{keep_files_private, refuse_unfinished};
use crate::config::Shared;
use crate::serve::{DrainedLog, drain_log};

/// The ingest log of a lost server: store what waits in it
#[derive(Args, Debug)]
pub(super) struct LogArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Drain(DrainArgs),
}

/// Store what waits in the ingest log of a lost server, without starting a server
///
/// Use it if several servers share one PostgreSQL and one ClickHouse, and one of them is lost, but not its disk: copy its data folder, or only the folder `log`, to a machine that reaches both databases. The command stores all batches of the log exactly once, also those that devices have sent again to other servers, and rolls them up. It needs the same --clickhouse-… and --database-url as the servers. It needs no secret, and it listens on no port.
///
/// Run the command as the user of the server, so that a server that comes back can read its folder. The folder must be writable. The log shrinks while it is drained. If ClickHouse is away, the command waits. Ctrl-C ends it at any time, and nothing is lost: run the same command again.
///
/// If the server comes back on its own folder within 7 days, even while the command runs, it stores nothing twice: it waits until the command has ended, and then compares its log with the rows in ClickHouse. The command refuses a folder that a server uses, and a copy of a log whose server stores batches. It waits if that server was lost less than two minutes ago.
///
/// Two limits: drain the log within 7 days, because ClickHouse forgets the ids of batches after that. If you drain a copy, delete the original afterwards. A server that hangs in the middle of storing a batch, and wakes up while a copy of its log is drained, may store rows of that batch twice: stop it first if you can reach it.
///
/// With the embedded engine or SQLite, start `unjank serve` on the folder instead.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Example:
  unjank log drain /mnt/lost-server/unjank --clickhouse-url http://clickhouse:8123 \\
      --database-url postgres://unjank:…@postgres/unjank

Exit codes: 0 if nothing of the log is left to store, 1 otherwise."
)]
struct DrainArgs {
    /// The data folder of the lost server, or any folder with its folder `log`. `drain.json` and `dead-letter` are used if they are there. --data-dir is ignored.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

pub(super) fn run(shared: &Shared, args: LogArgs) -> anyhow::Result<()> {
    let Command::Drain(DrainArgs { folder }) = args.command;
    keep_files_private();
    let shared = Shared {
        data_dir: folder,
        ..shared.clone()
    };
    refuse_unfinished(&shared)?;
    let bar = byte_bar();
    let report = |what: &str, done, all| show(&bar, what, done, all);
    let drained = runtime()?.block_on(async {
        let interrupted = interrupted()?;
        let stop = CancellationToken::new();
        let mut draining = pin!(drain_log(&shared, &stop, &report));
        tokio::select! {
            drained = &mut draining => drained,
            _ = interrupted => {
                stop.cancel();
                draining.await
            }
        }
    });
    bar.finish_and_clear();
    let drained = drained?;
    say(&shared.data_dir, &drained, &mut stdout().lock())?;
    anyhow::ensure!(
        drained.totals.is_complete,
        "interrupted: {} records wait in the log, and some rows may not be rolled up. Nothing is lost: run the same command again",
        drained.left
    );
    Ok(())
}

fn say(folder: &Path, drained: &DrainedLog, out: &mut impl Write) -> std::io::Result<()> {
    let totals = drained.totals;
    let folder = folder.display();
    writeln!(
        out,
        "{folder}: drained {} records with {} batches: {} stored now, {} stored before",
        totals.records,
        totals.batches,
        totals.batches.saturating_sub(totals.stored_before),
        totals.stored_before
    )?;
    if drained.damaged > 0 {
        writeln!(
            out,
            "damaged parts of the log: {}, whose records are lost; the messages above say where",
            drained.damaged
        )?;
    }
    match drained.dead_letters {
        0 => writeln!(out, "dead letters: 0")?,
        items => writeln!(
            out,
            "dead letters: {items} in {folder}/dead-letter; see them with: unjank dead-letter list --data-dir {folder}"
        )?,
    }
    match (totals.is_complete, drained.dead_letters) {
        (false, _) => Ok(()),
        (true, 0) => writeln!(
            out,
            "nothing is left to store: delete {folder}, unless you need its other files"
        ),
        (true, _) => writeln!(
            out,
            "nothing is left in the log: retry or drop the dead letters, then delete {folder}, unless you need its other files"
        ),
    }
}
