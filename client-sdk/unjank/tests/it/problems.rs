//! The SDK says why nothing arrives, and a flush that sends nothing returns `false`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, Stream};
use unjank::{Config, Mode};

use crate::collector::{Running, refusal};

/// Answers every request with this status and body.
fn server(status: &'static str, body: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _given_up = serve(&mut stream, status, body);
        }
    });
    format!("http://{address}")
}

/// Reads a request to its end, so that closing the connection does not discard the response.
fn serve(stream: &mut (impl Read + Write), status: &str, body: &str) -> io::Result<()> {
    let mut reader = BufReader::new(&mut *stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    io::copy(&mut reader.take(length), &mut io::sink())?;
    let length = body.len();
    let answer =
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(answer.as_bytes())
}

/// Answers like [`server`], over TLS, with a certificate that no public authority signed. Returns the certificate, too.
fn private_server(status: &'static str, body: &'static str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            // A client that does not trust the certificate gives up.
            let _given_up = serve(&mut Stream::new(&mut connection, &mut stream), status, body);
        }
    });
    (format!("https://{address}"), made.cert.pem())
}

/// Records a span, sends it to this endpoint, and returns the problem that the SDK reports.
fn problem_with(endpoint: &str) -> String {
    problem_trusting(endpoint, "")
}

/// Trusts the authority with this certificate, or the public ones if it is empty.
fn problem_trusting(endpoint: &str, certificate: &str) -> String {
    let running = Running::at(endpoint, |config| {
        config
            .mode(Mode::Test)
            .root_certificates(certificate)
            .start_jitter(Duration::ZERO)
            .shutdown_timeout(Duration::from_millis(100))
    });
    unjank::span("checkout").end();
    assert!(!unjank::flush(Duration::from_secs(10)));
    let problem = running.guard.as_ref().and_then(unjank::Guard::problem);
    assert_eq!(unjank::problem(), problem);
    problem.unwrap_or_default()
}

#[test]
fn each_reason_is_told_in_a_sentence() {
    let wrong_key = server("401 Unauthorized", r#"{"detail": "no such key"}"#);
    let of_key = problem_with(&wrong_key);
    assert!(
        of_key.contains("does not know the key: no such key"),
        "{of_key}"
    );
    let not_unjank = server("404 Not Found", "<html>");
    assert!(
        problem_with(&not_unjank).contains("seems not to be an unjank server: check the endpoint")
    );
    assert!(problem_with(&format!("{not_unjank}/perf")).contains("leave out the path"));
    let nobody = problem_with("http://127.0.0.1:1");
    assert!(
        nobody.starts_with("cannot reach http://127.0.0.1:1 ("),
        "{nobody}"
    );
    let busy = server(
        "503 Service Unavailable",
        r#"{"detail": "the log is full"}"#,
    );
    assert!(problem_with(&busy).contains("(503): the log is full"));
}

#[test]
fn a_certificate_of_a_private_authority_is_named_until_the_app_trusts_it() {
    let (endpoint, certificate) =
        private_server("401 Unauthorized", r#"{"detail": "no such key"}"#);
    let untrusted = problem_with(&endpoint);
    assert!(
        untrusted.contains("pass its certificate to `Config::root_certificates`"),
        "{untrusted}"
    );
    let trusted = problem_trusting(&endpoint, &certificate);
    assert!(trusted.contains("does not know the key"), "{trusted}");
}

/// The endpoint that [`an_app_on_a_system_with_another_authority`] sends to.
#[cfg(all(feature = "platform-verifier", target_os = "linux"))]
const ENDPOINT: &str = "PROBLEMS_ENDPOINT";

/// Not a test of its own: the process that the next test starts.
#[cfg(all(feature = "platform-verifier", target_os = "linux"))]
#[test]
fn an_app_on_a_system_with_another_authority() {
    if let Some(endpoint) = std::env::var_os(ENDPOINT) {
        let trusted = problem_with(endpoint.to_str().unwrap());
        assert!(trusted.contains("does not know the key"), "{trusted}");
    }
}

#[cfg(all(feature = "platform-verifier", target_os = "linux"))]
#[test]
fn the_platform_verifier_trusts_the_authorities_of_the_system() {
    let (endpoint, certificate) =
        private_server("401 Unauthorized", r#"{"detail": "no such key"}"#);
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem");
    std::fs::write(&authority, certificate).unwrap();
    let mut app = std::process::Command::new(std::env::current_exe().unwrap());
    app.args([
        "problems::an_app_on_a_system_with_another_authority",
        "--exact",
    ]);
    app.env(ENDPOINT, endpoint).env("SSL_CERT_FILE", authority);
    let output = app.output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("1 passed"), "{printed}");
}

#[test]
fn a_mistake_in_the_configuration_is_told_at_once() {
    for (config, expected) in [
        (
            Config::new("perf.example.com", "k").app("a", "1"),
            "does not begin with https://",
        ),
        (Config::new("https://perf.example.com", "k"), "no app id"),
        (
            Config::new("https://perf.example.com", "k")
                .app("a", "1")
                .root_certificates("x"),
            "has no certificate in PEM format",
        ),
    ] {
        let problem = unjank::init(config).problem().unwrap_or_default();
        assert!(problem.contains(expected), "{problem}");
    }
}

#[test]
fn a_problem_ends_when_a_batch_is_accepted() {
    let running = Running::start();
    running
        .collector
        .answer(|_| Ok(refusal(422, "invalid_envelope")));
    unjank::span("checkout").end();
    assert!(!unjank::flush(Duration::from_secs(10)));
    assert!(unjank::problem().is_some());
    running
        .collector
        .answer(|batch| Ok(crate::collector::receipt(batch)));
    unjank::span("checkout").end();
    assert!(unjank::flush(Duration::from_secs(10)));
    assert_eq!(unjank::problem(), None);
}

#[test]
fn an_offline_run_reports_and_sends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("run.jsonl");
    let file = unjank::ReportFile::create(&report).unwrap();
    let running = Running::with(|config| config.mode(Mode::Test).offline(true).reporter(file));
    unjank::span("checkout").end();
    assert!(unjank::flush(Duration::from_secs(10)));
    drop(running.guard);
    assert_eq!(
        (running.collector.polls(), running.collector.batches().len()),
        (0, 0)
    );
    assert!(
        std::fs::read_to_string(&report)
            .unwrap()
            .contains("checkout")
    );
}
