//! The assembly of symbol files across crashes of the server and of its parser.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::engine::UNJANK;
use crate::processes::{Program, token};
use crate::symbol_uploads::{body_of, large_mapping, named, nothing_is_left};
use crate::symbols::sha1;
use crate::wait;

/// The size of the chunks.
const CHUNK: usize = 8 << 20;
/// Parsing this many classes takes seconds, so that the parser can be stopped before it is done.
const CLASSES: usize = 100_000;

/// A server in a process of its own, with a token for uploads.
async fn program(folder: &Path) -> (Program, String) {
    let program = Program::start(folder).await;
    (program, token(folder, "editor", &[]))
}

/// Asks a program to assemble a file. Returns the state.
async fn assemble(program: &Program, token: &str, file: &[u8]) -> Value {
    let chunks: Vec<String> = file.chunks(CHUNK).map(sha1).collect();
    let url = format!(
        "{}/api/0/projects/unjank/default/files/difs/assemble/",
        program.listen
    );
    let wanted = json!({sha1(file): {"name": "mapping.txt", "chunks": chunks}});
    let request = program.client.post(url).bearer_auth(token).json(&wanted);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    answer[sha1(file)].clone()
}

async fn send_chunks(program: &Program, token: &str, file: &[u8]) {
    let url = format!(
        "{}/api/0/organizations/unjank/chunk-upload/",
        program.listen
    );
    for chunk in file.chunks(CHUNK) {
        let request = program.client.post(&url).bearer_auth(token);
        let request = request.header("content-type", "multipart/form-data; boundary=end");
        let answer = request.body(body_of(&[named(chunk)])).send().await;
        assert_eq!(answer.unwrap().status(), 200);
    }
}

/// The parser of a server, stopped in the middle of its work. It is killed in the end.
struct Parser(Pid);

impl Parser {
    /// Waits for the parser of a server and stops it.
    async fn stop(server: &Program) -> Self {
        let mut found = None;
        wait::until("the parser works", async || {
            found = parser_of(server.pid());
            found.is_some()
        })
        .await;
        let parser = Self(found.unwrap());
        parser.signal(Signal::STOP);
        parser
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.0, signal).unwrap();
    }
}

impl Drop for Parser {
    fn drop(&mut self) {
        let _killed = kill_process(self.0, Signal::KILL).is_ok();
    }
}

/// Returns the process that parses for a server.
fn parser_of(server: u32) -> Option<Pid> {
    let parent = format!("PPid:\t{server}\n");
    std::fs::read_dir("/proc").unwrap().find_map(|entry| {
        let folder = entry.unwrap().path();
        let status = std::fs::read_to_string(folder.join("status")).ok()?;
        let arguments = std::fs::read(folder.join("cmdline")).ok()?;
        let mut arguments = arguments.split(|byte| *byte == 0);
        let is_parser = status.contains(&parent) && arguments.any(|one| one == b"symbol-parser");
        let id = folder.file_name()?.to_str()?.parse().ok()?;
        is_parser.then(|| Pid::from_raw(id))?
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_during_assembly_continues_after_its_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (mut killed, token) = program(folder.path()).await;
    let file = large_mapping("shop", CLASSES);
    send_chunks(&killed, &token, &file).await;
    let asked = async {
        assemble(&killed, &token, &file).await;
        std::future::pending::<()>().await;
    };
    let _parser = tokio::select! {
        parser = Parser::stop(&killed) => parser,
        () = asked => unreachable!("it waits for the parser"),
    };
    killed.kill();
    let (restarted, _) = program(folder.path()).await;
    let mut state = json!(null);
    wait::until("the file is assembled", async || {
        state = assemble(&restarted, &token, &file).await;
        state["state"] == "ok"
    })
    .await;
    nothing_is_left(folder.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiting_file_is_assembled_after_a_restart_without_another_request() {
    let folder = tempfile::tempdir().unwrap();
    let (mut killed, token) = program(folder.path()).await;
    let file = large_mapping("shop", CLASSES);
    send_chunks(&killed, &token, &file).await;
    let (_parser, state) = tokio::join!(Parser::stop(&killed), assemble(&killed, &token, &file));
    assert_eq!(state["state"], "assembling", "{state}");
    killed.kill();
    let (_restarted, _) = program(folder.path()).await;
    let files = folder.path().join("symbols/files/default");
    wait::until("the file is assembled", async || files.exists()).await;
    wait::until("its chunks are deleted", async || {
        !folder.path().join("symbols/chunks").exists()
    })
    .await;
}

/// A machine without memory ends the parser. The file is not to blame.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_parser_was_killed_can_be_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let (server, token) = program(folder.path()).await;
    let file = large_mapping("shop", CLASSES);
    send_chunks(&server, &token, &file).await;
    let killed = async { drop(Parser::stop(&server).await) };
    let failed = async {
        let mut state = json!(null);
        wait::until("the file is refused", async || {
            state = assemble(&server, &token, &file).await;
            state["state"] != "assembling"
        })
        .await;
        state
    };
    let ((), state) = tokio::join!(killed, failed);
    assert_eq!(state["state"], "error", "{state}");
    let detail = state["detail"].as_str().unwrap();
    assert!(detail.contains("Upload the file again later"), "{detail}");

    wait::until("the file is assembled from the same chunks", async || {
        assemble(&server, &token, &file).await["state"] == "ok"
    })
    .await;
    nothing_is_left(folder.path());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parser_ends_with_its_server() {
    let folder = tempfile::tempdir().unwrap();
    // Opening this waits for a writer that never comes.
    let pipe = folder.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().await;
    assert!(made.unwrap().success());
    let mut parser = Command::new(UNJANK)
        .args(["symbol-parser", "--max-memory-bytes", "67108864"])
        .args(["--max-seconds", "60", "inspect"])
        .arg(&pipe)
        .stdin(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let server = parser.stdin.take();
    let threads = format!("/proc/{}/task", parser.id().unwrap());
    wait::until("a thread of the parser waits for the server", async || {
        assert!(parser.try_wait().unwrap().is_none(), "the parser ended");
        std::fs::read_dir(&threads).unwrap().count() > 1
    })
    .await;
    drop(server);
    let ended = tokio::time::timeout(wait::PATIENCE, parser.wait()).await;
    ended.expect("the parser ends").unwrap();
}
