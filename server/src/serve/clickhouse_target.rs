//! The ClickHouse of the settings: a server of the operator, or the embedded engine.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::config::Shared;
use crate::store::{
    ClickHouse, EnginePasswords, EngineSettings, IngestLog, Login, Target, migrate_used,
    watch_server,
};

/// Returns the target for the URL of a ClickHouse server. Fails if the settings name a cluster.
pub(crate) fn external(shared: &Shared, url: &str) -> anyhow::Result<Target> {
    shared.cluster.refuse()?;
    Ok(any_host(shared, url))
}

/// Returns the target for the URL of a ClickHouse server, which may be a host of a cluster.
pub(crate) fn any_host(shared: &Shared, url: &str) -> Target {
    let login = Login {
        user: shared.clickhouse_user.clone(),
        password: shared.clickhouse_password.reveal().to_owned(),
    };
    Target {
        url: url.to_owned(),
        writer: login.clone(),
        reader: login,
        database: shared.clickhouse_database.clone(),
        compress: !is_loopback(url),
    }
}

/// Returns the settings of the embedded engine, with a free port on loopback and random passwords.
pub(crate) fn embedded(shared: &Shared) -> std::io::Result<EngineSettings> {
    Ok(EngineSettings {
        program: shared.engine_program()?,
        data_dir: shared.data_dir.clone(),
        engine_dir: shared.data_dir.join("engine"),
        binary: shared.engine_binary.clone(),
        library: shared.engine_library.clone(),
        cache_dir: shared.cache_dir.clone(),
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        tcp_listen: None,
        database: shared.clickhouse_database.clone(),
        passwords: EnginePasswords::default(),
        sources: Vec::new(),
        max_memory_bytes: 4 << 30,
        nice: 0,
    })
}

/// Compression on loopback only costs CPU.
fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["localhost", "127.", "[::1]"]
        .iter()
        .any(|host| rest.starts_with(host))
}

/// Updates the schema of a ClickHouse server, retrying until the server answers, and then points the handle at it. Watches the server until
/// `shutdown`.
pub(super) async fn connect(
    clickhouse: ClickHouse,
    target: Target,
    log: IngestLog,
    shutdown: CancellationToken,
) {
    let fresh = ClickHouse::away(clickhouse.database());
    fresh.point_at(Some(&target));
    let connected = async {
        while let Err(failure) = migrate_used(&fresh, log.drained_and_durable().0).await {
            tracing::error!(%failure, url = target.url, "cannot use ClickHouse yet; events are kept in the ingest log");
            sleep(Duration::from_secs(5)).await;
        }
        clickhouse.point_at(Some(&target));
        tracing::info!(url = target.url, "ClickHouse is ready");
    };
    let watched = async { tokio::join!(connected, watch_server(&fresh, &clickhouse)) };
    tokio::select! {
        () = shutdown.cancelled() => {}
        ((), ()) = watched => {}
    }
}
