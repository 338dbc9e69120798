//! `unjank healthcheck`: for container engines and scripts.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;

use super::runtime;
use crate::config::Shared;
use crate::serve::{ServerFile, ServerProcess};

#[derive(Args, Debug)]
pub(super) struct HealthcheckArgs {
    /// The server's admin address, as an IP address with a port. Unset: the address in the data folder of the running server. In a container
    /// of its own, the command may need another address than that one.
    #[arg(long, env = "UNJANK_HEALTHCHECK", value_name = "ADDRESS")]
    address: Option<SocketAddr>,
}

pub(super) fn run(shared: &Shared, args: &HealthcheckArgs) -> anyhow::Result<()> {
    let (address, doubt) = match args.address {
        Some(address) => (address, None),
        None => in_data_folder(&shared.data_dir)?,
    };
    let answer = runtime()?.block_on(async {
        tokio::time::timeout(Duration::from_secs(10), ask(address))
            .await
            .map_err(|_| anyhow::anyhow!("{address} did not respond within 10 s"))?
    });
    let (status, body) = match doubt {
        Some(doubt) => answer.context(doubt)?,
        None => answer?,
    };
    anyhow::ensure!(status.is_success(), "{address} returned {status}: {body}");
    Ok(())
}

/// Returns the address of the server that uses a data folder, and why an answer may be missing although that server runs.
fn in_data_folder(data_dir: &Path) -> anyhow::Result<(SocketAddr, Option<String>)> {
    let server = ServerFile::read(data_dir)?;
    let (folder, pid) = (data_dir.display(), server.pid);
    let doubt = match server.process() {
        ServerProcess::MayRun => None,
        // Another server may listen on the port of one that was killed.
        ServerProcess::Ended => anyhow::bail!("the server of {folder} (process {pid}) has ended"),
        ServerProcess::Elsewhere => Some(format!(
            "the server of {folder} (process {pid}) belongs to another PID namespace, such as a container, so it is unknown here whether it \
             has ended. If it runs, give the address at which it can be reached from here with --address"
        )),
    };
    Ok((server.admin_listen, doubt))
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
