//! `unjank engine`: the embedded ClickHouse in a process of its own.

use std::io::Write;
use std::net::SocketAddr;

use clap::Args;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use unjank_engine::EngineOptions;

use super::runtime;
use crate::config::Shared;
use crate::store::{ENGINE_PASSWORD_VARIABLE, EngineReady, engine_library};

#[derive(Args, Debug)]
#[command(
    after_help = "The password of the user `default` comes from the environment variable UNJANK_ENGINE_PASSWORD."
)]
pub(super) struct EngineArgs {
    /// Where to listen; port 0 takes a free one. Keep it on loopback.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8123")]
    listen: SocketAddr,

    /// The library (libchdb.so). Unset: fetched once with npm and cached.
    #[arg(long, value_name = "FILE")]
    library: Option<std::path::PathBuf>,

    /// The folder of the engine's data. Unset: `engine` under the data folder.
    #[arg(long, value_name = "DIR")]
    engine_dir: Option<std::path::PathBuf>,

    /// The most memory it may use, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 4 << 30)]
    max_memory_bytes: u64,

    /// Only fetch the library into the cache, check it, and print where it is.
    #[arg(long)]
    fetch_only: bool,

    /// How far it steps back for other processes, 0 to 19: a supervised one lets its server answer devices first.
    #[arg(long, value_name = "LEVEL", default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..=19))]
    nice: i32,

    /// End when standard input ends: how a supervisor takes its engine along.
    #[arg(long)]
    until_stdin_ends: bool,
}

pub(super) fn run(shared: &Shared, args: &EngineArgs) -> anyhow::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a password is not a setting: it never stands in a file or an argument"
    )]
    let password = std::env::var(ENGINE_PASSWORD_VARIABLE).unwrap_or_default();
    anyhow::ensure!(
        !password.is_empty() || args.listen.ip().is_loopback(),
        "set {ENGINE_PASSWORD_VARIABLE} before listening on {}, which is not loopback",
        args.listen
    );
    let explicit = args.library.as_deref().or(shared.engine_library.as_deref());
    let library = engine_library(explicit, shared.cache_dir.as_deref())?;
    if args.fetch_only {
        return Ok(writeln!(std::io::stdout(), "{}", library.display())?);
    }
    // Before there are threads, so that all have it.
    if args.nice > 0
        && let Err(error) = rustix::process::nice(args.nice)
    {
        tracing::warn!(%error, "the engine keeps its priority");
    }
    let options = EngineOptions {
        data_dir: args
            .engine_dir
            .clone()
            .unwrap_or_else(|| shared.data_dir.join("engine")),
        library,
        password,
        max_memory_bytes: args.max_memory_bytes,
        ..EngineOptions::default()
    };
    runtime()?.block_on(async {
        let listener = TcpListener::bind(args.listen).await?;
        let ready = EngineReady {
            url: format!("http://{}", listener.local_addr()?),
        };
        let until_stdin_ends = args.until_stdin_ends;
        let on_ready = move || {
            let mut out = std::io::stdout().lock();
            serde_json::to_writer(&mut out, &ready)?;
            writeln!(out)?;
            anyhow::Ok(out.flush()?)
        };
        unjank_engine::serve(options, listener, on_ready, ended(until_stdin_ends)).await
    })
}

/// Resolves at SIGINT or SIGTERM, and when standard input ends if asked.
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
        // A supervised engine leaves Ctrl-C to its supervisor, which drains first.
        _ = tokio::signal::ctrl_c(), if !until_stdin_ends => {}
    }
}
