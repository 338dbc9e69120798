//! The engine alone: `engine <data folder> [address] [library]`. Ends at Ctrl-C, at SIGTERM or when standard input ends.

use std::io::Write;
use std::path::{Path, PathBuf};

use tokio::io::AsyncReadExt;
use unjank_engine::{EngineOptions, library, serve};

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    let served = runtime.block_on(run());
    // Reading standard input cannot be called off; the process ends without waiting for it.
    runtime.shutdown_background();
    served
}

async fn run() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let data_dir = PathBuf::from(arguments.next().unwrap_or_else(|| "engine-data".to_owned()));
    let address = arguments
        .next()
        .unwrap_or_else(|| "127.0.0.1:8123".to_owned());
    let explicit = arguments.next().map(PathBuf::from);
    let cache = std::env::home_dir()
        .unwrap_or_default()
        .join(".cache/unjank/engine");
    let report = |message: &str| drop(writeln!(std::io::stderr(), "{message}"));
    let library = library::locate_or_fetch(
        explicit.as_deref().filter(|path| *path != Path::new("")),
        &cache,
        &report,
    )?;
    let password = std::env::var_os("UNJANK_ENGINE_PASSWORD")
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let mut options = EngineOptions {
        data_dir,
        library,
        password,
        ..EngineOptions::default()
    };
    if let Some(bytes) =
        std::env::var_os("UNJANK_ENGINE_MEMORY").and_then(|text| text.to_str()?.parse().ok())
    {
        options.max_memory_bytes = bytes;
    }
    let listener = tokio::net::TcpListener::bind(&address).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let on_ready = move || Ok(writeln!(std::io::stdout(), "{url}")?);
    serve(options, listener, on_ready, ended()).await
}

async fn ended() {
    let mut terminated =
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok();
    let terminated = async {
        match &mut terminated {
            Some(signal) => drop(signal.recv().await),
            None => std::future::pending().await,
        }
    };
    let input_ended = async {
        let mut input = tokio::io::stdin();
        let mut bytes = [0; 64];
        while input.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
        () = input_ended => {}
    }
}
