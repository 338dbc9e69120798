//! A ClickHouse server of the operator: its address, and the wait until it can be used.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::config::Shared;
use crate::store::{ClickHouse, Login, Target, migrate};

/// Returns the target for the URL of a ClickHouse server.
pub(crate) fn external(shared: &Shared, url: &str) -> Target {
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

/// Compression on loopback only costs CPU.
fn is_loopback(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["localhost", "127.", "[::1]"]
        .iter()
        .any(|host| rest.starts_with(host))
}

/// Updates the schema of a ClickHouse server and then points the handle at it. Retries until the server answers.
pub(super) async fn connect(clickhouse: ClickHouse, target: Target, shutdown: CancellationToken) {
    let fresh = ClickHouse::away(clickhouse.database());
    fresh.point_at(Some(&target));
    loop {
        match migrate(&fresh).await {
            Ok(_) => break,
            Err(failure) => {
                tracing::error!(%failure, url = target.url, "cannot use ClickHouse yet; events are kept in the ingest log");
            }
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = sleep(Duration::from_secs(5)) => {}
        }
    }
    clickhouse.point_at(Some(&target));
    tracing::info!(url = target.url, "ClickHouse is ready");
}
