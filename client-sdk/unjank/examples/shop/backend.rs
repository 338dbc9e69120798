//! The shop's own server on loopback, and requests to it with exact byte counts.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

pub(crate) struct Backend {
    address: SocketAddr,
    sent: AtomicU64,
    received: AtomicU64,
}

/// Bytes of one request and its response.
pub(crate) struct Exchange {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl Backend {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback should have a free port");
        let address = listener.local_addr().expect("the listener should be bound");
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(stream);
            }
        });
        Self {
            address,
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Exchange {
        let mut stream =
            TcpStream::connect(self.address).expect("the shop's server should be running");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .expect("the server should read the request");
        let mut answer = Vec::new();
        stream
            .read_to_end(&mut answer)
            .expect("the server should respond");
        let exchange = Exchange {
            sent: request.len() as u64,
            received: answer.len() as u64,
        };
        self.sent.fetch_add(exchange.sent, Ordering::Relaxed);
        self.received
            .fetch_add(exchange.received, Ordering::Relaxed);
        exchange
    }

    pub(crate) fn bytes(&self) -> Value {
        json!({
            "tx_bytes": self.sent.load(Ordering::Relaxed),
            "rx_bytes": self.received.load(Ordering::Relaxed),
            "requests": 2,
        })
    }
}

/// Responds with 20 kB of JSON after 80 ms.
fn answer(mut stream: TcpStream) {
    let mut request = [0; 1_024];
    let read = stream.read(&mut request).unwrap_or_default();
    std::thread::sleep(Duration::from_millis(80));
    let body = format!("[{}]", vec!["{\"id\":1}"; 2_500 * read.min(1)].join(","));
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // The client may have disconnected.
    let _gone = stream.write_all(answer.as_bytes()).is_err();
}
