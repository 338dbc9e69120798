//! Symbol files in a bucket that two servers share, with a small S3 server from npm.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use reqwest::Client;
use serde_json::{Value, json};

use crate::engine::{Database, PASSWORD, UNJANK, USER, clickhouse_flags, engine};
use crate::postgres::postgres;
use crate::processes::{Program, token};
use crate::symbol_uploads::{body_of, files_below, large_mapping, named};
use crate::symbols::{janks, mapping, obfuscated, sha1};
use crate::third_party::installed;
use crate::wait;

const SECRET: &str = "one secret for all servers of this test";

/// An S3 server with the bucket `symbols`. It ends with the test.
pub(crate) struct Bucket {
    folder: tempfile::TempDir,
    /// The files that hold uploads, see `tests/s3/hold.cjs`.
    holds: tempfile::TempDir,
    port: u16,
    process: Option<Child>,
}

impl Bucket {
    pub(crate) async fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let mut bucket = Self {
            folder: tempfile::tempdir().unwrap(),
            holds: tempfile::tempdir().unwrap(),
            port,
            process: None,
        };
        bucket.run().await;
        bucket
    }

    pub(crate) async fn run(&mut self) {
        let hold = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/s3/hold.cjs");
        let process = Command::new("node")
            .env("HOLD", self.holds.path())
            .arg("--require")
            .arg(hold)
            .arg(installed("s3/node_modules/s3rver/bin/s3rver.js"))
            .args(["--address", "127.0.0.1", "--silent", "--no-vhost-buckets"])
            .args(["--configure-bucket", "symbols"])
            .args(["--port", &self.port.to_string(), "--directory"])
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        self.process = Some(process);
        let url = self.url();
        wait::until("the bucket answers", async || {
            Client::new().get(&url).send().await.is_ok()
        })
        .await;
    }

    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// From now on, the bucket does not answer uploads of parts of large files, until [`Self::release`].
    pub(crate) fn hold(&self) {
        self.release();
        std::fs::write(self.holds.path().join("hold"), []).unwrap();
    }

    /// Whether a part waits, or has waited since [`Self::hold`].
    pub(crate) fn has_held(&self) -> bool {
        self.holds.path().join("held").exists()
    }

    /// Answers one part that waits.
    pub(crate) fn pass_one(&self) {
        std::fs::write(self.holds.path().join("pass"), []).unwrap();
    }

    pub(crate) fn release(&self) {
        for name in ["hold", "held", "pass"] {
            // Some of them do not exist.
            let file = self.holds.path().join(name);
            std::fs::remove_file(file).unwrap_or_default();
        }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The variables of the environment for this bucket. The right key is `S3RVER`.
    pub(crate) fn environment(&self, key: &str) -> [(&'static str, String); 5] {
        [
            ("AWS_ACCESS_KEY_ID", key.to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "S3RVER".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ENDPOINT", self.url()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
        ]
    }

    /// The files of all objects below the folder `shop` and this one.
    pub(crate) fn objects(&self, below: &str) -> Vec<PathBuf> {
        let mut objects = files_below(&self.folder.path().join("symbols/shop").join(below));
        objects.retain(|path| path.to_str().unwrap().ends_with("_object"));
        objects
    }

    /// Stores an empty object below the folder `shop`. Consoles store one with a slash at its end for a folder.
    pub(crate) fn put_empty(&self, name: &str) {
        let name = format!("symbols/shop/{name}._S3rver_object");
        let file = self.folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, []).unwrap();
    }

    /// Renames a bucket.
    pub(crate) fn rename(&self, from: &str, to: &str) {
        let path = |name| self.folder.path().join(name);
        std::fs::rename(path(from), path(to)).unwrap();
    }

    /// Deletes everything below the folder `shop` and this one.
    pub(crate) fn clear(&self, below: &str) {
        std::fs::remove_dir_all(self.folder.path().join("symbols/shop").join(below)).unwrap();
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Servers with one control database, one ClickHouse and one bucket.
struct Servers {
    control: String,
    database: Database,
    folders: Vec<tempfile::TempDir>,
}

impl Servers {
    async fn new() -> Self {
        let postgres = tokio::task::spawn_blocking(postgres).await.unwrap();
        Self {
            control: postgres.database().await,
            database: Database::new(),
            folders: Vec::new(),
        }
    }

    async fn start(&mut self, bucket: &Bucket, key: &str) -> Program {
        let folder = tempfile::tempdir().unwrap();
        let environment = bucket.environment(key);
        let environment = environment.each_ref();
        let environment = environment.map(|(name, value)| (*name, value.as_str()));
        let arguments = [
            ["serve", "--flush-interval-ms", "50"].as_slice(),
            &clickhouse_flags(self.database.name()),
            &["--database-url", &self.control, "--secret", SECRET],
            &["--symbols-url", "s3://symbols/shop"],
        ]
        .concat();
        let program =
            Program::inside(&environment, Path::new(UNJANK), folder.path(), &arguments).await;
        self.folders.push(folder);
        program
    }

    fn token(&self) -> String {
        let control = ["--database-url", &self.control];
        token(self.folders[0].path(), "editor", &control)
    }

    async fn query(&self, sql: &str) -> String {
        let request = Client::new()
            .post(&engine().url)
            .query(&[("database", self.database.name())])
            .basic_auth(USER, Some(PASSWORD));
        let answer = request.body(sql.to_owned()).send().await.unwrap();
        answer.text().await.unwrap().trim().to_owned()
    }
}

/// Sends chunks to a server. Returns the status and the body.
async fn send(program: &Program, token: &str, chunks: &[&[u8]]) -> (u16, Value) {
    let chunks: Vec<_> = chunks.iter().map(|chunk| named(chunk)).collect();
    let url = format!("{}/api/0/organizations/x/chunk-upload/", program.listen);
    let request = program.client.post(url).bearer_auth(token);
    let request = request.header("content-type", "multipart/form-data; boundary=end");
    let answer = request.body(body_of(&chunks)).send().await.unwrap();
    let status = answer.status().as_u16();
    let text = answer.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or_default())
}

async fn assemble(program: &Program, token: &str, file: &[u8]) -> (u16, Value) {
    let chunks: Vec<String> = file.chunks(4 << 20).map(sha1).collect();
    let path = "/api/0/projects/unjank/default/files/difs/assemble/";
    let wanted = json!({sha1(file): {"name": "mapping.txt", "chunks": chunks}});
    let request = program.client.post(format!("{}{path}", program.listen));
    let answer = request
        .bearer_auth(token)
        .json(&wanted)
        .send()
        .await
        .unwrap();
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap();
    let state = body.get(sha1(file)).cloned();
    (status, state.unwrap_or(body))
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_a_bucket() {
    let mut bucket = Bucket::start().await;
    let mut servers = Servers::new().await;
    let one = servers.start(&bucket, "S3RVER").await;
    one.drained().await;
    let other = servers.start(&bucket, "S3RVER").await;
    let token = servers.token();

    // The chunks go to one server, and the other assembles them. The file is larger than a part of an upload.
    let file = [mapping(), large_mapping("shop", 200_000)].concat();
    assert!(file.len() > 16 << 20);
    for chunk in file.chunks(4 << 20) {
        assert_eq!(send(&one, &token, &[chunk]).await.0, 200);
    }
    let mut state = json!(null);
    wait::until("the file is assembled", async || {
        state = assemble(&other, &token, &file).await.1;
        state["state"] != "assembling"
    })
    .await;
    assert_eq!(state["state"], "ok", "{state}");
    assert_eq!(bucket.objects("files").len(), 1);
    assert_eq!(bucket.objects("chunks").len(), 0);
    assert_eq!(assemble(&one, &token, &file).await.1["state"], "ok");

    // The server that did not assemble the file symbolicates.
    drop(other);
    one.send(&janks(&obfuscated())).await;
    let culprits = "SELECT culprit FROM stack_class_current";
    wait::until("the stack is readable", async || {
        servers.query(culprits).await == "com.example.shop.Prices.sum"
    })
    .await;

    // Without the bucket, an upload fails at once and with a reason. Afterwards it works.
    bucket.stop();
    let sent = tokio::time::timeout(wait::PATIENCE, send(&one, &token, &[b"chunk"]));
    let (status, problem) = sent.await.expect("an answer");
    assert_eq!(status, 503, "{problem}");
    let (status, problem) = assemble(&one, &token, &file).await;
    assert_eq!(status, 503, "{problem}");
    bucket.run().await;
    assert_eq!(send(&one, &token, &[b"chunk"]).await.0, 200);
    assert_eq!(assemble(&one, &token, &file).await.1["state"], "ok");

    // An object that is lost in the bucket is uploaded again.
    for object in bucket.objects("files") {
        std::fs::remove_file(object).unwrap();
    }
    assert_eq!(assemble(&one, &token, &file).await.1["state"], "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_named() {
    let bucket = Bucket::start().await;
    let mut servers = Servers::new().await;
    let server = servers.start(&bucket, "wrong").await;
    server.drained().await;
    let token = servers.token();
    let (status, problem) = send(&server, &token, &[b"chunk"]).await;
    assert_eq!(status, 503, "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("rejects the credentials"), "{detail}");
}
