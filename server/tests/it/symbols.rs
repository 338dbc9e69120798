//! Symbol files: uploaded as build tools do it, and used for stacks that arrive before or after them.

use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};
use sha1::{Digest, Sha1};

use crate::alerts::Watched;
use crate::server::{Answer, Server, batch};
use crate::wait::until;

pub(crate) const MAP_ID: &str = "5a7d1b0c9e8f70615243342516078f9eadbccbda0f1e2d3c4b5a69788796a5b4";

/// A mapping as R8 writes it: `sum` was inlined into `pay`.
pub(crate) fn mapping() -> Vec<u8> {
    format!(
        "# compiler: R8\n# compiler_version: 8.7.18\n# pg_map_id: {MAP_ID}\n# pg_map_hash: SHA-256 {MAP_ID}\n\
         com.example.shop.Cart -> a.b:\n# {{\"id\":\"sourceFile\",\"fileName\":\"Cart.kt\"}}\n    \
         1:1:int com.example.shop.Prices.sum(int):12:12 -> a\n    1:1:void pay():30 -> a\n    2:9:void clear():40:47 -> b\n\
         com.example.shop.Prices -> a.c:\n# {{\"id\":\"sourceFile\",\"fileName\":\"Prices.kt\"}}\n    int total -> a\n"
    )
    .into_bytes()
}

pub(crate) fn sha1(bytes: &[u8]) -> String {
    format!("{:x}", Sha1::digest(bytes))
}

pub(crate) async fn upload_chunk(server: &Server, token: &str, name: &str, chunk: &[u8]) -> u16 {
    let mut body = format!(
        "--end\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
         Content-Type: application/octet-stream\r\n\r\n"
    )
    .into_bytes();
    body.extend_from_slice(chunk);
    body.extend_from_slice(b"\r\n--end--\r\n");
    let answer = reqwest::Client::new()
        .post(format!(
            "{}/api/0/organizations/unjank/chunk-upload/",
            server.url
        ))
        .bearer_auth(token)
        .header("content-type", "multipart/form-data; boundary=end")
        .body(body)
        .send()
        .await
        .unwrap();
    answer.status().as_u16()
}

pub(crate) async fn assemble(
    server: &Server,
    (token, project): (&str, &str),
    file: &[u8],
    chunks: &[String],
) -> Answer {
    let wanted = json!({sha1(file): {"name": "mapping.txt", "chunks": chunks}});
    let path = format!("/api/0/projects/unjank/{project}/files/difs/assemble/");
    server.call(token, Method::POST, &path, Some(wanted)).await
}

async fn upload(server: &Server, token: &str, file: &[u8]) -> Value {
    upload_to(server, (token, "default"), file).await
}

/// Uploads a file in chunks of 100 KiB, or 4 MiB if it is large, and polls until it is assembled. Returns the last state.
pub(crate) async fn upload_to(server: &Server, to: (&str, &str), file: &[u8]) -> Value {
    let chunk = if file.len() < 4 << 20 {
        100 << 10
    } else {
        4 << 20
    };
    let pieces: Vec<&[u8]> = file.chunks(chunk).collect();
    let names: Vec<String> = pieces.iter().map(|piece| sha1(piece)).collect();
    let first = assemble(server, to, file, &names).await;
    let state = &first.body[sha1(file)];
    if state["state"] == "not_found" {
        assert_eq!(state["missingChunks"], json!(names));
        for (piece, name) in pieces.iter().zip(&names) {
            assert_eq!(upload_chunk(server, to.0, name, piece).await, 200);
        }
    }
    let mut state = Value::Null;
    until("the file is assembled", async || {
        let answer = assemble(server, to, file, &names).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        state = answer.body[sha1(file)].clone();
        state["state"] != "assembling"
    })
    .await;
    state
}

pub(crate) fn janks(stack: &Value) -> Value {
    let mut batch = batch();
    batch["janks"] = json!([{
        "kind": "jank", "start": "2026-11-20T11:59:50Z", "duration_ms": 2300, "thread": "main", "stack": stack,
    }]);
    batch
}

pub(crate) fn obfuscated() -> Value {
    json!([
        {"class": "java.util.Arrays", "function": "sort", "file": "Arrays.java", "line": 90},
        {"class": "a.b", "function": "a", "file": format!("r8-map-id-{MAP_ID}"), "line": 1},
    ])
}

pub(crate) const READABLE: &str = "SELECT arrayStringConcat(arrayMap((c, f, file, line, o) -> concat(c, '.', f, ' ', file, ':', toString(line), ' ', toString(o)), \
    `frames.class`, `frames.function`, `frames.file`, `frames.line`, `frames.origin`), ', ') FROM stacks_symbolicated FINAL";
pub(crate) const CULPRITS: &str = "SELECT culprit FROM stack_class_current";

#[tokio::test(flavor = "multi_thread")]
async fn a_mapping_makes_later_stacks_readable() {
    let server = Server::start().await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    let state = upload(&server, &token, &mapping()).await;
    assert_eq!(state["state"], "ok", "{state}");
    assert_eq!(state["dif"]["symbolType"], "r8");
    server.send(&janks(&obfuscated())).await;
    server
        .answers(
            READABLE,
            "java.util.Arrays.sort Arrays.java:90 0, com.example.shop.Prices.sum Prices.kt:12 2, com.example.shop.Cart.pay Cart.kt:30 1",
        )
        .await;
    server
        .answers(CULPRITS, "com.example.shop.Prices.sum")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_mapping_repairs_stored_stacks() {
    let server = Server::start().await;
    server.ready().await;
    server.send(&janks(&obfuscated())).await;
    server.answers(CULPRITS, "a.b.a").await;
    let missing = "SELECT missing[1] FROM stacks_symbolicated FINAL";
    server.answers(missing, MAP_ID).await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    let state = upload(&server, &token, &mapping()).await;
    assert_eq!(state["state"], "ok", "{state}");
    server
        .answers(CULPRITS, "com.example.shop.Prices.sum")
        .await;
    let missing = "SELECT length(missing) FROM stacks_symbolicated FINAL";
    server.answers(missing, "0").await;
    let viewer = server.token("viewer --project default").await;
    let path =
        "/api/v1/projects/default/janks/stacks?from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z";
    let stacks = server.call(&viewer, Method::GET, path, None).await;
    let frames = &stacks.body["stacks"][0]["frames"];
    assert_eq!(frames[1]["label"], "com.example.shop.Prices.sum");
    let origins = [0, 1, 2].map(|place| frames[place]["origin"].as_str().unwrap_or_default());
    assert_eq!(origins, ["reported", "inlined", "called"]);
}

/// Prints the offset of its function `stall` in its image.
const PROGRAM: &str = "
#[inline(always)]
fn spin(x: u64, i: u64) -> u64 {
    std::hint::black_box(x.rotate_left(7) ^ i)
}
#[inline(never)]
fn stall(n: u64) -> u64 {
    let mut x = n;
    for i in 0..n {
        x = spin(x, i);
    }
    x
}
fn main() {
    let maps = std::fs::read_to_string(\"/proc/self/maps\").unwrap();
    let base = u64::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
    println!(\"{} {}\", stall as *const () as usize as u64 - base, stall(2));
}";

/// A program with a build id, and with debug information.
pub(crate) struct Shop {
    pub(crate) file: Vec<u8>,
    /// The id of the linker, which devices send.
    pub(crate) build_id: String,
    pub(crate) offset_of_stall: u64,
}

/// Builds the program `shop` in a folder.
pub(crate) fn build_program(folder: &Path) -> Shop {
    let (source, program) = (folder.join("shop.rs"), folder.join("shop"));
    std::fs::write(&source, PROGRAM).unwrap();
    let built = Command::new("rustc")
        .args(["-g", "-O", "--edition", "2024"])
        .args(["-C", "link-arg=-Wl,--build-id=sha1", "-o"])
        .args([&program, &source])
        .status()
        .unwrap();
    assert!(built.success());
    let output = Command::new(&program).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let file = std::fs::read(&program).unwrap();
    let found = unjank_symbols::inspect(&file).unwrap();
    Shop {
        file,
        build_id: found[0].ids[0].clone(),
        offset_of_stall: output.split(' ').next().unwrap().parse().unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn samples_of_one_native_stall_are_one_group_with_function_and_line() {
    let folder = tempfile::tempdir().unwrap();
    let shop = build_program(folder.path());
    let (start, build_id, file) = (shop.offset_of_stall, shop.build_id, shop.file);

    let server = Server::start().await;
    server.ready().await;
    for offset in start..start + 5 {
        let stack = json!([{"module": "shop", "build_id": build_id, "offset": offset}]);
        server.send(&janks(&stack)).await;
    }
    let groups = "SELECT count(), uniqExact(group_id), any(title) FROM stack_class_current";
    server.answers(groups, "5\t1\tshop").await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    let state = upload(&server, &token, &file).await;
    assert_eq!(state["state"], "ok", "{state}");
    server.answers(groups, "5\t1\tshop::stall").await;
    let lines = "SELECT count() FROM stacks_symbolicated FINAL \
        WHERE `frames.function`[-1] = 'shop::stall' AND endsWith(`frames.file`[-1], 'shop.rs') AND `frames.line`[-1] BETWEEN 7 AND 13";
    server.answers(lines, "5").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn useless_files_and_wrong_chunks_are_refused_with_a_reason() {
    let server = Server::start().await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    let state = upload(&server, &token, b"holiday.jpg").await;
    assert_eq!(state["state"], "error");
    let detail = state["detail"].as_str().unwrap();
    assert!(detail.starts_with("not a symbol file"), "{detail}");
    let mut elf = std::fs::read("/proc/self/exe").unwrap();
    elf.truncate(200 << 10);
    let state = upload(&server, &token, &elf).await;
    assert_eq!(state["state"], "error", "{state}");
    let wrong = upload_chunk(&server, &token, &sha1(b"other"), b"this").await;
    assert_eq!(wrong, 422);
    let traversal = upload_chunk(&server, &token, "../../../etc/passwd", b"this").await;
    assert_eq!(traversal, 422);
    // The token is valid for nothing else, and other tokens do not see its chunks.
    let config = "/api/v1/projects/default/config";
    let answer = server.call(&token, Method::GET, config, None).await;
    assert_eq!(answer.status, 403);
    let mapping = mapping();
    assert_eq!(
        upload_chunk(&server, &token, &sha1(&mapping), &mapping).await,
        200
    );
    let other = server.token("editor --project default").await;
    let state = assemble(&server, (&other, "default"), &mapping, &[sha1(&mapping)]).await;
    assert_eq!(state.body[sha1(&mapping)]["state"], "not_found");
    let viewer = server.token("viewer --project default").await;
    assert_eq!(
        upload_chunk(&server, &viewer, &sha1(&mapping), &mapping).await,
        403
    );
}

/// The script `function a(){b()}`: `a` is `pay` in line 10 of `cart.js`, and its call of `b` is that of `send` in line 11.
const SOURCE_MAP: &str = r#"{"version": 3, "file": "app.js", "debug_id": "6f2b1c7e-98c4-4d5e-8a71-0d9f3b6a5e42", "sources": ["cart.js"],
    "names": ["pay", "send"], "mappings": "AASAA,aACIC"}"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_late_source_map_repairs_frames_of_scripts_whose_module_is_named_once() {
    let server = Server::start().await;
    server.ready().await;
    let mut batch = janks(&json!([
        {"module_index": 0, "function": "a", "file": "https://example.com/app.js", "line": 1, "column": 14},
    ]));
    batch["modules"] =
        json!([{"name": "app.js", "build_id": "6f2b1c7e-98c4-4d5e-8a71-0d9f3b6a5e42"}]);
    server.send(&batch).await;
    server
        .answers(
            "SELECT missing[1] FROM stacks_symbolicated FINAL",
            "6f2b1c7e98c44d5e8a710d9f3b6a5e42",
        )
        .await;
    server
        .answers(
            "SELECT `frames.column`[1], `frames.module`[1] FROM stacks",
            "14\tapp.js",
        )
        .await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    let state = upload(&server, &token, SOURCE_MAP.as_bytes()).await;
    assert_eq!(state["state"], "ok", "{state}");
    // Nothing in the map tells the function, so it keeps the name that the device sent.
    server.answers(READABLE, ".a cart.js:11 1").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mapping_of_another_build_is_named() {
    let server = Server::start().await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    let state = upload(&server, &token, &mapping()).await;
    assert_eq!(state["state"], "ok", "{state}");
    let stack = json!([{"class": "x.y", "function": "z", "file": format!("r8-map-id-{MAP_ID}"), "line": 1}]);
    server.send(&janks(&stack)).await;
    server
        .answers(
            "SELECT mismatched[1] FROM stacks_symbolicated FINAL",
            MAP_ID,
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_that_names_a_missing_module_is_rejected_alone() {
    let server = Server::start().await;
    server.ready().await;
    let mut batch = janks(&json!([{"module_index": 3, "offset": 16}]));
    batch["modules"] = json!([{"name": "libshop.so", "build_id": "67e9247c"}]);
    let receipt = server.send(&batch).await;
    assert_eq!(
        receipt.body["rejected"][0]["code"], "unknown_module",
        "{:?}",
        receipt.body
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn old_links_comments_and_open_incidents_follow_a_group_that_a_late_mapping_moves() {
    let watched = Watched::start().await;
    watched.send(janks(&obfuscated())).await;
    let server = &watched.server;
    server.answers(CULPRITS, "a.b.a").await;
    let group = "SELECT group_id FROM stack_class_current";
    let before = server.query(group).await;
    // Rounds evaluate a time some seconds ago.
    server.pass(std::time::Duration::from_mins(1));
    let rule = watched
        .rule(json!({
            "name": "Stalls", "metric": {"signal": "janks", "measure": "count", "by": ["group_id"]},
            "window_minutes": 60, "for_minutes": 0, "least_samples": 1,
            "condition": {"kind": "threshold", "above": 0.5},
        }))
        .await;
    assert!(rule["id"].is_string(), "{rule}");
    let opened = watched.incidents(|all| all.len() == 1).await;
    assert_eq!(opened[0]["group"], json!({"group_id": before}));
    let comment = format!("janks/groups/{before}/comments");
    let comment = watched.call(Method::POST, &comment, Some(json!({"text": "hot"})));
    assert_eq!(comment.await.status, 201);

    let token = server
        .token("editor --project default --only-symbols")
        .await;
    upload(server, &token, &mapping()).await;
    server
        .answers(CULPRITS, "com.example.shop.Prices.sum")
        .await;
    let after = server.query(group).await;
    assert_ne!(before, after);
    let link = watched.get(&format!("janks/groups/{before}")).await;
    assert_eq!(link, json!({"group_id": after, "moved": true}));
    let link = watched.get(&format!("janks/groups/{after}")).await;
    assert_eq!(link, json!({"group_id": after, "moved": false}));
    let handling = format!("janks/groups/{after}/handling");
    until("the comment has followed", async || {
        watched.get(&handling).await["comments"][0]["text"] == "hot"
    })
    .await;
    watched.two_rounds().await;
    let followed = watched
        .incidents(|all| all[0]["group"]["group_id"] == after)
        .await;
    assert_eq!((followed.len(), &followed[0]["id"]), (1, &opened[0]["id"]));
    assert_eq!(followed[0]["state"], "firing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_no_stack_needs_is_deleted_and_one_in_use_is_kept() {
    let server = Server::with(&[
        "--symbols-unused-days",
        "1",
        "--retention-interval-ms",
        "200",
    ])
    .await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    for file in [mapping(), SOURCE_MAP.into()] {
        let state = upload(&server, &token, &file).await;
        assert_eq!(state["state"], "ok", "{state}");
    }
    server.send(&janks(&obfuscated())).await;
    server
        .answers(CULPRITS, "com.example.shop.Prices.sum")
        .await;
    server.pass(std::time::Duration::from_hours(50));
    assert_eq!(format_of_the_last_file(&server).await, "r8");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_builds_upload_again_and_again_is_kept() {
    let server = Server::with(&[
        "--symbols-unused-days",
        "3",
        "--retention-interval-ms",
        "200",
    ])
    .await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    for file in [mapping(), SOURCE_MAP.into()] {
        let state = upload(&server, &token, &file).await;
        assert_eq!(state["state"], "ok", "{state}");
    }
    server.pass(std::time::Duration::from_hours(60));
    let state = upload(&server, &token, &mapping()).await;
    assert_eq!(state["state"], "ok", "{state}");
    server.pass(std::time::Duration::from_hours(30));
    assert_eq!(format_of_the_last_file(&server).await, "r8");
}

/// Waits until one symbol file is left. Returns its format.
async fn format_of_the_last_file(server: &Server) -> String {
    let viewer = server.token("viewer --project default").await;
    let path = "/api/v1/projects/default/symbols/files";
    let files = async || server.call(&viewer, Method::GET, path, None).await.body["files"].clone();
    until("one file is left", async || {
        files().await.as_array().unwrap().len() == 1
    })
    .await;
    let left = files().await;
    let format = left[0]["builds"][0]["format"].as_str();
    format.unwrap().to_owned()
}
