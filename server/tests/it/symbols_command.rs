//! `unjank symbols …` against a real server.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use reqwest::Method;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

use crate::server::{Server, batch};
use crate::symbols::{MAP_ID, build_program, janks, mapping};
use crate::symbols_of_scripts;
use crate::wait;

const NAMES_ONLY: &str =
    "MODULE Linux x86_64 0403020106050807090A0B0C0D0E0F100 libshop.so\nPUBLIC 1000 0 checkout\n";

/// The end of a command: its exit code, and both outputs.
pub(crate) struct Ended {
    code: i32,
    text: String,
}

pub(crate) async fn symbols(url: &str, token: &str, line: &[&str]) -> Ended {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_unjank"))
        .arg("symbols")
        .args(line)
        .env("UNJANK_URL", url)
        .env("UNJANK_TOKEN", token)
        .output()
        .await
        .unwrap();
    let outputs = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    Ended {
        code: output.status.code().unwrap(),
        text: outputs.concat(),
    }
}

impl Ended {
    pub(crate) fn expect(&self, code: i32, texts: &[&str]) {
        assert_eq!(self.code, code, "{}", self.text);
        for text in texts {
            assert!(self.text.contains(text), "no `{text}` in\n{}", self.text);
        }
    }
}

/// Links a library without a build id.
fn link_without_id(folder: &Path) {
    let source = folder.join("shop.c");
    std::fs::write(&source, "int pay(void) { return 1; }\n").unwrap();
    let linked = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-g", "-Wl,--build-id=none", "-o"])
        .arg(folder.join("libpay.so"))
        .arg(&source)
        .status()
        .unwrap();
    assert!(linked.success());
}

pub(crate) async fn server_with_token() -> (Server, String) {
    let server = Server::start().await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    (server, token)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_is_uploaded_checked_listed_and_removed() {
    let (server, token) = server_with_token().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("release")).unwrap();
    std::fs::write(folder.path().join("release/mapping.txt"), mapping()).unwrap();
    std::fs::write(folder.path().join("libshop.sym"), NAMES_ONLY).unwrap();
    std::fs::write(folder.path().join("holiday.jpg"), "no symbols").unwrap();
    // A link to a folder above would be an endless walk.
    std::os::unix::fs::symlink(folder.path(), folder.path().join("release/up")).unwrap();
    link_without_id(folder.path());
    let path = folder.path().to_str().unwrap();
    let run = async |line: &[&str]| symbols(&server.url, &token, line).await;

    let dry = symbols("", "", &["upload", "--dry-run", path]).await;
    dry.expect(0, &["would upload", "mapping.txt", MAP_ID, "libshop.sym"]);
    run(&["check", path]).await.expect(1, &["missing"]);
    let uploaded = run(&["upload", path]).await;
    uploaded.expect(
        0,
        &[
            "uploaded",
            "mapping.txt",
            "the file has no lines",
            "libpay.so",
            "no build id",
            "-Wl,--build-id=sha1",
            ".note.gnu.build-id",
        ],
    );
    assert!(!uploaded.text.contains("holiday"), "{}", uploaded.text);
    let again = run(&["upload", path]).await;
    again.expect(0, &["known"]);
    assert!(!again.text.contains("uploaded"), "{}", again.text);
    run(&["check", path])
        .await
        .expect(0, &["complete", "no_lines", "no_id"]);
    run(&["check", "--require-lines", path])
        .await
        .expect(1, &[]);
    let strict = run(&["upload", "--require-lines", path]).await;
    strict.expect(1, &["refused", "no lines in it"]);
    let picture = folder.path().join("holiday.jpg");
    let picture = run(&["upload", picture.to_str().unwrap()]).await;
    picture.expect(1, &["not a symbol file", "nothing to upload"]);

    let list = run(&["list"]).await;
    list.expect(0, &["mapping.txt", MAP_ID, "breakpad x86_64", "2 files"]);
    let json = run(&["list", "--json"]).await;
    let json: Value = serde_json::from_str(&json.text).unwrap();
    let id = json["files"][0]["id"].as_str().unwrap();
    run(&["remove", id]).await.expect(2, &["pass --yes"]);
    run(&["remove", "--yes", id])
        .await
        .expect(2, &["requires the role"]);
    let editor = server.token("editor --project default").await;
    let removed = symbols(&server.url, &editor, &["remove", "--yes", id]).await;
    removed.expect(0, &["removed", id]);
    run(&["list"]).await.expect(0, &["1 files"]);
}

/// A library with a compressed section that declares more than a file of its size can contain.
pub(crate) fn damaged_library(folder: &Path) -> Vec<u8> {
    let (source, library) = (folder.join("pay.c"), folder.join("libpay.so"));
    std::fs::write(&source, "int pay(void) { return 1; }\n").unwrap();
    let linked = std::process::Command::new("cc")
        .args([
            "-shared",
            "-fPIC",
            "-g",
            "-gz=zlib",
            "-Wl,--build-id=sha1",
            "-o",
        ])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(linked.success());
    let mut data = std::fs::read(&library).unwrap();
    std::fs::remove_file(&library).unwrap();
    // The header of a compressed section: the kind, the size, and the alignment.
    const ONE: [u8; 8] = 1_u64.to_le_bytes();
    let headers = |at: &usize| {
        let part = &data[*at..*at + 25];
        part[..8] == ONE && part[16..24] == ONE && part[24] == 0x78
    };
    let places: Vec<usize> = (0..data.len() - 25).filter(headers).collect();
    assert!(!places.is_empty());
    let declared = 2_000 * data.len() as u64;
    for place in places {
        data[place + 8..place + 16].copy_from_slice(&declared.to_le_bytes());
    }
    data
}

#[tokio::test(flavor = "multi_thread")]
async fn a_symbol_file_that_cannot_be_read_fails_the_command_with_the_reason() {
    let (server, token) = server_with_token().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let write = |name: &str, content: &[u8]| {
        std::fs::write(folder.path().join(name), content).unwrap();
    };
    write("mapping.txt", &mapping());
    // The map of a linker, and files of other tools, are not symbol files.
    write(
        "shop.map",
        b"Archive member included to satisfy reference by file\n",
    );
    write("package.map", br#"{"name": "shop"}"#);
    let map = symbols_of_scripts::map();
    write("app.js.map", map.as_bytes());
    let run = async |line: &[&str]| symbols(&server.url, &token, line).await;
    run(&["upload", path]).await.expect(
        0,
        &["uploaded", "app.js.map", "shop.map: not a symbol file"],
    );
    run(&["check", path]).await.expect(0, &["complete"]);

    let damages: [(&str, Vec<u8>, &str); 11] = [
        ("app.wasm", b"\0asm\x01\0\0\0\0".to_vec(), "ends early"),
        ("b.map", b"{\"debugId\":\"6f".to_vec(), "damaged"),
        ("c.js.map", b"{\0\"\0v\0".to_vec(), "UTF-16"),
        ("empty.js.map", Vec::new(), "the file is empty"),
        ("empty.wasm", Vec::new(), "the file is empty"),
        ("lib.so.xz", b"\xfd7zXZ\0\0\x04".to_vec(), "xz: unpack it"),
        ("lib.so.bz2", b"BZh91AY&SY".to_vec(), "bzip2: unpack it"),
        (
            "libpay.so",
            damaged_library(folder.path()),
            "declares more than it can contain",
        ),
        (
            "cut.js.map",
            map.as_bytes()[..map.len() - 30].to_vec(),
            "the file is damaged",
        ),
        (
            "names.js.map",
            map.replace("\"names\"", "names").into_bytes(),
            "the file is damaged",
        ),
        (
            "libcut.sym",
            b"MODULE Linux x86_64 shop\n".to_vec(),
            "damaged",
        ),
    ];
    for (name, content, reason) in damages {
        write(name, &content);
        let dry = symbols("", "", &["upload", "--dry-run", path]).await;
        dry.expect(1, &["refused", name, reason, "would upload"]);
        run(&["check", path]).await.expect(1, &[name, reason]);
        let uploaded = run(&["upload", path]).await;
        uploaded.expect(1, &["refused", name, reason, "known"]);
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    run(&["upload", path]).await.expect(0, &["known"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_mapping_with_the_same_id_is_named_and_wrong_arguments_exit_with_two() {
    let (server, token) = server_with_token().await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mapping.txt");
    let file = path.to_str().unwrap();
    std::fs::write(&path, mapping()).unwrap();
    let run = async |line: &[&str]| symbols(&server.url, &token, line).await;
    run(&["upload", file]).await.expect(0, &["uploaded"]);
    server.pass(Duration::from_secs(1));
    let wrong = String::from_utf8(mapping())
        .unwrap()
        .replace("sum", "wrong");
    std::fs::write(&path, wrong).unwrap();
    let second = run(&["upload", file]).await;
    second.expect(
        0,
        &["warning: another file with this id was uploaded on 2026-11-20"],
    );

    run(&["upload"]).await.expect(2, &["<PATH>"]);
    run(&["upload", "--id", "main.js", file])
        .await
        .expect(2, &["7 to 128"]);
    run(&["check"]).await.expect(2, &["<PATH>"]);
    run(&["upload", "/no/such/folder"])
        .await
        .expect(2, &["/no/such/folder"]);
    run(&["upload", "--project", "other", file])
        .await
        .expect(2, &["there is no project"]);
    let stranger = symbols(&server.url, "ujt_nothing", &["upload", file]).await;
    stranger.expect(2, &["token is unknown"]);
    let nowhere = symbols("http://127.0.0.1:1", &token, &["list"]).await;
    nowhere.expect(2, &["http://127.0.0.1:1", "after 4 attempts"]);
    let unset = symbols(&server.url, &token, &["upload", "--url", "shop", file]).await;
    unset.expect(2, &["--url"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_in_use_is_checked() {
    let (server, token) = server_with_token().await;
    let check = ["check", "--app-version", "4.12.0"];
    let run = async |line: &[&str]| symbols(&server.url, &token, line).await;
    run(&check).await.expect(0, &["nothing to check"]);
    let mut batch = batch();
    batch["janks"] = json!([{
        "kind": "jank", "start": "2026-11-20T11:59:50Z", "duration_ms": 2300, "thread": "main",
        "stack": [{"class": "a.b", "function": "a", "file": format!("r8-map-id-{MAP_ID}"), "line": 1}],
    }]);
    server.send(&batch).await;
    server
        .answers("SELECT count() FROM stacks_symbolicated", "1")
        .await;
    let missing = run(&check).await;
    missing.expect(1, &["missing", MAP_ID, "unjank symbols upload"]);
    let missing = "unjank_symbols_stacks_total{outcome=\"missing\"}";
    assert_eq!(server.metric(missing).await, 1.0);

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mapping.txt");
    std::fs::write(&path, mapping()).unwrap();
    let uploaded = run(&["upload", path.to_str().unwrap()]).await;
    uploaded.expect(0, &["uploaded"]);
    wait::until("the version is complete", async || {
        run(&check).await.code == 0
    })
    .await;
    run(&check).await.expect(0, &["complete: 1 stacks"]);
    let added = "unjank_symbols_files_total{outcome=\"added\"}";
    assert_eq!(server.metric(added).await, 1.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_shows_the_progress_of_an_upload() {
    let (server, token) = server_with_token().await;
    let mut file = mapping();
    file.resize(3 << 20, b'#');
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mapping.txt");
    std::fs::write(&path, file).unwrap();

    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let terminal = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let terminal = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(terminal);
    let shown = std::thread::spawn(move || {
        let mut shown = Vec::new();
        // The terminal ends with an error when nothing has it open any longer.
        let _closed = std::fs::File::from(ours).read_to_end(&mut shown).is_err();
        String::from_utf8_lossy(&shown).into_owned()
    });
    let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_unjank"));
    command
        .args(["symbols", "upload", path.to_str().unwrap()])
        .env("UNJANK_URL", &server.url)
        .env("UNJANK_TOKEN", &token)
        .stderr(terminal.unwrap());
    assert!(command.status().await.unwrap().success());
    drop(command);
    let shown = shown.join().unwrap();
    // Equal chunks are sent once.
    assert!(shown.contains("512.00 KiB/1.00 MiB"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_build_has_one_id_everywhere_and_is_found_by_any_form() {
    let (server, token) = server_with_token().await;
    let folder = tempfile::tempdir().unwrap();
    let shop = build_program(folder.path());
    let notes = std::process::Command::new("readelf")
        .arg("-n")
        .arg(folder.path().join("shop"))
        .output()
        .unwrap();
    let id = shop.build_id.as_str();
    assert!(String::from_utf8(notes.stdout).unwrap().contains(id));
    let path = folder.path().join("shop");
    let path = path.to_str().unwrap();
    let run = async |line: &[&str]| symbols(&server.url, &token, line).await;

    let stack = json!([{"module": "shop", "build_id": id, "offset": shop.offset_of_stall}]);
    let viewer = server.token("viewer --project default").await;
    server.send(&janks(&stack)).await;
    let missing = "SELECT missing[1] FROM stacks_symbolicated FINAL";
    server.answers(missing, id).await;
    run(&["check", path]).await.expect(1, &["missing", id]);
    symbols("", "", &["upload", "--dry-run", path])
        .await
        .expect(0, &[id]);
    run(&["upload", path]).await.expect(0, &["uploaded", id]);
    run(&["check", path]).await.expect(0, &["complete", id]);
    run(&["list"]).await.expect(0, &[id]);
    let guid = unjank_symbols::inspect(&shop.file).unwrap()[0].ids[1].clone();
    assert_ne!(guid, id);
    for form in [id, &guid, &guid.to_uppercase()] {
        let path = format!("/api/v1/projects/default/symbols/files?symbol_id={form}");
        let found = server.call(&viewer, Method::GET, &path, None).await.body;
        assert_eq!(found["files"][0]["builds"][0]["id"], id, "{found}");
    }
    // A device that sends the other form finds the file, too.
    let stack = json!([{"module": "shop", "build_id": guid, "offset": shop.offset_of_stall}]);
    server.send(&janks(&stack)).await;
    let readable =
        "SELECT count() FROM stacks_symbolicated FINAL WHERE `frames.function`[-1] = 'shop::stall'";
    server.answers(readable, "2").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_the_linker_stripped_is_told_what_works() {
    let (server, token) = server_with_token().await;
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("shop.rs");
    std::fs::write(&source, "fn main() {}").unwrap();
    let build = |name: &str, option: &str| {
        let built = std::process::Command::new("rustc")
            .args(["-O", "-g", option, "-Clink-arg=-Wl,--build-id=sha1", "-o"])
            .args([&folder.path().join(name), &source])
            .status()
            .unwrap();
        assert!(built.success());
        folder.path().join(name).to_str().unwrap().to_owned()
    };
    let run = async |line: &[&str]| symbols(&server.url, &token, line).await;
    let stripped = build("stripped", "-Cstrip=symbols");
    let advice = [
        "without `strip` in the profile",
        "`strip -o`",
        "another build id",
    ];
    let uploaded = run(&["upload", &stripped]).await;
    uploaded.expect(1, &["stripped: no names in it"]);
    uploaded.expect(1, &advice);
    // The file of a second build does not help the first one, and the command says why.
    let whole = build("whole", "-Cstrip=none");
    run(&["upload", &whole]).await.expect(0, &["uploaded"]);
    run(&["check", &stripped]).await.expect(1, &advice);
    let copy = folder.path().join("copy");
    let copied = std::process::Command::new("strip")
        .arg("-o")
        .args([&copy, &folder.path().join("whole")])
        .status()
        .unwrap();
    assert!(copied.success());
    run(&["check", copy.to_str().unwrap()])
        .await
        .expect(0, &["complete"]);
    // Its sections can be read, but not what is in them.
    let section = folder.path().join("section");
    std::fs::write(&section, [0xff; 64]).unwrap();
    let option = format!("--update-section=.debug_info={}", section.display());
    let mut objcopy = std::process::Command::new("objcopy");
    assert!(objcopy.args([&option, &whole]).status().unwrap().success());
    for more in ["--dry-run", "--require-lines"] {
        let refused = run(&["upload", more, &whole]).await;
        refused.expect(1, &["refused", "cannot read the symbols"]);
    }
}
