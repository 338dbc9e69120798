//! An overloaded server continues earlier uploads, refuses new ones with `Retry-After`, and still responds to polls.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::server::{Answer, KEY, Server, spans};

/// An upload whose body is incomplete so far.
pub(crate) struct Upload {
    stream: TcpStream,
    rest: Vec<u8>,
}

impl Upload {
    /// Begins an upload from one of several addresses, because a single address may not open so many connections.
    pub(crate) async fn begin(server: &Server, number: u8) -> Self {
        let address = server.url.trim_start_matches("http://");
        let socket = TcpSocket::new_v4().unwrap();
        let own = SocketAddr::from(([127, 0, 0, 2 + number % 4], 0));
        socket.bind(own).unwrap();
        let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
        let body = spans(3).to_string().into_bytes();
        let head = format!(
            "POST /v1/ingest HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\
             Expect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let (begin, rest) = body.split_at(body.len() / 2);
        stream.write_all(head.as_bytes()).await.unwrap();
        // The server requests the body once it has admitted the upload.
        let mut go_on = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
        stream.read_exact(&mut go_on).await.unwrap();
        stream.write_all(begin).await.unwrap();
        Self {
            stream,
            rest: rest.to_vec(),
        }
    }

    pub(crate) async fn end(mut self) -> String {
        self.stream.write_all(&self.rest).await.unwrap();
        let mut answer = String::new();
        self.stream.read_to_string(&mut answer).await.unwrap();
        answer
    }
}

async fn poll(server: &Server) -> Answer {
    let request = server.client.get(format!("{}/v1/config", server.url));
    Answer::of(request.bearer_auth(KEY).send().await.unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_stall_refuse_the_next_ones_and_leave_polls_alone() {
    let server = Server::with(&["--max-connections", "64"]).await;
    let mut uploads = Vec::new();
    for number in 0..24 {
        uploads.push(Upload::begin(&server, number).await);
    }
    let refused = server.send(&spans(1)).await;
    assert_eq!(refused.outcome(), (503, "overloaded".to_owned()));
    assert_eq!(refused.retry_after.as_deref(), Some("5"));
    // One key may use at most three eighths of the connections, and its project half of the uploads.
    let other = server
        .request_with("any-key")
        .body(spans(1).to_string())
        .send();
    assert_eq!(other.await.unwrap().status(), 202);
    for _ in 0..50 {
        assert_eq!(poll(&server).await.status, 200);
    }
    for upload in uploads {
        let answer = upload.end().await;
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    }
    assert_eq!(server.send(&spans(1)).await.status, 202);
}
