//! `unjank symbols upload` through connections that break.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::symbols::mapping;
use crate::symbols_command::{server_with_token, symbols};

/// Forwards connections to a server, and cuts the connections of the first uploads in the middle.
async fn breaking_proxy(server: &str, cuts: Arc<AtomicU32>) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = server.strip_prefix("http://").unwrap().to_owned();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let (client, _) = listener.accept().await.unwrap();
            connections.spawn(pass_on(client, server.clone(), Arc::clone(&cuts)));
        }
    });
    (url, tasks)
}

async fn pass_on(mut client: TcpStream, server: String, cuts: Arc<AtomicU32>) {
    let mut upstream = TcpStream::connect(server).await.unwrap();
    let (from_client, mut to_client) = client.split();
    let (mut from_server, to_server) = upstream.split();
    tokio::select! {
        () = pass_until_cut(from_client, to_server, &cuts) => {}
        _ = tokio::io::copy(&mut from_server, &mut to_client) => {}
    }
}

/// Ends after a mebibyte as long as there are cuts left.
async fn pass_until_cut(mut from: ReadHalf<'_>, mut to: WriteHalf<'_>, cuts: &AtomicU32) {
    const PASSED: usize = 1 << 20;
    let mut passed = 0;
    let mut piece = vec![0; 64 << 10];
    loop {
        let read = from.read(&mut piece).await.unwrap_or_default();
        if read == 0 || to.write_all(&piece[..read]).await.is_err() {
            return;
        }
        passed += read;
        let left = |cuts: u32| cuts.checked_sub(1);
        let order = Ordering::Relaxed;
        if passed > PASSED && cuts.fetch_update(order, order, left).is_ok() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_survive_connections_that_break() {
    let (server, token) = server_with_token().await;
    let cuts = Arc::new(AtomicU32::new(3));
    let (url, _tasks) = breaking_proxy(&server.url, Arc::clone(&cuts)).await;
    // Two chunks, which compress to half their size.
    let mut file = mapping();
    let mut random = fastrand::Rng::with_seed(1);
    while file.len() < 9 << 20 {
        let line = format!("# {:032x}{:032x}\n", random.u128(..), random.u128(..));
        file.extend_from_slice(line.as_bytes());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mapping.txt");
    std::fs::write(&path, file).unwrap();
    let uploaded = symbols(&url, &token, &["upload", path.to_str().unwrap()]).await;
    uploaded.expect(0, &["uploaded"]);
    assert_eq!(cuts.load(Ordering::Relaxed), 0, "not all cuts were made");
}
