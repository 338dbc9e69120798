//! `unjank healthcheck`: for container engines and scripts.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;

use super::runtime;
use crate::config::Shared;
use crate::serve::ServerFile;

#[derive(Args, Debug)]
pub(super) struct HealthcheckArgs {
    /// The server's admin address. Unset: the address in the data folder of the running server.
    #[arg(long, env = "UNJANK_HEALTHCHECK", value_name = "ADDRESS")]
    address: Option<SocketAddr>,
}

pub(super) fn run(shared: &Shared, args: &HealthcheckArgs) -> anyhow::Result<()> {
    let address = match args.address {
        Some(address) => address,
        None => running(&shared.data_dir)?.admin_listen,
    };
    let (status, body) = runtime()?.block_on(async {
        tokio::time::timeout(Duration::from_secs(10), ask(address))
            .await
            .map_err(|_| anyhow::anyhow!("{address} did not respond within 10 s"))?
    })?;
    anyhow::ensure!(status.is_success(), "{address} returned {status}: {body}");
    Ok(())
}

/// Another server may listen on the port of one that was killed.
fn running(data_dir: &Path) -> anyhow::Result<ServerFile> {
    let server = ServerFile::read(data_dir)?;
    anyhow::ensure!(
        server.is_running(),
        "the server of {} (process {}) has ended",
        data_dir.display(),
        server.pid
    );
    Ok(server)
}

async fn ask(address: SocketAddr) -> anyhow::Result<(hyper::StatusCode, String)> {
    let stream = tokio::net::TcpStream::connect(address)
        .await
        .map_err(|error| anyhow::anyhow!("cannot connect to {address}: {error}"))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = hyper::Request::get("/readyz")
        .header("host", address.to_string())
        .body(Empty::<Bytes>::new())?;
    let answer = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        anyhow::Ok((status, String::from_utf8_lossy(&body).into_owned()))
    };
    tokio::select! {
        answer = answer => answer,
        ended = connection => Err(ended.err().map_or_else(|| anyhow::anyhow!("the connection closed"), Into::into)),
    }
}
