//! Uploads of symbol files over bad connections and by several tools at once.

use std::fmt::Write as _;
use std::io::{Cursor, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use crate::server::{NOW, Server};
use crate::symbols::{
    CULPRITS, assemble, janks, mapping, obfuscated, sha1, upload_chunk, upload_to,
};
use crate::wait;

/// The size of the chunks of these tests.
pub(crate) const CHUNK: usize = 100 << 10;

/// A mapping with this many classes of about 100 bytes. Its ids depend on `name`.
pub(crate) fn large_mapping(name: &str, classes: usize) -> Vec<u8> {
    let mut text = format!("# compiler: R8\n# pg_map_id: {}\n", sha1(name.as_bytes()));
    for class in 0..classes {
        writeln!(
            text,
            "com.example.{name}.Page{class} -> a.a{class}:\n    1:9:void show():40:47 -> a\n    1:9:int sum(int):60:68 -> b"
        )
        .unwrap();
    }
    text.into_bytes()
}

/// The body of a request with chunks under these names.
pub(crate) fn body_of(chunks: &[(String, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, chunk) in chunks {
        let head = format!(
            "--end\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
             Content-Type: application/octet-stream\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(chunk);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(b"--end--\r\n");
    body
}

pub(crate) fn named(chunk: &[u8]) -> (String, &[u8]) {
    (sha1(chunk), chunk)
}

/// A client that writes the bytes of its requests itself.
struct Raw(TcpStream);

impl Raw {
    /// Opens a connection and sends the head of a request with chunks.
    async fn begin(url: &str, token: &str, length: usize) -> Self {
        let address = url.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = format!(
            "POST /api/0/organizations/unjank/chunk-upload/ HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: multipart/form-data; boundary=end\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        Self(stream)
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Returns the status and the rest of the response.
    async fn answer(mut self) -> (u16, String) {
        let mut text = String::new();
        let read = self.0.read_to_string(&mut text);
        let read = tokio::time::timeout(wait::PATIENCE, read).await;
        read.expect("the server answers").unwrap();
        let status = text.split(' ').nth(1).unwrap().parse().unwrap();
        (status, text)
    }
}

async fn uploader(server: &Server) -> String {
    server
        .token("editor --project default --only-symbols")
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn broken_connections_cost_only_the_chunk_that_was_under_way() {
    let server = Server::start().await;
    server.ready().await;
    let token = uploader(&server).await;
    let file = large_mapping("shop", 5_000);
    let chunks: Vec<&[u8]> = file.chunks(CHUNK).collect();
    let names: Vec<String> = chunks.iter().map(|chunk| sha1(chunk)).collect();
    let missing = async || {
        let answer = assemble(&server, (&token, "default"), &file, &names).await;
        answer.body[sha1(&file)]["missingChunks"].clone()
    };
    assert_eq!(missing().await, json!(names));

    // The connection breaks in the middle of the second chunk.
    let body = body_of(&[named(chunks[0]), named(chunks[1])]);
    let mut raw = Raw::begin(&server.url, &token, body.len()).await;
    raw.send(&body[..CHUNK + CHUNK / 2]).await;
    drop(raw);
    wait::until("the first chunk is stored", async || {
        missing().await == json!(names[1..])
    })
    .await;

    // A chunk is sent again, and another over two connections at once.
    assert_eq!(
        upload_chunk(&server, &token, &names[0], chunks[0]).await,
        200
    );
    let (one, other) = tokio::join!(
        upload_chunk(&server, &token, &names[1], chunks[1]),
        upload_chunk(&server, &token, &names[1], chunks[1])
    );
    assert_eq!((one, other), (200, 200));

    // The end of a body arrives late.
    let body = body_of(&[named(chunks[2])]);
    let (start, end) = body.split_at(body.len() - 9);
    let mut raw = Raw::begin(&server.url, &token, body.len()).await;
    raw.send(start).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    raw.send(end).await;
    assert_eq!(raw.answer().await.0, 200);

    assert_eq!(missing().await, json!(names[3..]));
    for (name, chunk) in names.iter().zip(&chunks).skip(3) {
        assert_eq!(upload_chunk(&server, &token, name, chunk).await, 200);
    }
    let state = upload_to(&server, (&token, "default"), &file).await;
    assert_eq!(state["state"], "ok", "{state}");
    nothing_is_left(server.data_dir());
}

/// Checks that no chunk, no waiting file and no file of interrupted work is on the disk.
pub(crate) fn nothing_is_left(data_dir: &Path) {
    let folders = ["symbols/chunks", "symbols/waiting", "symbol-lookups"];
    let mut left: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| files_below(&data_dir.join(folder)))
        .collect();
    left.retain(|path| {
        let kind = path.extension().and_then(std::ffi::OsStr::to_str);
        !matches!(kind, Some("java" | "native" | "js"))
    });
    assert!(left.is_empty(), "{left:#?}");
}

pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => files_below(&path),
            false => vec![path],
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_beyond_the_limits_are_refused_with_a_reason() {
    let server = Server::start().await;
    server.ready().await;
    let token = uploader(&server).await;
    let send = async |body: Vec<u8>| {
        let mut raw = Raw::begin(&server.url, &token, body.len()).await;
        // The server may respond before it has read everything.
        let _closed = raw.0.write_all(&body).await.is_err();
        raw.answer().await
    };
    let large = vec![7; (8 << 20) + 1];
    let (status, text) = send(body_of(&[named(&large)])).await;
    assert_eq!(status, 422, "{text}");
    assert!(text.contains("send smaller chunks"), "{text}");

    let small: Vec<Vec<u8>> = (0..65_u8).map(|byte| vec![byte]).collect();
    let small: Vec<_> = small.iter().map(|chunk| named(chunk)).collect();
    let (status, text) = send(body_of(&small)).await;
    assert_eq!(status, 422, "{text}");
    assert!(text.contains("at most 64 chunks"), "{text}");

    let megabytes: Vec<Vec<u8>> = (0..33_u8).map(|byte| vec![byte; 1 << 20]).collect();
    let megabytes: Vec<_> = megabytes.iter().map(|chunk| named(chunk)).collect();
    let (status, text) = send(body_of(&megabytes)).await;
    assert_eq!(status, 413, "{text}");

    // The body is shorter than the declared length: the connection ends early.
    let body = body_of(&[named(b"chunk")]);
    let mut raw = Raw::begin(&server.url, &token, body.len() + 100).await;
    raw.send(&body[..body.len() - 20]).await;
    raw.0.shutdown().await.unwrap();
    let (status, text) = raw.answer().await;
    assert!((400..500).contains(&status), "{text}");
    // The body is longer than the declared length.
    let mut raw = Raw::begin(&server.url, &token, body.len() - 20).await;
    raw.send(&body).await;
    let (status, text) = raw.answer().await;
    assert_eq!(status, 422, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_in_the_wrong_order_are_refused_and_sent_again() {
    let server = Server::start().await;
    server.ready().await;
    let token = uploader(&server).await;
    let file = large_mapping("shop", 3_000);
    let chunks: Vec<&[u8]> = file.chunks(CHUNK).collect();
    let mut names: Vec<String> = chunks.iter().map(|chunk| sha1(chunk)).collect();
    for (name, chunk) in names.iter().zip(&chunks) {
        assert_eq!(upload_chunk(&server, &token, name, chunk).await, 200);
    }
    names.reverse();
    let answer = assemble(&server, (&token, "default"), &file, &names).await;
    let state = &answer.body[sha1(&file)];
    assert_eq!(state["state"], "error", "{state}");
    let detail = state["detail"].as_str().unwrap();
    assert!(
        detail.contains("SHA-1 differs. Upload it again"),
        "{detail}"
    );
    nothing_is_left(server.data_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_may_upload_the_same_file_at_once_and_to_several_projects() {
    let server = Server::start().await;
    server.ready().await;
    let operator = server.token("admin").await;
    let made = json!({"id": "bank", "name": "Bank"});
    let made = server
        .call(&operator, Method::POST, "/api/v1/projects", Some(made))
        .await;
    assert_eq!(made.status, 201, "{:?}", made.body);
    let everywhere = server.token("editor --only-symbols").await;
    let own = uploader(&server).await;
    let file = mapping();
    let (one, other, same, bank) = tokio::join!(
        upload_to(&server, (&everywhere, "default"), &file),
        upload_to(&server, (&own, "default"), &file),
        upload_to(&server, (&own, "default"), &file),
        upload_to(&server, (&everywhere, "bank"), &file),
    );
    for state in [&one, &other, &same, &bank] {
        assert_eq!(state["state"], "ok", "{state}");
    }
    assert_eq!(one["dif"]["id"], other["dif"]["id"]);
    assert_ne!(one["dif"]["id"], bank["dif"]["id"]);
    let refused = assemble(&server, (&own, "bank"), &file, &[]).await;
    assert_eq!(refused.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_file_is_noticed_and_can_be_uploaded_again() {
    let mut server = Server::start().await;
    server.ready().await;
    let token = uploader(&server).await;
    let to = (token.as_str(), "default");
    let file = mapping();
    assert_eq!(upload_to(&server, to, &file).await["state"], "ok");
    let files = server.data_dir().join("symbols/files/default");
    let content = || {
        let mut entries = std::fs::read_dir(&files).unwrap();
        entries.next().unwrap().unwrap().path()
    };
    std::fs::remove_file(content()).unwrap();
    let state = upload_to(&server, to, &file).await;
    assert_eq!(state["state"], "ok", "{state}");

    // A damaged file, which no lookup file hides.
    std::fs::write(content(), vec![b' '; file.len()]).unwrap();
    for lookup in files_below(&server.data_dir().join("symbol-lookups")) {
        std::fs::remove_file(lookup).unwrap();
    }
    server.send(&janks(&obfuscated())).await;
    server.answers(CULPRITS, "a.b.a").await;
    let missing = "SELECT length(missing) FROM stacks_symbolicated FINAL";
    server.answers(missing, "1").await;
    assert_eq!(upload_to(&server, to, &file).await["state"], "ok");
    server
        .answers(CULPRITS, "com.example.shop.Prices.sum")
        .await;
    server.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_that_is_being_erased_accepts_no_files() {
    let server = Server::start().await;
    server.ready().await;
    let operator = server.token("admin").await;
    let made = json!({"id": "bank", "name": "Bank"});
    server
        .call(&operator, Method::POST, "/api/v1/projects", Some(made))
        .await;
    let to = (operator.as_str(), "bank");
    assert_eq!(upload_to(&server, to, &mapping()).await["state"], "ok");
    let erased = server
        .call(
            &operator,
            Method::DELETE,
            "/api/v1/projects/bank?confirm=bank",
            None,
        )
        .await;
    assert_eq!(erased.status, 202, "{:?}", erased.body);
    let answer = assemble(&server, to, b"other", &[]).await;
    assert_eq!(answer.status, 404);
    let detail = answer.body["detail"].as_str().unwrap();
    assert!(detail.contains("is being erased"), "{detail}");
    // The erasure begins when rows that were under way have arrived.
    server.pass(Duration::from_secs(3));
    let files = server.data_dir().join("symbols/files/bank");
    wait::until("the files are erased", async || {
        files_below(&files).is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unassembled_chunks_and_remains_of_a_crash_are_deleted() {
    let mut server = Server::start().await;
    server.ready().await;
    let token = uploader(&server).await;
    let chunk = b"chunk";
    assert_eq!(
        upload_chunk(&server, &token, &sha1(chunk), chunk).await,
        200
    );
    let chunks = server.data_dir().join("symbols/chunks");
    let stored = files_below(&chunks);
    let remains = stored[0].with_file_name(format!("{}#1", sha1(b"other")));
    std::fs::write(remains, b"half").unwrap();
    // Files have the time of the machine.
    server.pass(Duration::from_secs(20 * 365 * 86_400));
    server.restart().await;
    wait::until("old chunks are deleted", async || {
        files_below(&chunks).is_empty()
    })
    .await;
}

/// Sends a file to the older endpoint, as `sentry-cli` 2 does. Returns the status and the body.
async fn send_at_once(server: &Server, token: &str, file: &[u8]) -> (u16, Value) {
    let body = body_of(&[("b7f5a9a6".to_owned(), file)]);
    let url = format!("{}/api/0/projects/x/default/files/dsyms/", server.url);
    let request = server.client.post(url).bearer_auth(token);
    let request = request.header("content-type", "multipart/form-data; boundary=end");
    let answer = request.body(body).send().await.unwrap();
    let status = answer.status().as_u16();
    (status, answer.json().await.unwrap())
}

pub(crate) fn zipped(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        let options = SimpleFileOptions::default();
        archive.start_file(*name, options).unwrap();
        archive.write_all(content).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn older_tools_send_a_mapping_in_one_archive() {
    let server = Server::start().await;
    server.ready().await;
    let token = uploader(&server).await;
    let id = "c0ffee00-1234-4321-8765-0123456789ab";
    let file = mapping();
    let archive = zipped(&[(&format!("proguard/{id}.txt"), &file)]);
    for _ in 0..2 {
        let (status, difs) = send_at_once(&server, &token, &archive).await;
        assert_eq!(
            (status, difs[0]["uuid"].as_str()),
            (201, Some(id)),
            "{difs}"
        );
        assert_eq!(difs[0]["sha1"], sha1(&file));
    }
    nothing_is_left(server.data_dir());
    let mut stack = obfuscated();
    stack[1]["file"] = json!("SourceFile");
    stack[1]["build_id"] = json!(id);
    server.send(&janks(&stack)).await;
    server
        .answers(CULPRITS, "com.example.shop.Prices.sum")
        .await;
    let (status, _) = send_at_once(&server, &token, &large_mapping("bank", 10)).await;
    assert_eq!(status, 201, "a file without an archive");

    let refused = [
        (
            zipped(&[("../../x", b"holiday.jpg")]),
            "../../x: not a symbol file",
        ),
        (
            archive[..archive.len() - 30].to_vec(),
            "the archive is damaged",
        ),
        (zipped(&[("folder/", b"")]), "contains no files"),
    ];
    for (file, expected) in refused {
        let (status, problem) = send_at_once(&server, &token, &file).await;
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!(status, 422, "{detail}");
        assert!(detail.contains(expected), "{detail}");
    }
}

/// Makes a file that was last written so long before the server's time.
fn age(path: &Path, hours: u64) {
    let now = Duration::from_micros(NOW.try_into().unwrap());
    let written = SystemTime::UNIX_EPOCH + now - Duration::from_secs(hours * 3600);
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_modified(written).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn contents_that_a_killed_server_left_behind_are_deleted_after_a_day() {
    let mut server = Server::start().await;
    server.ready().await;
    let operator = server.token("admin").await;
    let made = json!({"id": "bank", "name": "Bank"});
    server
        .call(&operator, Method::POST, "/api/v1/projects", Some(made))
        .await;
    let token = uploader(&server).await;
    let state = upload_to(&server, (&token, "default"), &mapping()).await;
    assert_eq!(state["state"], "ok", "{state}");
    let files = server.data_dir().join("symbols/files");
    let used = files_below(&files);
    age(&used[0], 100);
    let leftover = |project: &str, letter: &str, hours: u64| {
        let folder = files.join(project);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(letter.repeat(64));
        std::fs::write(&path, "content").unwrap();
        age(&path, hours);
        path
    };
    let old = leftover("default", "a", 25);
    let young = leftover("default", "b", 23);
    // The control database knows no file of this project, as if it was lost.
    let unknown = leftover("bank", "a", 25);
    server.restart().await;
    wait::until("the old leftover is deleted", async || !old.exists()).await;
    for path in [&used[0], &young, &unknown] {
        assert!(path.exists(), "{}", path.display());
    }
}
