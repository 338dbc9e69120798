//! `unjank symbol-parser`: the process in which the server parses symbol files. It limits itself before it reads a file.

use std::io::Write;

use clap::Args;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::symbols::{ParserRequest, run_parser};

/// The CPU priority, as in `nice`. Devices and people wait for the other work of the server.
const NICE: i32 = 10;

/// The stack of the thread that waits for the end of the server.
const WAITING_STACK: usize = 128 << 10;

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
    limit(Resource::Data, args.max_memory_bytes, 0)?;
    // The signal at the soft limit shows the server the reason. The signal at the hard limit would not.
    limit(Resource::Cpu, args.max_seconds, 5)?;
    limit(Resource::Core, 0, 0)?;
    // A lookup file is smaller than its symbol file, except for mappings, which grow by half.
    limit(Resource::Fsize, 4 << 30, 0)?;
    // The parser opens three files.
    limit(Resource::Nofile, 32, 0)?;
    // If the priority cannot be lowered, files are parsed anyway.
    let _lowered = rustix::process::nice(NICE).is_ok();
    confine(&args.request)?;
    end_with_server()?;
    let mut out = std::io::stdout().lock();
    run_parser(&args.request, &mut out)?;
    Ok(out.flush()?)
}

/// Ends the process when the server closes its end of the standard input, or is killed. Nobody would read the answer.
fn end_with_server() -> std::io::Result<()> {
    // A server of an older version gives the process no pipe.
    let input = rustix::fs::fstat(std::io::stdin())?;
    if rustix::fs::FileType::from_raw_mode(input.st_mode) != rustix::fs::FileType::Fifo {
        return Ok(());
    }
    let wait = || {
        let _closed = std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).is_ok();
        #[expect(clippy::exit, reason = "this thread ends the parser")]
        std::process::exit(1);
    };
    let thread = std::thread::Builder::new().stack_size(WAITING_STACK);
    thread.spawn(wait).map(drop)
}

fn limit(resource: Resource, most: u64, more: u64) -> std::io::Result<()> {
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most + more),
    };
    Ok(setrlimit(resource, limit)?)
}

/// Confines the process to its files, if the system can: it reads the symbol file, writes to the folder of the lookup file, and has no
/// network.
#[cfg(target_os = "linux")]
fn confine(request: &ParserRequest) -> anyhow::Result<()> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, PathBeneath, PathFd, Ruleset, RulesetAttr,
        RulesetCreatedAttr, Scope,
    };
    let abi = ABI::V6;
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?
        .create()?;
    for file in request.files() {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(file)?, AccessFs::ReadFile))?;
    }
    if let Some(folder) = request.out().and_then(std::path::Path::parent) {
        let write = AccessFs::MakeReg | AccessFs::WriteFile | AccessFs::ReadFile;
        rules = rules.add_rule(PathBeneath::new(PathFd::new(folder)?, write))?;
    }
    rules.restrict_self()?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn confine(_: &ParserRequest) -> anyhow::Result<()> {
    Ok(())
}
