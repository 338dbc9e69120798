//! The PostgreSQL that all tests share, and a proxy to it.

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::engine::engine;

#[derive(Clone, Copy)]
pub(crate) struct Postgres {
    pub(crate) port: u16,
}

pub(crate) fn postgres() -> Postgres {
    let port = engine().postgres_port;
    Postgres { port }
}

impl Postgres {
    pub(crate) fn url(self, database: &str) -> String {
        format!(
            "postgres://postgres:test@127.0.0.1:{}/{database}",
            self.port
        )
    }

    /// Creates an empty database and returns its URL.
    pub(crate) async fn database(self) -> String {
        let name = format!("test_{}", Uuid::new_v4().simple());
        let mut connection = PgConnection::connect(&self.url("postgres")).await.unwrap();
        // Unlike template1, template0 accepts no connections, so there are none to wait for.
        let sql = format!("CREATE DATABASE {name} TEMPLATE template0");
        sqlx::query(AssertSqlSafe(sql))
            .execute(&mut connection)
            .await
            .unwrap();
        connection.close().await.unwrap();
        self.url(&name)
    }
}

/// A proxy to PostgreSQL. While it is blocked, connections stay open and no byte gets through.
pub(crate) struct Way {
    pub(crate) port: u16,
    pub(crate) blocked: watch::Sender<bool>,
    /// Aborted when the proxy is dropped.
    _serving: JoinSet<()>,
}

impl Way {
    pub(crate) async fn to(postgres: Postgres) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let blocked = watch::Sender::new(false);
        let mut serving = JoinSet::new();
        serving.spawn(pass_all(listener, postgres.port, blocked.subscribe()));
        Self {
            port,
            blocked,
            _serving: serving,
        }
    }
}

async fn pass_all(listener: tokio::net::TcpListener, to: u16, blocked: watch::Receiver<bool>) {
    let mut passing = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let server = TcpStream::connect(("127.0.0.1", to)).await.unwrap();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        passing.spawn(pass(from_client, to_server, blocked.clone()));
        passing.spawn(pass(from_server, to_client, blocked.clone()));
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut blocked: watch::Receiver<bool>) {
    let mut bytes = vec![0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        let is_open = blocked.wait_for(|blocked| !blocked).await.is_ok();
        if !is_open || to.write_all(&bytes[..read]).await.is_err() {
            break;
        }
    }
}
