//! `unjank symbol-parser`: the process in which the server parses symbol files. It limits itself before it reads a file.

use std::io::Write;

use clap::Args;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::symbols::{ParserRequest, run_parser};

#[derive(Args, Debug)]
pub(super) struct SymbolParserArgs {
    #[arg(long, value_name = "BYTES")]
    max_memory_bytes: u64,

    /// Time on the CPU.
    #[arg(long, value_name = "SECONDS")]
    max_seconds: u64,

    #[command(subcommand)]
    request: ParserRequest,
}

pub(super) fn run(args: &SymbolParserArgs) -> anyhow::Result<()> {
    // Memory of the program, without files mapped into memory.
    limit(Resource::Data, args.max_memory_bytes)?;
    limit(Resource::Cpu, args.max_seconds)?;
    limit(Resource::Core, 0)?;
    // A lookup file is smaller than its symbol file, except for mappings, which grow by half.
    limit(Resource::Fsize, 4 << 30)?;
    let mut out = std::io::stdout().lock();
    run_parser(&args.request, &mut out)?;
    Ok(out.flush()?)
}

fn limit(resource: Resource, most: u64) -> std::io::Result<()> {
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    Ok(setrlimit(resource, limit)?)
}
