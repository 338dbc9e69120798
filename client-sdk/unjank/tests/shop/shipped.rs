//! The example as apps are shipped: optimized at link time, without unwinding, and stripped of all names.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::server::{Server, program};
use crate::{RULES, run_shop};

/// The functions of the shop that are to blame for stalls. A slow machine stalls elsewhere, too.
const STALLS: &str = "
    SELECT DISTINCT culprit FROM janks
    INNER JOIN stack_class_current AS class ON class.stack_hash = janks.stack_hash AND class.project = janks.project
    WHERE startsWith(culprit, 'shop::stalls::')
    ORDER BY culprit";
/// Whether there are three stalls for which no function is to blame.
const NAMELESS: &str = "
    SELECT count() >= 3 FROM janks
    INNER JOIN stack_class_current AS class ON class.stack_hash = janks.stack_hash AND class.project = janks.project
    WHERE culprit = ''";
const CULPRITS: &str =
    "shop::stalls::parse_catalog\nshop::stalls::save_order\nshop::stalls::wait_for_cache";
/// The number of stalls whose stacks name the function of the shop with its file and a line in it.
const LINES: &str = "
    SELECT count() FROM janks
    INNER JOIN (SELECT * FROM stacks_symbolicated FINAL) AS stack ON stack.stack_hash = janks.stack_hash
    WHERE arrayExists((function, file, line) -> startsWith(function, 'shop::stalls::')
        AND endsWith(file, 'examples/shop/stalls.rs') AND line BETWEEN 12 AND 75,
        frames.function, frames.file, frames.line)";
/// Whether each of the three functions has its file and line.
const LINED: &str = "
    SELECT hasAll(groupUniqArray(frame.1), ['shop::stalls::parse_catalog', 'shop::stalls::save_order', 'shop::stalls::wait_for_cache'])
    FROM (SELECT arrayJoin(arrayZip(frames.function, frames.file, frames.line)) AS frame FROM stacks_symbolicated FINAL)
    WHERE endsWith(frame.2, 'examples/shop/stalls.rs') AND frame.3 BETWEEN 12 AND 75";
/// The number of groups of the stall on the CPU, whose samples were taken in other functions of the libraries that it calls.
const GROUPS: &str = "SELECT uniqExact(group_id) FROM stack_class_current WHERE culprit = 'shop::stalls::parse_catalog'";
/// Whether stalls have several samples, at other addresses of the same functions.
const SAMPLES: &str = "
    SELECT count() > 3 AND uniqExact(culprit) = 3 FROM stack_class_current WHERE startsWith(culprit, 'shop::stalls::')";

struct Shipped {
    /// With the names, as the build writes it.
    built: PathBuf,
    /// As users get it.
    stripped: PathBuf,
}

/// `make test` has built it before. Then this takes no time, if cargo sees the same environment.
fn ship(folder: &Path) -> Shipped {
    let mut cargo = Command::new(env!("CARGO"));
    for (name, _) in std::env::vars_os() {
        let of_this_test = ["CARGO_MANIFEST_", "CARGO_PKG_", "CARGO_CRATE_", "OUT_DIR"];
        if of_this_test
            .iter()
            .any(|start| name.to_string_lossy().starts_with(start))
        {
            cargo.env_remove(name);
        }
    }
    let built = cargo
        .args(["rustc", "--quiet", "--locked", "--profile", "shipped"])
        .args(["-p", "unjank-shipped-shop", "--bin", "shop", "--"])
        .args(["-C", "link-arg=-Wl,--build-id=sha1"])
        .status()
        .unwrap();
    assert!(built.success());
    let target = program("unjank")
        .parent()
        .unwrap()
        .parent()
        .unwrap()
        .to_owned();
    let built = target.join("shipped/shop");
    let stripped = folder.join("shop");
    let strip = Command::new("strip")
        .arg("-o")
        .args([&stripped, &built])
        .status();
    assert!(
        strip
            .expect("`strip` is missing: install binutils")
            .success()
    );
    Shipped { built, stripped }
}

fn upload(server: &Server, file: &Path) {
    let token = server.command(&[
        "token",
        "create",
        "--name",
        "build",
        "--role",
        "editor",
        "--project",
        "default",
        "--only-symbols",
    ]);
    let output = Command::new(program("unjank"))
        .args(["symbols", "upload"])
        .arg(file)
        .env("UNJANK_URL", server.url())
        .env("UNJANK_PROJECT", "default")
        .env(
            "UNJANK_TOKEN",
            token.lines().last().unwrap_or_default().trim(),
        )
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn stalls_of_a_stripped_program_have_function_file_and_line_in_both_orders() {
    let folder = tempfile::tempdir().unwrap();
    let shop = ship(folder.path());
    let server = Server::start(RULES);

    // Stalls first: none has a culprit until the file arrives. Only functions of the C library have names.
    let truth: Value = run_shop(&shop.stripped, &server, &folder.path().join("first"));
    assert_eq!(truth["sent"], true, "{truth}");
    server.wait("stalls without names", || server.sql(NAMELESS) == "1");
    assert_eq!(server.sql(STALLS), "");
    upload(&server, &shop.built);
    server.wait("names of stored stalls", || server.sql(STALLS) == CULPRITS);
    let lines = || server.sql(LINES).parse::<u32>().unwrap();
    let repaired = lines();
    assert!(repaired >= 3, "{repaired}");
    assert_eq!(server.sql(LINED), "1");
    assert_eq!(server.sql(SAMPLES), "1");
    assert_eq!(server.sql(GROUPS), "1");

    // File first: the stalls of another install are readable when they arrive.
    let truth = run_shop(&shop.stripped, &server, &folder.path().join("second"));
    assert_eq!(truth["sent"], true, "{truth}");
    server.wait("names of new stalls", || lines() >= repaired + 3);
    assert_eq!(server.sql(STALLS), CULPRITS);
}
