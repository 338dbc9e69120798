//! The shop's own server, on loopback, and requests to it that are counted to the byte.

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

/// Bytes of one request and its answer.
pub(crate) struct Exchange {
    pub(crate) sent: u64,
    pub(crate) received: u64,
}

impl Backend {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
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
        let mut stream = TcpStream::connect(self.address).expect("the shop's server runs");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: api.example.com\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
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

/// 80 ms, then 20 kB of JSON.
fn answer(mut stream: TcpStream) {
    let mut request = [0; 1_024];
    let read = stream.read(&mut request).unwrap_or_default();
    std::thread::sleep(Duration::from_millis(80));
    let body = format!("[{}]", vec!["{\"id\":1}"; 2_500 * read.min(1)].join(","));
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    // A client that is gone wants no answer.
    let _gone = stream.write_all(answer.as_bytes()).is_err();
}
