//! A function of an app is one, whatever compiler options built the app.

use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::Server;
use crate::symbols::{janks, upload_to};

/// Prints the offset of a method in its image. Each mangling names the method differently: its body is in the trait.
const PROGRAM: &str = r#"
trait Shape {
    fn area(&self) -> u64;
    #[inline(never)]
    fn twice(&self) -> u64 {
        let mut sum = 0;
        for _ in 0..2 {
            sum += self.area();
        }
        sum
    }
}
struct Bag(u64);
impl Shape for Bag {
    fn area(&self) -> u64 {
        self.0
    }
}
fn main() {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let base = u64::from_str_radix(maps.split('-').next().unwrap(), 16).unwrap();
    let twice: fn(&Bag) -> u64 = Bag::twice;
    println!("{} {}", twice as *const () as usize as u64 - base, twice(&Bag(1)));
}
"#;

const LEGACY: [&str; 2] = ["-Zunstable-options", "-Csymbol-mangling-version=legacy"];
const V0: &str = "-Csymbol-mangling-version=v0";

struct Program {
    file: Vec<u8>,
    build_id: String,
    offset: u64,
}

fn build(folder: &Path, options: &[&str]) -> Program {
    let (source, program) = (folder.join("shop.rs"), folder.join("shop"));
    std::fs::write(&source, PROGRAM).unwrap();
    let built = Command::new("rustc")
        .args(["--edition", "2024", "-Clink-arg=-Wl,--build-id=sha1"])
        .args(options)
        .arg("-o")
        .args([&program, &source])
        // The older mangling is an unstable option.
        .env("RUSTC_BOOTSTRAP", "1")
        .status()
        .unwrap();
    assert!(built.success(), "{options:?}");
    let output = Command::new(&program).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let file = std::fs::read(&program).unwrap();
    let found = unjank_symbols::inspect(&file).unwrap();
    Program {
        build_id: found[0].ids[0].clone(),
        offset: output.split(' ').next().unwrap().parse().unwrap(),
        file,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_with_other_manglings_and_tables_of_lines_share_a_group() {
    let folder = tempfile::tempdir().unwrap();
    let programs = [
        &[LEGACY[0], LEGACY[1], "-g"][..],
        &[V0, "-g"][..],
        &[V0, "-Cdebuginfo=line-tables-only"][..],
    ]
    .map(|options| build(folder.path(), options));
    let server = Server::start().await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    for program in &programs {
        let stack = json!([
            {"module": "shop", "build_id": program.build_id, "offset": program.offset},
        ]);
        let sent = server.send(&janks(&stack)).await;
        assert_eq!(sent.outcome().1, "accepted 1 rejected 0");
        let state = upload_to(&server, (&token, "default"), &program.file).await;
        assert_eq!(state["state"], "ok", "{state}");
    }
    let read = "SELECT count(), countIf(title LIKE '%Shape::twice') FROM stack_class_current";
    server.answers(read, "3\t3").await;

    let viewer = server.token("viewer --project default").await;
    let ask = async |path: &str| {
        let path = format!(
            "/api/v1/projects/default/{path}from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z"
        );
        let answer = server.call(&viewer, Method::GET, &path, None).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    };
    let groups = ask("query/janks?by=group_id&measure=count&").await;
    let rows = groups["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 1, "{groups}");
    assert_eq!(rows[0]["values"], json!([3.0]), "{groups}");

    let stacks = ask("janks/stacks?").await;
    let stacks: &Vec<Value> = stacks["stacks"].as_array().unwrap();
    assert_eq!(stacks.len(), programs.len());
    for stack in stacks {
        let frame = &stack["frames"][0];
        let file = frame["file"].as_str().unwrap();
        assert!(file.ends_with("shop.rs"), "{frame}");
        let line = frame["line"].as_u64().unwrap();
        assert!((4..=10).contains(&line), "{frame}");
    }
}
