//! Symbol files and requests that try to harm the server.

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::Method;
use serde_json::json;
use tokio::time::timeout;
use unjank_database::SymbolFileFilter;
use unjank_foundation::shares::Holder;

use crate::processes::{Program, token};
use crate::server::{Server, spans};
use crate::symbol_uploads::{body_of, large_mapping, named, nothing_is_left, zipped};
use crate::symbols::{assemble, build_program, mapping, sha1, upload_chunk, upload_to};
use crate::symbols_command::damaged_library;

/// A server whose parser has little memory and time, and a token for uploads.
async fn server(arguments: &[&str]) -> (Server, String) {
    let server = Server::with(arguments).await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    (server, token)
}

/// Uploads a file that must be refused. Returns the reason.
async fn refusal(server: &Server, token: &str, file: &[u8]) -> String {
    let state = upload_to(server, (token, "default"), file).await;
    assert_eq!(state["state"], "error", "{state}");
    state["detail"].as_str().unwrap().to_owned()
}

async fn healthy(server: &Server) {
    let health = format!("{}/healthz", server.url);
    let answer = server.client.get(health).send().await.unwrap();
    assert_eq!(answer.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chunk_that_inflates_without_end_is_refused() {
    let (server, token) = server(&[]).await;
    let mut bomb = GzEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..20 {
        bomb.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let bomb = bomb.finish().unwrap();
    let mut body = body_of(&[(sha1(b"zeros"), bomb.as_slice())]);
    let at = body
        .windows(6)
        .position(|part| part == b"\"file\"")
        .unwrap();
    body.splice(at + 5..at + 5, *b"_gzip");
    let url = format!("{}/api/0/organizations/x/chunk-upload/", server.url);
    let request = server.client.post(url).bearer_auth(&token);
    let request = request.header("content-type", "multipart/form-data; boundary=end");
    let answer = request.body(body).send().await.unwrap();
    assert_eq!(answer.status(), 422);
    let text = answer.text().await.unwrap();
    assert!(text.contains("after decompression"), "{text}");
    nothing_is_left(server.data_dir());
}

/// A bundle of source maps: a ZIP archive behind eight bytes.
fn bundle(files: &[(&str, &[u8])]) -> Vec<u8> {
    [&b"SYSB\x02\0\0\0"[..], &zipped(files)].concat()
}

fn manifest(path: &str) -> Vec<u8> {
    let id = "c0ffee00-1234-4321-8765-0123456789ab";
    json!({"files": {path: {
        "type": "source_map", "url": "../../../etc/passwd.map", "headers": {"debug-id": id},
    }}})
    .to_string()
    .into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_that_inflate_without_end_are_refused() {
    let limits = ["--symbols-parser-memory-bytes", "134217728"];
    let (server, token) = server(&limits).await;
    let zeros = vec![b' '; 80 << 20];
    let limits = [
        "larger than 64 MiB",
        "does not fit in memory",
        "more than 128 MiB of memory",
    ];
    let is_limit = |reason: &str| limits.iter().any(|limit| reason.contains(limit));
    let reason = refusal(&server, &token, &bundle(&[("manifest.json", &zeros)])).await;
    assert!(is_limit(&reason), "{reason}");
    let path = "files/_/_/app.js.map";
    let bomb = bundle(&[("manifest.json", &manifest(path)), (path, &zeros)]);
    let state = upload_to(&server, (&token, "default"), &bomb).await;
    assert!(["ok", "error"].contains(&state["state"].as_str().unwrap()));
    healthy(&server).await;
    nothing_is_left(server.data_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_shown_and_never_used_as_paths() {
    let (server, token) = server(&[]).await;
    let path = "../../../../etc/passwd";
    let evil = bundle(&[("manifest.json", &manifest(path)), (path, b"{}")]);
    upload_to(&server, (&token, "default"), &evil).await;
    let file = mapping();
    let chunk = sha1(&file);
    assert_eq!(upload_chunk(&server, &token, &chunk, &file).await, 200);
    let wanted =
        json!({chunk.clone(): {"name": "../../../\u{0}etc/passwd\r\n", "chunks": [chunk]}});
    let url = "/api/0/projects/unjank/default/files/difs/assemble/";
    let answer = server.call(&token, Method::POST, url, Some(wanted)).await;
    let dif = &answer.body[&chunk]["dif"];
    assert_eq!(dif["objectName"], "../../../etc/passwd");
    for name in ["../x", "..%2f..%2fx", "a/../b"] {
        let url = format!("/api/0/projects/unjank/{name}/files/difs/assemble/");
        let answer = server
            .call(&token, Method::POST, &url, Some(json!({})))
            .await;
        assert_eq!(answer.status, 404, "{name}");
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(server.data_dir().join("symbols/files")).unwrap() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    assert_eq!(names, ["default"]);
    nothing_is_left(server.data_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_need_too_much_memory_or_time_are_refused_with_the_reason() {
    let (mut server, token) = server(&["--symbols-parser-memory-bytes", "134217728"]).await;
    let file = large_mapping("shop", 400_000);
    let reason = refusal(&server, &token, &file).await;
    assert!(reason.contains("more than 128 MiB of memory"), "{reason}");
    server.change(&["--symbols-parser-ms", "1000"]);
    server.restart().await;
    server.ready().await;
    let reason = refusal(&server, &token, &file).await;
    assert!(reason.contains("longer than 1 s"), "{reason}");
    healthy(&server).await;
    nothing_is_left(server.data_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_debug_information_is_refused_or_harmless() {
    let (server, token) = server(&[]).await;
    let folder = tempfile::tempdir().unwrap();
    let absurd = damaged_library(folder.path());
    let reason = refusal(&server, &token, &absurd).await;
    assert!(
        reason.contains("declares more than it can contain"),
        "{reason}"
    );
    let whole = build_program(folder.path()).file;
    for share in [10, 90, 99] {
        let cut = &whole[..whole.len() * share / 100];
        let reason = refusal(&server, &token, cut).await;
        assert!(reason.contains("damaged"), "{reason}");
    }
    // Sections of debug information, and tables of symbols, full of noise.
    for start in [40, 80] {
        let mut noisy = whole.clone();
        let from = noisy.len() * start / 100;
        for (at, byte) in noisy.iter_mut().enumerate().skip(from).take(200_000) {
            *byte = byte.wrapping_mul(31).wrapping_add(at.to_le_bytes()[0]);
        }
        let state = upload_to(&server, (&token, "default"), &noisy).await;
        assert!(
            ["ok", "error"].contains(&state["state"].as_str().unwrap()),
            "{state}"
        );
    }
    healthy(&server).await;
    nothing_is_left(server.data_dir());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_may_name_a_thousand_files_and_no_more() {
    let (server, token) = server(&[]).await;
    let mut wanted = json!({});
    for number in 0..1_000 {
        let name = sha1(format!("{number}").as_bytes());
        wanted[&name] = json!({"name": "x", "chunks": [sha1(name.as_bytes())]});
    }
    let url = "/api/0/projects/unjank/default/files/difs/assemble/";
    let answer = server
        .call(&token, Method::POST, url, Some(wanted.clone()))
        .await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body.as_object().unwrap().len(), 1_000);
    // All chunks of these files are uploaded, so most of the files wait.
    let chunk = sha1(b"chunk");
    assert_eq!(upload_chunk(&server, &token, &chunk, b"chunk").await, 200);
    for state in wanted.as_object_mut().unwrap().values_mut() {
        state["chunks"] = json!([chunk]);
    }
    let answer = server
        .call(&token, Method::POST, url, Some(wanted.clone()))
        .await;
    assert_eq!(answer.status, 200);
    let states = answer.body.as_object().unwrap();
    assert!(states.values().all(|state| state["state"] != "ok"));
    wanted[sha1(b"one more")] = json!({"name": "x", "chunks": []});
    let answer = server.call(&token, Method::POST, url, Some(wanted)).await;
    assert_eq!(answer.status, 422);
    healthy(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_to_assemble_files_take_turns_with_uploads() {
    let (server, token) = server(&[]).await;
    let app = server.app();
    let holders = ["one", "two"].map(|name| Holder::new("test", name.as_bytes()));
    let turns = holders.map(|holder| app.symbol_uploads.try_take(holder, 2).unwrap());
    let (file, chunks) = (mapping(), [sha1(b"chunk")]);
    let files = assemble(&server, (&token, "default"), &file, &chunks);
    let bundle = json!({"checksum": sha1(b"bundle"), "chunks": chunks, "projects": ["default"]});
    let url = "/api/0/organizations/unjank/artifactbundle/assemble/";
    let bundle = server.call(&token, Method::POST, url, Some(bundle));
    let (mut files, mut bundle) = (Box::pin(files), Box::pin(bundle));
    for _ in 0..2 {
        let shortly = Duration::from_millis(100);
        assert!(timeout(shortly, &mut files).await.is_err());
        assert!(timeout(shortly, &mut bundle).await.is_err());
    }
    drop(turns);
    assert_eq!(files.await.body[sha1(&file)]["state"], "not_found");
    assert_eq!(bundle.await.body["state"], "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_files_of_one_project_do_not_hold_up_another() {
    let (server, token) = server(&[]).await;
    let operator = server.token("admin").await;
    let made = json!({"id": "bank", "name": "Bank"});
    server
        .call(&operator, Method::POST, "/api/v1/projects", Some(made))
        .await;
    let mut wanted = json!({});
    for number in 0..12 {
        let file = large_mapping(&format!("shop{number}"), 20_000);
        let name = sha1(&file);
        assert_eq!(upload_chunk(&server, &token, &name, &file).await, 200);
        wanted[&name] = json!({"name": "x", "chunks": [name]});
    }
    let url = "/api/0/projects/unjank/default/files/difs/assemble/";
    let slow = server.call(&token, Method::POST, url, Some(wanted.clone()));
    let bank = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let state = upload_to(&server, (&operator, "bank"), &mapping()).await;
        assert_eq!(state["state"], "ok", "{state}");
        let app = server.app();
        let files = app
            .control
            .symbol_files("default", SymbolFileFilter::default(), 100);
        files.await.unwrap().len()
    };
    let (_, done) = tokio::join!(slow, bank);
    assert!(done < 12, "the other project waited for all files");
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_bounded_while_several_tools_upload() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path()).await;
    let peak = || {
        let status = format!("/proc/{}/status", program.pid());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let kib = line.unwrap().split_whitespace().nth(1).unwrap();
        kib.parse::<u64>().unwrap() >> 10
    };
    let tokens = [(); 4].map(|()| token(folder.path(), "editor", &[]));
    let before = peak();
    let url = format!("{}/api/0/organizations/x/chunk-upload/", program.listen);
    let upload = async |number: usize| {
        // Noise does not compress, also not in the memory of the test.
        let mut noise = fastrand::Rng::with_seed(number as u64);
        let chunks: Vec<Vec<u8>> = (0..4)
            .map(|_| {
                std::iter::repeat_with(|| noise.u8(..))
                    .take((8 << 20) - 200)
                    .collect()
            })
            .collect();
        let chunks: Vec<_> = chunks.iter().map(|chunk| named(chunk)).collect();
        let request = program.client.post(&url).bearer_auth(&tokens[number]);
        let request = request.header("content-type", "multipart/form-data; boundary=end");
        let answer = request.body(body_of(&chunks)).send().await.unwrap();
        assert_eq!(answer.status(), 200);
    };
    tokio::join!(upload(0), upload(1), upload(2), upload(3));
    let grown = peak() - before;
    assert!(grown < 128, "128 MiB of uploads took {grown} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_cannot_use_the_chunks_of_another() {
    let (server, token) = server(&[]).await;
    let file = mapping();
    assert_eq!(
        upload_chunk(&server, &token, &sha1(&file), &file).await,
        200
    );
    let other = server.token("editor --project default").await;
    let answer = assemble(&server, (&other, "default"), &file, &[sha1(&file)]).await;
    assert_eq!(answer.body[sha1(&file)]["state"], "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_cannot_spoil_the_upload_of_another() {
    let (server, token) = server(&[]).await;
    let other = server.token("editor --project default").await;
    let (file, junk) = (mapping(), b"junk".as_slice());
    assert_eq!(upload_chunk(&server, &other, &sha1(junk), junk).await, 200);
    for (chunks, why) in [
        (vec![], "the file is empty"),
        (vec![sha1(junk)], "its SHA-1 differs"),
    ] {
        let answer = assemble(&server, (&other, "default"), &file, &chunks).await;
        let state = &answer.body[sha1(&file)];
        assert_eq!(state["state"], "error", "{state}");
        let detail = state["detail"].as_str().unwrap();
        assert!(detail.contains(why), "{detail}");
    }
    let state = upload_to(&server, (&token, "default"), &file).await;
    assert_eq!(state["state"], "ok", "{state}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_larger_than_the_largest_is_refused_by_the_number_of_its_chunks() {
    let (server, token) = server(&[]).await;
    let chunk = sha1(b"chunk");
    let wanted = json!({"name": "x", "chunks": vec![chunk.clone(); 4_097]});
    let url = "/api/0/projects/unjank/default/files/difs/assemble/";
    let wanted = Some(json!({ chunk: wanted }));
    let answer = server.call(&token, Method::POST, url, wanted).await;
    assert_eq!(answer.status, 413, "{:?}", answer.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_long_list_of_an_archive_is_refused_unread() {
    let (server, token) = server(&[]).await;
    let mut archive = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for number in 0..1_100 {
        let options = zip::write::SimpleFileOptions::default();
        archive.start_file(number.to_string(), options).unwrap();
    }
    refused_as_too_long(&server, &token, archive.finish().unwrap().into_inner()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_archive_leaves_no_chunks() {
    let (server, token) = server(&[]).await;
    let names: Vec<String> = (0..65).map(|number| format!("{number}.txt")).collect();
    let files: Vec<(&str, &[u8])> = (names.iter())
        .map(|name| (name.as_str(), name.as_bytes()))
        .collect();
    refused_as_too_long(&server, &token, zipped(&files)).await;
    nothing_is_left(server.data_dir());
}

async fn refused_as_too_long(server: &Server, token: &str, archive: Vec<u8>) {
    let part = reqwest::multipart::Part::bytes(archive).file_name("symbols.zip");
    let form = reqwest::multipart::Form::new().part("file", part);
    let url = format!("{}/api/0/projects/x/default/files/dsyms/", server.url);
    let request = server.client.post(url).bearer_auth(token).multipart(form);
    let answer = request.send().await.unwrap();
    let (status, text) = (answer.status(), answer.text().await.unwrap());
    assert_eq!(status, 422, "{text}");
    assert!(text.contains("more than 64 files"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_stop_before_the_disk_is_too_full_for_batches() {
    let free = Command::new("df")
        .args(["--output=avail", "--block-size=1"])
        .arg(std::env::temp_dir())
        .output()
        .unwrap();
    let free = String::from_utf8(free.stdout).unwrap();
    let free: u64 = free.lines().next_back().unwrap().trim().parse().unwrap();
    let least = (free / 4 * 3).to_string();
    let (server, token) = server(&["--min-free-bytes", &least]).await;
    assert_eq!(server.send(&spans(1)).await.status, 202);
    let file = mapping();
    let status = upload_chunk(&server, &token, &sha1(&file), &file).await;
    assert_eq!(status, 503);
    nothing_is_left(server.data_dir());
}
