//! Connections that hold memory, descriptors or permits and send or read nothing.

use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::target::Target;

const LASTS: Duration = Duration::from_secs(3);

/// Lets this process open as many connections as an attacker needs.
fn raise_own_limit() {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, most).unwrap();
}

/// Opens connections and sends the same bytes on each. The server may end them.
async fn open(target: &Target, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(target.address()).await.unwrap();
        // The server may close the connection before it has read all bytes.
        let sent = timeout(Duration::from_millis(200), stream.write_all(bytes));
        let _ended = sent.await.is_ok();
        streams.push(stream);
    }
    streams
}

async fn first_line(stream: &mut TcpStream) -> String {
    let mut answer = vec![0; 64];
    let read = timeout(Duration::from_secs(5), stream.read(&mut answer)).await;
    let read = read.ok().and_then(Result::ok).unwrap_or_default();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_logins_hold_no_memory() {
    let target = Target::start().await;
    let head = |length: &str| {
        let address = target.address();
        format!(
            "POST /api/v1/login HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n{length}\r\n\r\n"
        )
    };
    let begun = [b"{\"email\":\"".as_slice(), &vec![b'a'; 2_000_000]].concat();
    let declared = [head("Content-Length: 2000100").as_bytes(), &begun].concat();
    let chunk = format!("{:x}\r\n", begun.len() + 10).into_bytes();
    let head = head("Transfer-Encoding: chunked");
    let chunked = [head.as_bytes(), &chunk, &begun].concat();
    for request in [declared, chunked] {
        let attack = async {
            let mut streams = open(&target, 300, &request).await;
            sleep(LASTS).await;
            first_line(&mut streams[0]).await
        };
        let (answer, others) = target.others_during(attack).await;
        assert_eq!(answer, "HTTP/1.1 413 Payload Too Large");
        others.are_served();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_request_heads_hold_little_memory() {
    raise_own_limit();
    let target = Target::start().await;
    let mut head = b"GET /v1/config HTTP/1.1\r\nHost: a\r\nX-Long: ".to_vec();
    head.resize(16_000, b'a');
    let attack = async {
        let streams = open(&target, 2_400, &head).await;
        sleep(LASTS).await;
        streams.len()
    };
    let (_, others) = target.others_during(attack).await;
    others.are_served();

    head.resize(400_000, b'a');
    let attack = async {
        let mut streams = open(&target, 100, &head).await;
        sleep(LASTS).await;
        first_line(&mut streams[0]).await
    };
    let (answer, others) = target.others_during(attack).await;
    assert_eq!(answer, "HTTP/1.1 431 Request Header Fields Too Large");
    others.are_served();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_does_not_take_all_connections() {
    raise_own_limit();
    let target = Target::with(&["--max-connections", "400"]).await;
    let attack = async {
        let mut streams = open(&target, 1_000, b"").await;
        sleep(LASTS).await;
        first_line(streams.last_mut().unwrap()).await
    };
    let (answer, others) = target.others_during(attack).await;
    assert_eq!(answer, "HTTP/1.1 503 Service Unavailable");
    others.are_served();
    assert!(target.is_ready().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_with_unread_responses_are_closed() {
    raise_own_limit();
    let target = Target::with(&["--max-connections", "4000"]).await;
    let request = format!(
        "GET /openapi.json HTTP/1.1\r\nHost: {}\r\n\r\n",
        target.address()
    );
    // The responses exceed the buffers of a socket.
    let requests = request.repeat(40);
    let attack = async {
        let streams = open(&target, 100, requests.as_bytes()).await;
        sleep(LASTS).await;
        streams
    };
    let (streams, others) = target.others_during(attack).await;
    others.are_served();
    let document = format!("http://{}/openapi.json", target.address());
    let document = target.client.get(document).send().await.unwrap();
    let all = 40 * document.bytes().await.unwrap().len();
    sleep(Duration::from_secs(32)).await;
    for mut stream in streams {
        let mut rest = Vec::new();
        let end = timeout(Duration::from_secs(5), stream.read_to_end(&mut rest)).await;
        assert!(end.is_ok(), "the connection is still open");
        assert!(rest.len() < all, "{} of {all} bytes", rest.len());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn declared_but_unsent_bodies_reserve_no_memory() {
    let target = Target::start().await;
    let head = format!(
        "POST /v1/ingest HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: 1000000\r\n\r\n{{",
        target.key
    );
    let attack = async {
        let streams = open(&target, 300, head.as_bytes()).await;
        sleep(LASTS).await;
        streams.len()
    };
    let (_, others) = target.others_during(attack).await;
    others.are_served();
    // Bodies that are sent may take at most half of the memory for bodies, because they belong to one project.
    let body = [head.as_bytes(), &vec![b' '; 900_000]].concat();
    let attack = async {
        let streams = open(&target, 100, &body).await;
        sleep(LASTS).await;
        streams.len()
    };
    let (_, others) = target.others_during(attack).await;
    others.are_served();
}
