//! `unjank healthcheck`: for container engines and scripts.

use std::net::SocketAddr;
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
    /// The admin address to ask. Unset: what the server of the data folder says of itself.
    #[arg(long, env = "UNJANK_HEALTHCHECK", value_name = "ADDRESS")]
    address: Option<SocketAddr>,
}

pub(super) fn run(shared: &Shared, args: &HealthcheckArgs) -> anyhow::Result<()> {
    let address = match args.address {
        Some(address) => address,
        None => ServerFile::read(&shared.data_dir)?.admin_listen,
    };
    let (status, body) = runtime()?.block_on(async {
        tokio::time::timeout(Duration::from_secs(10), ask(address))
            .await
            .map_err(|_| anyhow::anyhow!("{address} did not answer within 10 s"))?
    })?;
    anyhow::ensure!(status.is_success(), "{address} answers {status}: {body}");
    Ok(())
}

async fn ask(address: SocketAddr) -> anyhow::Result<(hyper::StatusCode, String)> {
    let stream = tokio::net::TcpStream::connect(address)
        .await
        .map_err(|error| anyhow::anyhow!("no server answers on {address}: {error}"))?;
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
