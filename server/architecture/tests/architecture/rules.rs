//! The rules of ARCHITECTURE.md and CONTRIBUTING.md that a machine can check.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Source files of the project below `folder`, with their text.
pub(crate) fn sources(folder: &str, extensions: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(ROOT).join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else {
            continue;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                let skipped = ["target", "node_modules", "."];
                let skipped = skipped.iter().any(|start| name.starts_with(start));
                folders.extend((!skipped).then_some(path));
            } else if path
                .extension()
                .is_some_and(|extension| extensions.iter().any(|one| extension == *one))
            {
                let text = fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(!found.is_empty(), "no sources in {folder}");
    found
}

/// Returns the files below `folder` that contain any of `words`.
fn mentions(folder: &str, words: &[&str]) -> Vec<String> {
    let files = sources(folder, &["rs"]).into_iter();
    let offending = files.filter(|(_, text)| words.iter().any(|word| text.contains(word)));
    offending
        .map(|(path, _)| path.display().to_string())
        .collect()
}

#[test]
fn no_file_is_longer_than_500_lines() {
    let long: Vec<_> = sources("", &["rs", "ts", "svelte", "py", "mjs"])
        .into_iter()
        .filter(|(_, text)| text.lines().count() > 500)
        .map(|(path, _)| path)
        .collect();
    assert!(long.is_empty(), "split {long:?}");
}

#[test]
fn file_names_describe_their_content() {
    let vague = ["util", "utils", "common", "helper", "helpers", "misc"];
    for (path, _) in sources("", &["rs", "ts", "svelte"]) {
        let stem = path.file_stem().unwrap().to_string_lossy();
        assert!(!vague.contains(&&*stem), "{} is vague", path.display());
        assert!(
            stem != "mod",
            "{}: use foo.rs next to foo/ for a module",
            path.display()
        );
    }
}

/// Folders of the server that know neither HTTP nor a driver.
const PURE: [&str; 3] = [
    "server/src/ingest",
    "server/src/test_run",
    "server/src/compare",
];

#[test]
fn ingest_and_runs_know_no_http_and_no_driver() {
    for folder in PURE {
        let words = [
            "maud",
            "axum",
            "hyper",
            "clickhouse::",
            "StatusCode",
            "tokio",
        ];
        let found = mentions(folder, &words);
        assert!(found.is_empty(), "{found:?}");
    }
}

/// Dependencies that a crate must not have. The compiler checks the rest: a crate cannot import one that is above it.
#[test]
fn crates_depend_on_no_more_than_their_subject() {
    for (manifest, forbidden) in [
        (
            "server/stacks",
            ["axum", "clickhouse", "sqlx", "tokio"].as_slice(),
        ),
        (
            "server/remote-config",
            &["axum", "clickhouse", "sqlx", "tokio"],
        ),
        (
            "server/foundation",
            &["axum", "clickhouse", "sqlx", "reqwest"],
        ),
        ("server/database", &["axum", "clickhouse", "reqwest"]),
        ("server", &["sqlx"]),
        (
            "client-sdk/columns",
            &["tokio", "axum", "hyper", "reqwest", "zstd"],
        ),
        ("client-sdk/macros", &["tokio", "axum", "hyper", "reqwest"]),
        (
            "client-sdk/monitors",
            &["tokio", "axum", "hyper", "reqwest"],
        ),
        (
            "client-sdk/protocol",
            &["tokio", "axum", "hyper", "reqwest"],
        ),
        ("client-sdk/spool", &["tokio", "axum", "hyper", "reqwest"]),
        (
            "client-sdk/stack-sampler",
            &["tokio", "axum", "hyper", "reqwest"],
        ),
    ] {
        let text = fs::read_to_string(Path::new(ROOT).join(manifest).join("Cargo.toml")).unwrap();
        let dependencies = text.split("[dev-dependencies]").next().unwrap();
        let has = |name: &&&str| {
            let named = format!("package = \"{name}\"");
            let table = format!("dependencies.{name}]");
            let mut lines = dependencies.lines();
            lines.any(|line| {
                line.starts_with(**name) || line.contains(&named) || line.contains(&table)
            })
        };
        let found: Vec<_> = forbidden.iter().filter(has).collect();
        assert!(found.is_empty(), "{manifest} depends on {found:?}");
    }
}

/// Returns the files of the server outside of a folder that contain any of `words`.
fn mentions_outside(folder: &str, words: &[&str]) -> Vec<String> {
    let mut found = mentions("server/src", words);
    found.retain(|path| !path.contains(folder));
    found
}

#[test]
fn only_http_knows_axum() {
    let found = mentions_outside("server/src/http", &["axum::"]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn only_http_and_clients_of_servers_know_status_codes() {
    let mut found = mentions_outside("server/src/http", &["StatusCode"]);
    // Commands that ask a server.
    found.retain(|path| !path.contains("server/src/cli"));
    // The status of a span that another system made.
    found.retain(|path| !path.ends_with("forward/spans.rs"));
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn only_the_store_knows_sql() {
    let mut found = mentions_outside(
        "server/src/store",
        &["SELECT ", "INSERT INTO", "ALTER TABLE", "clickhouse::"],
    );
    // `unjank sql` shows statements in its help.
    found.retain(|path| !path.ends_with("cli/sql.rs"));
    assert!(found.is_empty(), "{found:?}");
}

/// By default, ClickHouse returns only when the rows of a mutation are rewritten, so each statement says whether it waits.
#[test]
fn deletions_are_started_in_one_place() {
    let is_one = |line: &&str| {
        let is_comment = line.trim_start().starts_with("//");
        let mut words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        !is_comment && words.any(|word| ["DELETE", "UPDATE", "MATERIALIZE"].contains(&word))
    };
    let mut found = Vec::new();
    for (path, text) in sources("server/src/store", &["rs"]) {
        let name = path.file_name().unwrap().to_string_lossy();
        let lines = text.lines().filter(is_one);
        found.extend(lines.map(|line| (name.clone().into_owned(), line.contains("s_sync = "))));
    }
    // Methods of HTTP.
    found.retain(|(name, _)| name != "requests.rs");
    found.sort();
    // `start_deletion`, and the lightweight DELETE of a rebuild, which waits.
    let expected = ["mutations.rs", "scratch.rs"].map(|name| (name.to_owned(), true));
    assert_eq!(found, expected, "use `start_deletion`");
}

#[test]
fn no_value_is_interpolated_into_the_sql_of_the_control_database() {
    let found = mentions(
        "server/database/src",
        &["AssertSqlSafe", "raw_sql", "QueryBuilder"],
    );
    assert!(found.is_empty(), "{found:?}");
}

/// `pub(in path)` repeats what private modules say, and goes stale when files move.
#[test]
fn private_modules_limit_what_items_can_be_used_by() {
    let found = mentions("", &["pub(in crate::"]);
    let found: Vec<_> = found
        .iter()
        .filter(|path| !path.contains("/architecture/"))
        .collect();
    assert!(found.is_empty(), "{found:?}");
}

/// Two types with one name would overwrite each other in the OpenAPI document.
#[test]
fn each_schema_of_the_api_has_a_name_of_its_own() {
    let mut names = BTreeMap::new();
    let folders = [
        "server/src",
        "server/database",
        "server/foundation",
        "server/stacks",
    ];
    let more = [
        "server/remote-config",
        "server/symbols",
        "client-sdk/protocol/src",
    ];
    for (path, text) in folders
        .iter()
        .chain(&more)
        .flat_map(|folder| sources(folder, &["rs"]))
    {
        for item in text.split("#[derive(").skip(1) {
            let declared = ["struct ", "enum "].map(|kind| item.find(kind));
            let Some(at) = declared.into_iter().flatten().min() else {
                continue;
            };
            let (head, rest) = item.split_at(at);
            if !head.contains("ToSchema") {
                continue;
            }
            let own = head.split_once("as = ").map_or_else(
                || rest.split_once(' ').unwrap_or_default().1,
                |(_, name)| name,
            );
            let is_end = |letter: char| !letter.is_alphanumeric();
            let name = own.split(is_end).next().unwrap_or_default().to_owned();
            let path = path.display().to_string();
            let other = names.insert(name.clone(), path.clone());
            assert!(other.is_none(), "{name} is in {path} and {other:?}");
        }
    }
    assert!(names.len() > 250, "only {} schemas", names.len());
}

/// The modules of the server, from the top to the bottom.
const ORDER: [&str; 34] = [
    "main",
    "cli",
    "backup",
    "serve",
    "demo",
    "retention_sweep",
    "http",
    "run_report",
    "erasure",
    "app",
    "readiness",
    "config",
    "openid_connect",
    "trusted_proxies",
    "web_origins",
    "intake",
    "forwarding",
    "otlp",
    "history",
    "auditor",
    "alerts",
    "access",
    "symbols",
    "ingest",
    "query",
    "compare",
    "test_run",
    "store",
    "recent",
    "records",
    "forward",
    "metrics",
    "bucket",
    "spreadsheet",
];

/// Returns the modules of the server that the code of a file refers to.
fn imports(text: &str) -> Vec<&str> {
    let code = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let paths = code.flat_map(|line| line.split("crate::").skip(1));
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let names = paths.map(|path| path.split(is_end).next().unwrap_or_default());
    names
        .map(|name| if name == "App" { "app" } else { name })
        .collect()
}

#[test]
fn imports_go_down_only() {
    let level = |module: &str| ORDER.iter().position(|one| *one == module);
    let mut found = Vec::new();
    for (path, text) in sources("server/src", &["rs"]) {
        let path = path.to_string_lossy();
        let (_, path) = path.split_once("server/src/").unwrap();
        let module = path.split('/').next().unwrap().trim_end_matches(".rs");
        if module == "lib" {
            continue;
        }
        let own = level(module).unwrap_or_else(|| panic!("give `{module}` a place in ORDER"));
        let goes_up = |name: &&str| *name != module && level(name).is_none_or(|it| it <= own);
        let upward = imports(&text).into_iter().filter(goes_up);
        found.extend(upward.map(|name| format!("{path} imports {name}")));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// Words that CONTRIBUTING.md bans, because a sentence with them has to be read twice.
const RIDDLES: [&str; 15] = [
    "anew",
    "told apart",
    "whoever",
    "somebody",
    "held against",
    "worth to",
    "as ever",
    "in vain",
    "takes apart",
    "taken apart",
    // Labels that screens and comments had once.
    "an incident when it is",
    "chance of an accident",
    "reasons stand",
    "role is taken",
    "unless it was before",
];

/// The banned words in a comment or in a line of documentation.
fn riddles(prose: &str) -> impl Iterator<Item = &'static str> {
    let words =
        (prose.split(|letter: char| !letter.is_alphanumeric())).filter(|word| !word.is_empty());
    let prose = format!(" {} ", words.collect::<Vec<_>>().join(" ").to_lowercase());
    let is_in = move |word: &&str| prose.contains(&format!(" {word} "));
    RIDDLES.into_iter().filter(is_in)
}

#[test]
fn comments_and_docs_are_plain() {
    let mut found = Vec::new();
    let extensions = [
        "rs", "md", "svelte", "ts", "mjs", "sql", "yml", "toml", "xml", "py", "sh",
    ];
    let mut files = sources("", &extensions);
    // Migrations never change.
    files.retain(|(path, _)| !path.ends_with("0001_control.sql"));
    for (path, text) in files {
        let is_code = path.extension().is_some_and(|extension| extension == "rs");
        // Strings of the web interface are shown to people, so all of its lines are checked.
        let prose = text.lines().map(|line| match line.split_once("//") {
            Some((_, comment)) if is_code => comment,
            _ if is_code => "",
            _ => line,
        });
        let words = prose.flat_map(riddles);
        found.extend(words.map(|word| format!("{}: {word}", path.display())));
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// The oldest Rust that the crates promise is the one that all tests run with.
#[test]
fn the_promised_rust_version_is_the_tested_one() {
    let read = |file: &str| fs::read_to_string(Path::new(ROOT).join(file)).unwrap();
    let value = |text: &str, key: &str| {
        let line = text.lines().find(|line| line.starts_with(key)).unwrap();
        line.split('"').nth(1).unwrap().to_owned()
    };
    let promised = value(&read("Cargo.toml"), "rust-version");
    let tested = value(&read("rust-toolchain.toml"), "channel");
    assert!(
        tested.starts_with(&format!("{promised}.")),
        "{promised}, {tested}"
    );
    let documented = read("client-sdk/unjank/src/lib.rs");
    assert!(documented.contains(&format!("* Rust {promised} or later.")));
}

#[test]
fn every_module_has_documentation() {
    // Code that the compiler must refuse, and examples that the web interface shows.
    let others = ["client-sdk/macros/tests/refused/", "dashboards/web/"];
    for (path, text) in sources("", &["rs"]) {
        let file = path.display().to_string();
        let is_module = !others.iter().any(|folder| file.contains(folder));
        assert!(
            !is_module || text.starts_with("//!"),
            "{file} has no module documentation"
        );
    }
}
