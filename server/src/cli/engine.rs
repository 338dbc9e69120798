//! `unjank engine`: the embedded ClickHouse without the server. `unjank clickhouse`: the process in which it runs.

use std::io::Write;
use std::net::SocketAddr;

use clap::Args;
use serde::Serialize;
use tokio::io::AsyncReadExt;

use super::runtime;
use super::server::{keep_files_private, refuse_unfinished};
use crate::config::{Engine, Shared, bytes, engine_passwords};
use crate::serve::embedded;
use crate::store::EngineSettings;

#[derive(Args, Debug)]
#[command(after_help = "\
Users and their passwords:
  admin   every database. Exists only with UNJANK_ENGINE_PASSWORD
  writer  reads and writes the database of --clickhouse-database. UNJANK_ENGINE_WRITER_PASSWORD; by default random
  reader  reads that database and its entries in `system`. UNJANK_ENGINE_READER_PASSWORD; by default random
Random passwords are in engine.json in the data folder, which only its owner can read. `unjank sql` uses it.")]
pub(super) struct EngineArgs {
    /// The address of ClickHouse's HTTP interface; port 0 picks a free port. Keep it on loopback.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8123")]
    listen: SocketAddr,

    /// The memory limit, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 30, value_parser = bytes)]
    max_memory_bytes: u64,

    /// Only download the library to the cache, verify it, and print its path.
    #[arg(long)]
    fetch_only: bool,

    /// The nice level of the process, 0 to 19. Higher levels yield more CPU time to other processes.
    #[arg(long, value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=19))]
    nice: i32,

    /// Exit when standard input ends, so that the engine never outlives the program that started it.
    #[arg(long)]
    until_stdin_ends: bool,

    #[command(flatten)]
    engine: Engine,
}

/// The output once ClickHouse accepts connections.
#[derive(Serialize)]
struct Ready {
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp: Option<SocketAddr>,
    pid: u32,
}

pub(super) fn run(shared: &Shared, args: &EngineArgs) -> anyhow::Result<()> {
    let settings = EngineSettings {
        listen: args.listen,
        tcp_listen: args.engine.engine_tcp_listen,
        passwords: engine_passwords(),
        sources: args.engine.sources(),
        max_memory_bytes: args.max_memory_bytes,
        nice: args.nice,
        ..embedded(shared)?
    };
    if args.fetch_only {
        let clickhouse = settings.clickhouse()?;
        return Ok(writeln!(
            std::io::stdout(),
            "{}",
            clickhouse.path().display()
        )?);
    }
    refuse_unfinished(shared)?;
    keep_files_private();
    let runtime = runtime()?;
    let served = runtime.block_on(serve(&settings, args.until_stdin_ends));
    // A blocking read of standard input cannot be cancelled.
    runtime.shutdown_background();
    served
}

async fn serve(settings: &EngineSettings, until_stdin_ends: bool) -> anyhow::Result<()> {
    let ports = settings.ports()?;
    let ended = ended(until_stdin_ends);
    tokio::pin!(ended);
    let mut started = tokio::select! {
        started = settings.start(&ports) => started?,
        () = &mut ended => return Ok(()),
    };
    started.announce(&settings.data_dir)?;
    let ready = Ready {
        url: started.file.url.clone(),
        tcp: started.file.tcp,
        pid: started.file.pid,
    };
    let mut out = std::io::stdout();
    writeln!(out, "{}", serde_json::to_string(&ready)?)?;
    out.flush()?;
    tokio::select! {
        ended = started.engine.ended() => anyhow::bail!(ended),
        () = &mut ended => {}
    }
    started.stop(&settings.data_dir).await
}

/// Resolves at SIGINT or SIGTERM, and if requested when standard input ends.
async fn ended(until_stdin_ends: bool) {
    let stdin = async {
        if !until_stdin_ends {
            return std::future::pending().await;
        }
        let mut stdin = tokio::io::stdin();
        let mut byte = [0_u8; 64];
        while stdin.read(&mut byte).await.is_ok_and(|read| read > 0) {}
    };
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => _ = signal.recv().await,
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        () = stdin => {}
        () = terminated => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

/// The process of an engine. [`EngineSettings::start`] starts it; it is not for manual use.
#[derive(Args, Debug)]
pub(super) struct HostArgs {
    instructions: String,
}

pub(super) fn host(args: &HostArgs) -> anyhow::Result<()> {
    unjank_engine::host::run(&args.instructions)
}
