//! A server takes an erasure over from a server that was paused just before it began a deletion. The paused server goes on while the other
//! one counts the rows.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::uri::PathAndQuery;
use axum::response::Response;
use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use unjank_database::{Actor, Control, ErasureKind};
use unjank_foundation::clock::UnixTime;
use unjank_foundation::task::Tasks;
use uuid::Uuid;

use crate::engine::{PASSWORD, USER, engine};
use crate::retention::shop;
use crate::server::{NOW, Server, spans};
use crate::wait;

const INSTALL: &str = "0b5a6b9e-6a53-4d3c-9a3c-1d2f6a1e7c11";

/// A way to the engine on which two deletions overtake a query: one before the engine reads the rows, and one before its answer arrives.
#[derive(Clone)]
struct Way {
    client: Client,
    /// A part of the query.
    query: String,
    before: String,
    after: String,
    is_over: Arc<AtomicBool>,
}

impl Way {
    /// Returns the URL. The way ends with the tasks.
    async fn open(self) -> (String, JoinSet<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(move |request: Request| self.clone().pass(request));
        let mut serving = JoinSet::new();
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
        (url, serving)
    }

    async fn pass(self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let is_the_query = String::from_utf8_lossy(&body).contains(&self.query);
        let is_overtaken = is_the_query && !self.is_over.swap(true, Ordering::SeqCst);
        if is_overtaken {
            self.run(&self.before).await;
        }
        let answer = self.forward(head, body).await;
        if is_overtaken {
            self.run(&self.after).await;
        }
        answer
    }

    async fn forward(&self, mut head: Parts, body: Bytes) -> Response {
        for name in [CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING] {
            head.headers.remove(name);
        }
        let rest = head.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let url = format!("{}{rest}", engine().url.trim_end_matches('/'));
        let request = self.client.request(head.method, url);
        let sent = request.headers(head.headers).body(body).send();
        let answer = sent.await.unwrap();
        let mut response = Response::builder().status(answer.status());
        for (name, value) in answer.headers() {
            if ![CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name) {
                response = response.header(name, value);
            }
        }
        let body = answer.bytes().await.unwrap();
        response.body(Body::from(body)).unwrap()
    }

    async fn run(&self, sql: &str) {
        let request = self.client.post(&engine().url).body(sql.to_owned());
        let request = request.basic_auth(USER, Some(PASSWORD));
        let answer = request.send().await.unwrap();
        assert!(answer.status().is_success(), "{sql}");
    }
}

/// Requests an erasure and begins it as a server does that is paused after it has recorded that it deletes two spans.
async fn paused_run(server: &Server, (project, kind, subject): (&str, ErasureKind, &str)) -> Uuid {
    let tasks = Tasks::default();
    let file = server.data_dir().join("control.sqlite");
    let url = format!("sqlite:{}", file.display());
    let control = Control::open(&url, &tasks).await.unwrap();
    let at = |seconds| UnixTime::from_micros(NOW) + Duration::from_secs(seconds);
    let ann = Actor::cli("ann");
    let requested = control.request_erasure((project, kind, subject), &ann, at(1));
    requested.await.unwrap();
    let skipped = BTreeSet::new();
    let begun = control.next_pass(at(3), &skipped, at(3));
    let mut pass = begun.await.unwrap();
    let mark = Uuid::new_v4();
    pass[0].work.marks.insert("spans".to_owned(), mark);
    pass[0].work.rows.insert("spans".to_owned(), 2);
    assert!(control.save_pass(&pass).await.unwrap());
    control.close().await;
    mark
}

/// Erases what has two spans, one of them with the name `first`. Returns the receipt.
async fn taken_over(
    mut server: Server,
    of: (&str, ErasureKind, &str),
    (query, whose): (&str, &str),
) -> Value {
    server.drained().await;
    server.end().await;
    let mark = paused_run(&server, of).await;
    let table = format!("`{}`.`spans`", server.database());
    let delete = |condition: &str| {
        format!(
            "ALTER TABLE {table} DELETE WHERE {whose} AND {condition} SETTINGS mutations_sync = 2"
        )
    };
    let way = Way {
        client: Client::new(),
        query: format!("{query} FROM {table} WHERE"),
        // The deletion of the paused server is halfway when the rows are counted.
        before: delete("name = 'first'"),
        after: delete(&format!("'erasure {mark}' != ''")),
        is_over: Arc::default(),
    };
    let is_over = Arc::clone(&way.is_over);
    let (url, _serving) = way.open().await;
    server.change(&["--clickhouse-url", &url]);
    server.start_again().await;
    let token = server.token("admin").await;
    let path = match of.1 {
        ErasureKind::Project => "/api/v1/erasures".to_owned(),
        _ => format!("/api/v1/projects/{}/erasures", of.0),
    };
    let mut erasure = Value::Null;
    wait::until("the erasure", async || {
        let all = server.call(&token, Method::GET, &path, None).await.body;
        erasure = all["erasures"][0].clone();
        erasure["state"] == "done"
    })
    .await;
    assert!(is_over.load(Ordering::SeqCst), "no rows were counted");
    server.end().await;
    erasure["receipt"].clone()
}

fn two_spans() -> Value {
    let mut batch = spans(2);
    batch["resource"]["install_id"] = json!(INSTALL);
    batch["spans"][0]["name"] = json!("first");
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_an_install_that_a_paused_server_deletes_during_the_count_are_counted_once() {
    let server = Server::start().await;
    assert_eq!(server.send(&two_spans()).await.status, 202);
    let of = ("default", ErasureKind::Install, INSTALL);
    let whose = format!("install_id = '{INSTALL}'");
    let receipt = taken_over(server, of, ("AS counted", &whose)).await;
    assert_eq!(receipt["rows"]["spans"], 2, "{receipt}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_a_project_that_a_paused_server_deletes_during_the_count_are_counted_once() {
    let server = Server::start().await;
    let (_, key) = shop(&server).await;
    let batch = two_spans().to_string();
    wait::until("acceptance of the new key", async || {
        let request = server.request_with(&key).body(batch.clone());
        request.send().await.unwrap().status() == 202
    })
    .await;
    let of = ("shop", ErasureKind::Project, "");
    let whose = "project = 'shop'";
    let receipt = taken_over(server, of, ("SELECT count()", whose)).await;
    assert_eq!(receipt["rows"]["spans"], 2, "{receipt}");
}
