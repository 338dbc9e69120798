//! The program `unjank`: one binary for the server, the embedded engine and the operator's tools.

use std::process::ExitCode;

use unjank_server::cli::{self, Cli};
use unjank_server::config;

/// Batches are many short-lived allocations on several threads.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli: Cli = match config::parse() {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    cli::run(cli)
}
