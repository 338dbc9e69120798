//! `unjank symbols`: uploads symbol files to a server, and lists, checks and removes the server's files. Works over HTTP, so it needs only the
//! address of the server and a token.

mod check;
mod dry_run;
mod files;
mod list;
mod progress;
mod remote_files;
mod table;
mod upload;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::runtime;

/// The exit code if the command could not do its work: invalid arguments, or no answer from the server.
pub(super) const FAILED: u8 = 2;
/// The exit code if a symbol file is refused, missing or wrong.
const INCOMPLETE: u8 = 1;

/// Upload symbol files, so that stacks of shipped apps are readable; list, check and remove them
///
/// A release build has no names: R8 renames classes and methods, and linkers strip native code. The build keeps the names in symbol files.
/// Upload them with each release, from the machine that builds it. Stacks that arrived before are repaired within seconds.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A token that can do nothing else:
  unjank token create --name build-server --role editor --project shop --only-symbols

Examples:
  export UNJANK_URL=https://unjank.example.com UNJANK_TOKEN=…
  unjank symbols upload --project shop app/build/outputs/mapping/release/mapping.txt
  unjank symbols upload --project shop target/release/shop
  unjank symbols check --project shop target/release/shop
  unjank symbols check --project shop --app-version 4.12.0
  unjank symbols list --project shop")]
pub(super) struct SymbolsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Upload(upload::UploadArgs),
    List(list::ListArgs),
    Check(check::CheckArgs),
    Remove(list::RemoveArgs),
}

pub(super) fn run(args: &SymbolsArgs) -> anyhow::Result<ExitCode> {
    runtime()?.block_on(async {
        match &args.command {
            Command::Upload(args) => upload::run(args).await,
            Command::List(args) => list::run(args).await,
            Command::Check(args) => check::run(args).await,
            Command::Remove(args) => list::remove(args).await,
        }
    })
}

/// Returns the exit code of a command that checked files.
fn exit_code(is_complete: bool) -> ExitCode {
    match is_complete {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(INCOMPLETE),
    }
}
