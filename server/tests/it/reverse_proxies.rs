//! The configurations of docs/proxies, run by the proxies that they are for.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use reqwest::{Client, StatusCode, Version};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::otlp_grpc;
use crate::server::{KEY, Server, batch};
use crate::wait;

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/proxies");
/// Where `make setup` unpacks what the machine does not have.
const CACHE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../.cache/proxies");
/// The name in the documented configurations.
const NAME: &str = "unjank.example.com";
/// What nginx accepts by default, and a batch at most.
const MIB: usize = 1 << 20;

/// A proxy that runs.
struct Proxy {
    address: String,
    /// For HTTP/2. Without TLS, nginx has no port for both.
    http2_address: String,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ended = self.process.kill().is_ok() && self.process.wait().is_ok();
    }
}

/// Returns the path of a program, if the machine has it.
fn program(name: &str) -> Option<PathBuf> {
    let cached = ["usr/sbin", "usr/bin"].map(|folder| Path::new(CACHE).join(folder));
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from);
    let mut paths = folders
        .iter()
        .chain(&cached)
        .map(|folder| folder.join(name));
    paths.find(|path| path.exists())
}

async fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

/// The files of a program in the folder `place`, and no connections to others.
fn confined(name: &str, config: &str, place: &str) -> String {
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders = folders.map(|kind| format!("{kind}_temp_path {place}/{kind};"));
    let http = format!("http {{ access_log off; {}", folders.concat());
    match name {
        "nginx" => format!("daemon off; pid {place}/pid;\n{config}").replace("http {", &http),
        "caddy" => format!(
            "{{\n\tadmin off\n\tauto_https off\n\tservers {{\n\t\tprotocols h1 h2 h2c\n\t}}\n}}\n{config}"
        ),
        _ => config.to_owned(),
    }
}

/// The documented configuration without TLS, for an address of HTTP/1 and one of HTTP/2.
fn without_tls(documented: &str, [address, http2_address]: [&str; 2]) -> String {
    let config = documented
        .replace(
            "listen 443 ssl http2;",
            &format!("listen {address}; listen {http2_address} http2;"),
        )
        .replace(
            "bind :443 ssl crt /etc/ssl/unjank.pem alpn h2,http/1.1",
            &format!("bind {address}"),
        )
        .replace("unjank.example.com {", &format!("http://{address} {{"));
    assert!(config.contains(address), "{config}");
    let mut lines: Vec<&str> = config.lines().collect();
    lines.retain(|line| !line.trim_start().starts_with("ssl_"));
    lines.join("\n") + "\n"
}

/// The documented configuration with TLS, for an address, with a certificate in the folder `place`. Caddy would otherwise request one from a public CA.
fn with_tls(documented: &str, address: &str, place: &str) -> String {
    let site = format!("https://{NAME}:{} {{", port(address));
    let config = documented
        .replace("listen 443 ", &format!("listen {address} "))
        .replace("bind :443 ", &format!("bind {address} "))
        .replace(
            "unjank.example.com {",
            &format!("{site}\n\tbind 127.0.0.1\n\ttls /etc/ssl/unjank.pem /etc/ssl/unjank.key"),
        )
        .replace("/etc/ssl/", &format!("{place}/"));
    assert!(config.contains(port(address)), "{config}");
    config
}

fn port(address: &str) -> &str {
    address.rsplit(':').next().unwrap()
}

/// Starts a proxy with its documented configuration without TLS, changed by `change`.
async fn start(name: &str, server: &Server, change: impl Fn(String) -> String) -> Option<Proxy> {
    let (address, http2_address) = match name {
        "nginx" => (free_address().await, free_address().await),
        _ => {
            let address = free_address().await;
            (address.clone(), address)
        }
    };
    let configure =
        |documented: &str, _: &str| change(without_tls(documented, [&address, &http2_address]));
    let addresses = (address.clone(), http2_address.clone());
    run(name, server, addresses, configure).await
}

/// Runs a proxy with its documented configuration, changed by `configure`, which also gets a folder.
#[expect(clippy::print_stderr, reason = "a test that does nothing says so")]
async fn run(
    name: &str,
    server: &Server,
    (address, http2_address): (String, String),
    configure: impl Fn(&str, &str) -> String,
) -> Option<Proxy> {
    let Some(program) = program(name) else {
        eprintln!("{name} is not tested: it is not installed");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = match name {
        "nginx" => "nginx.conf",
        "haproxy" => "haproxy.cfg",
        _ => "Caddyfile",
    };
    let documented = std::fs::read_to_string(Path::new(DOCS).join(file)).unwrap();
    let place = folder.path().to_str().unwrap();
    let documented = documented.replace("127.0.0.1:8080", server.url.trim_start_matches("http://"));
    let config = confined(name, &configure(&documented, place), place);
    let path = folder.path().join(file);
    std::fs::write(&path, config).unwrap();
    let mut command = Command::new(program);
    match name {
        "nginx" => command.args(["-e", "stderr", "-p", place, "-c"]).arg(&path),
        "haproxy" => command.arg("-db").arg("-f").arg(&path),
        _ => command
            .args(["run", "--adapter", "caddyfile", "--config"])
            .arg(&path),
    };
    let process = command
        .env(
            "LD_LIBRARY_PATH",
            format!("{CACHE}/usr/lib/x86_64-linux-gnu"),
        )
        .env("HOME", place)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(folder.path().join("log")).unwrap())
        .spawn()
        .unwrap();
    let mut proxy = Proxy {
        address,
        http2_address,
        process,
        _folder: folder,
    };
    wait::until("the proxy listens", async || {
        let ended = proxy.process.try_wait().unwrap();
        assert!(
            ended.is_none(),
            "{}",
            std::fs::read_to_string(path.with_file_name("log")).unwrap()
        );
        TcpStream::connect(&proxy.address).await.is_ok()
    })
    .await;
    Some(proxy)
}

/// Sends a batch that fills a body of 1 MiB. With `Expect`, its sender waits for the answer to the head first, as curl does.
async fn send_batch(address: &str, expects: bool) -> String {
    let mut body = batch().to_string().into_bytes();
    body.resize(MIB, b' ');
    let expect = if expects {
        "Expect: 100-continue\r\n"
    } else {
        ""
    };
    let head = format!(
        "POST /v1/ingest HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n\
         Connection: close\r\n{expect}Content-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(head.as_bytes()).await.unwrap();
    if expects {
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            answer.push(stream.read_u8().await.unwrap());
        }
        assert!(
            answer.starts_with(b"HTTP/1.1 100"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
    stream.write_all(&body).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Uploads an R8 mapping of 3 MB that hardly compresses.
async fn upload(address: &str, token: &str) -> (bool, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mapping.txt");
    let mut mapping = String::from("# compiler: R8\n# pg_map_id: 0011223344556677\n");
    while mapping.len() < 3_000_000 {
        let name = uuid::Uuid::new_v4().simple();
        mapping += &format!("shop.C{name} -> a.b{name}:\n    1:1:void pay():3:3 -> a\n");
    }
    std::fs::write(&path, mapping).unwrap();
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_unjank"))
        .args(["symbols", "upload", "--project", "default"])
        .arg(&path)
        .env("UNJANK_URL", format!("http://{address}"))
        .env("UNJANK_TOKEN", token)
        .output()
        .await
        .unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8(printed).unwrap();
    (output.status.success(), printed)
}

/// Tries to log in with a wrong password and a forged address, from an address that is not the proxy's.
async fn wrong_login(address: &str, number: u8) -> StatusCode {
    let client = Client::builder().local_address(IpAddr::from([127, 0, 0, 2]));
    let request = (client.build().unwrap())
        .post(format!("http://{address}/api/v1/login"))
        .header("origin", format!("http://{address}"))
        .header("x-forwarded-for", format!("192.0.2.{number}"))
        .json(&json!({"email": "ann@example.com", "password": "wrong wrong wrong"}));
    request.send().await.unwrap().status()
}

async fn trusting() -> (Server, String) {
    let server = Server::with(&["--trusted-proxies", "127.0.0.1"]).await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    (server, token)
}

async fn serves(name: &str) {
    let (server, token) = trusting().await;
    let Some(proxy) = start(name, &server, |config| config).await else {
        return;
    };
    for expects in [false, true] {
        let answer = send_batch(&proxy.address, expects).await;
        // Caddy passes the server's own 100 on, after its own.
        let last = answer.rsplit("HTTP/1.1 100 Continue\r\n").next().unwrap();
        assert!(last.contains("HTTP/1.1 202"), "{answer}");
    }
    let (is_uploaded, printed) = upload(&proxy.address, &token).await;
    assert!(is_uploaded, "{printed}");
    let http2 = Client::builder().http2_prior_knowledge().build().unwrap();
    otlp_grpc::stores_a_span(&http2, &format!("http://{}", proxy.http2_address)).await;
    // A forged address does not hide the client, so its logins are slowed down. A refused origin would be 403.
    for number in 0..10 {
        assert_eq!(wrong_login(&proxy.address, number).await, 401);
    }
    assert_eq!(wrong_login(&proxy.address, 77).await, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn nginx_serves_devices_tools_and_browsers() {
    serves("nginx").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn haproxy_serves_devices_tools_and_browsers() {
    serves("haproxy").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn caddy_serves_devices_tools_and_browsers() {
    serves("caddy").await;
}

/// Starts a proxy with its documented configuration and a certificate. Clients use HTTP/1.1 and HTTP/2.
async fn serves_with_tls(name: &str) {
    let (server, _) = trusting().await;
    let address = free_address().await;
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let configure = |documented: &str, place: &str| {
        // HAProxy reads both from one file.
        std::fs::write(format!("{place}/unjank.pem"), format!("{certificate}{key}")).unwrap();
        std::fs::write(format!("{place}/unjank.key"), &key).unwrap();
        with_tls(documented, &address, place)
    };
    let addresses = (address.clone(), address.clone());
    let Some(_proxy) = run(name, &server, addresses, configure).await else {
        return;
    };
    let url = format!("https://{NAME}:{}", port(&address));
    let trusted = reqwest::Certificate::from_pem(certificate.as_bytes()).unwrap();
    let client = || {
        Client::builder()
            .tls_certs_only([trusted.clone()])
            .resolve(NAME, address.parse().unwrap())
    };
    for (client, version) in [
        (client().http1_only(), Version::HTTP_11),
        (client(), Version::HTTP_2),
    ] {
        let ingest = client.build().unwrap().post(format!("{url}/v1/ingest"));
        let answer = ingest.bearer_auth(KEY).json(&batch()).send().await.unwrap();
        assert_eq!(
            (answer.status(), answer.version()),
            (StatusCode::ACCEPTED, version),
            "{name}"
        );
    }
    otlp_grpc::stores_a_span(&client().build().unwrap(), &url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_documented_tls_of_each_proxy_works_with_http_1_and_2() {
    for name in ["nginx", "haproxy", "caddy"] {
        serves_with_tls(name).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_and_uploads_fit_the_defaults_of_nginx_and_a_smaller_limit_is_explained() {
    let (server, token) = trusting().await;
    let size = "client_max_body_size 33m;";
    let Some(proxy) = start("nginx", &server, |config| config.replace(size, "")).await else {
        return;
    };
    let answer = send_batch(&proxy.address, false).await;
    assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
    let (is_uploaded, printed) = upload(&proxy.address, &token).await;
    assert!(is_uploaded, "{printed}");

    let small = "client_max_body_size 100k;";
    let proxy = start("nginx", &server, |config| config.replace(size, small)).await;
    let (is_uploaded, printed) = upload(&proxy.unwrap().address, &token).await;
    assert!(
        !is_uploaded && printed.contains("docs/operations.md"),
        "{printed}"
    );
}
