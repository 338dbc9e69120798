//! Access rights: of users, of other users of the machine, and of web pages.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use tokio::net::TcpStream;
use unjank_engine::Source;

use crate::support::{PROGRAM, TestEngine, refused, shared};

#[tokio::test]
async fn every_user_needs_a_password() {
    let engine = shared();
    let statuses = [
        "SELECT 1",
        "SYSTEM STOP LISTEN HTTP",
        "SHOW GRANTS",
        "SET max_threads = 1",
    ];
    for query in statuses {
        let anonymous = engine.client.post(&engine.url).body(query).send().await;
        // The user `default` may have one session, which ClickHouse itself uses.
        assert_eq!(refused(anonymous.unwrap()).await, 700, "{query}");
    }
    for (user, password) in [
        ("admin", "wrong"),
        ("admin", ""),
        ("root", "x"),
        ("reader", ""),
    ] {
        let request = engine.client.post(&engine.url).body("SELECT 1");
        let answer = request.basic_auth(user, Some(password)).send().await;
        assert_eq!(refused(answer.unwrap()).await, 516, "{user}");
    }
}

#[tokio::test]
async fn each_role_has_only_the_rights_for_its_work() {
    const DENIED: u32 = 497;
    let engine = TestEngine::start().await;
    for done in [
        "CREATE DATABASE IF NOT EXISTS unjank",
        "CREATE TABLE unjank.t (a UInt64) ENGINE = MergeTree ORDER BY a",
        "CREATE TABLE unjank.sums (a UInt64) ENGINE = AggregatingMergeTree ORDER BY a",
        "CREATE MATERIALIZED VIEW unjank.to_sums TO unjank.sums AS SELECT a FROM unjank.t",
        "CREATE VIEW unjank.seen AS SELECT a FROM unjank.t",
        "INSERT INTO unjank.t SELECT number FROM numbers(10)",
        "ALTER TABLE unjank.t ADD COLUMN b String",
        "ALTER TABLE unjank.t MODIFY TTL toDateTime(a) + INTERVAL 1 DAY",
        "ALTER TABLE unjank.sums DROP PARTITION ID 'all'",
        "OPTIMIZE TABLE unjank.t",
        "SELECT count() FROM unjank.seen",
        "SELECT count() FROM system.parts",
        "DROP VIEW unjank.to_sums",
    ] {
        engine.ask_as("writer", &[], done).await;
    }
    for read in [
        "SELECT count() FROM unjank.t",
        "SELECT a FROM unjank.seen SETTINGS max_threads = 1",
        "SELECT name FROM system.tables WHERE database = 'unjank'",
        "SELECT count() FROM system.columns WHERE table = 't'",
        "SELECT count() FROM system.processes",
        "DESCRIBE TABLE unjank.t",
        "SHOW TABLES FROM unjank",
        "SELECT sum(number) FROM numbers(10)",
    ] {
        engine.ask_as("reader", &[], read).await;
    }
    for write in [
        "INSERT INTO unjank.t VALUES (1, '')",
        "CREATE TABLE unjank.mine (a UInt64) ENGINE = MergeTree ORDER BY a",
        "ALTER TABLE unjank.t DELETE WHERE 1",
        "DROP TABLE unjank.t",
        "SET readonly = 0",
    ] {
        let code = engine.refusal("reader", write).await;
        assert!(code == DENIED || code == 164, "{write}: {code}");
    }
    assert_eq!(
        engine.refusal("writer", "CREATE DATABASE other").await,
        DENIED
    );
    for user in ["reader", "writer"] {
        assert_eq!(
            engine.refusal(user, "SELECT * FROM system.users").await,
            DENIED
        );
    }
    engine.stop().await;
}

#[tokio::test]
async fn no_role_has_access_outside_the_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("outside.csv");
    std::fs::write(&file, "1\n").unwrap();
    let engine = TestEngine::start().await;
    engine.ask(&[], "CREATE DATABASE unjank").await;
    for outside in [
        "SELECT * FROM file('{outside}', 'LineAsString')",
        "INSERT INTO FUNCTION file('{outside}', 'CSV') SELECT 2",
        "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')",
        "SELECT * FROM s3('http://127.0.0.1:1/bucket/key', 'CSV', 'a String')",
        "SELECT * FROM remote('127.0.0.1', 'system.one')",
        "SELECT * FROM executable('sh', 'CSV', 'a String')",
        "SELECT * FROM mysql('127.0.0.1:1', 'd', 't', 'u', 'p')",
        "CREATE TABLE unjank.outside (a String) ENGINE = File(CSV, '{outside}')",
        "CREATE TABLE unjank.outside (a String) ENGINE = URL('http://127.0.0.1:1/', 'CSV')",
        "CREATE TABLE unjank.outside (a String) ENGINE = Distributed('c', 'system', 'one')",
        "CREATE DICTIONARY unjank.outside (a UInt64) PRIMARY KEY a SOURCE(FILE(path '{outside}' format 'CSV')) LAYOUT(FLAT()) LIFETIME(0)",
        "CREATE USER x IDENTIFIED BY 'y'",
        "GRANT ALL ON *.* TO reader",
        "SYSTEM STOP LISTEN HTTP",
        "SYSTEM SHUTDOWN",
        "SELECT file('{outside}')",
    ] {
        let outside = outside.replace("{outside}", &file.display().to_string());
        for user in ["reader", "writer", "admin"] {
            let refused = engine
                .request(user, &[])
                .body(outside.clone())
                .send()
                .await
                .unwrap();
            assert_ne!(refused.status(), 200, "{user}: {outside}");
        }
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1\n");
    engine.stop().await;
}

#[tokio::test]
async fn no_role_may_change_settings_that_name_files() {
    const FIXED: u32 = 452;
    let engine = shared();
    for (setting, value) in [
        ("output_format_schema", "'other'"),
        ("format_schema", "'other'"),
        ("format_schema_source", "'string'"),
        ("format_schema_message_name", "'other'"),
        ("format_protobuf_use_autogenerated_schema", "0"),
        ("format_capn_proto_use_autogenerated_schema", "0"),
        ("format_template_row", "'other'"),
        ("format_template_resultset", "'other'"),
        ("format_template_row_format", "'other'"),
        ("format_template_resultset_format", "'other'"),
    ] {
        for user in ["reader", "writer", "admin"] {
            let text = format!("SELECT 1 SETTINGS {setting} = {value}");
            assert_eq!(engine.refusal(user, &text).await, FIXED, "{user}: {text}");
        }
    }
}

#[tokio::test]
async fn password_hashes_are_deleted_before_the_engine_listens() {
    let folder = tempfile::tempdir().unwrap();
    let options = crate::support::options(&folder.path().join("engine"));
    std::fs::create_dir(&options.data_dir).unwrap();
    let ports = crate::support::ports(false);
    let start = unjank_engine::Engine::start(&options, &ports);
    tokio::pin!(start);
    // From the moment it listens.
    let seen = loop {
        tokio::select! {
            engine = &mut start => break engine.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
        let listens = std::net::TcpStream::connect(ports.http().unwrap()).is_ok();
        let mut folders = std::fs::read_dir(&options.data_dir).unwrap();
        let hashes = folders.any(|entry| entry.unwrap().path().join("users.xml").exists());
        assert!(!hashes || !listens);
    };
    seen.stop().await.unwrap();
}

#[tokio::test]
async fn an_operator_may_allow_sources() {
    let engine = TestEngine::start_with(|options| {
        options.sources = vec![Source::File, Source::Url];
    })
    .await;
    engine
        .ask(
            &[],
            "INSERT INTO FUNCTION file('mine.csv', 'CSV', 'a UInt8') VALUES (7)",
        )
        .await;
    let read = "SELECT a FROM file('mine.csv', 'CSV', 'a UInt8')";
    assert_eq!(engine.ask(&[], read).await, "7\n");
    let outside = tempfile::NamedTempFile::new().unwrap();
    let outside = format!("SELECT file('{}')", outside.path().display());
    assert_ne!(engine.refusal("admin", &outside).await, 0);
    let own = format!(
        "SELECT * FROM url('{}/ping', 'LineAsString', 'a String')",
        engine.url
    );
    assert_eq!(engine.ask(&[], &own).await, "Ok.\n");
    assert_eq!(engine.refusal("reader", &own).await, 497);
    engine.stop().await;
}

#[tokio::test]
async fn connections_without_a_request_do_not_affect_others() {
    let engine = TestEngine::start_native().await;
    let http: SocketAddr = engine.address().parse().unwrap();
    let native = engine.engine.tcp_address().unwrap();
    for address in [http, native] {
        drop(TcpStream::connect(address).await.unwrap());
        assert_eq!(engine.ask(&[], "SELECT 1").await, "1\n");
    }
    // With a terminal as its standard input, ClickHouse survives errors of connections.
    let stdin = std::fs::read_link(format!("/proc/{}/fd/0", engine.pid())).unwrap();
    assert!(stdin.starts_with("/dev/pts"), "{}", stdin.display());
    engine.stop().await;
}

#[tokio::test]
async fn a_web_page_cannot_query() {
    let engine = shared();
    for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
        let request = engine.post(&[]).header("Origin", origin).body("SELECT 1");
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 403);
        assert!(!answer.headers().contains_key("access-control-allow-origin"));
    }
    for page in ["/play", "/dashboard", "/binary", "/js/uplot.js"] {
        let answer = engine.client.get(format!("{}{page}", engine.url)).send();
        assert_eq!(answer.await.unwrap().status(), 404, "{page}");
    }
    let ping = engine.client.get(format!("{}/ping", engine.url)).send();
    assert_eq!(ping.await.unwrap().text().await.unwrap(), "Ok.\n");
}

#[tokio::test]
async fn only_the_owner_can_open_the_data_files() {
    let engine = TestEngine::start().await;
    engine.ask(&[], "CREATE DATABASE d").await;
    engine
        .ask(
            &[],
            "CREATE TABLE d.t (a UInt64) ENGINE = MergeTree ORDER BY a",
        )
        .await;
    engine.ask(&[], "INSERT INTO d.t VALUES (1)").await;
    let folder = std::path::PathBuf::from(format!("/proc/{}/cwd", engine.pid()))
        .read_link()
        .unwrap();
    let mut paths = vec![folder.clone()];
    let mut files = 0;
    while let Some(path) = paths.pop() {
        let found = path.symlink_metadata().unwrap();
        let others = found.permissions().mode() & 0o077;
        assert!(others == 0 || found.is_symlink(), "{}", path.display());
        files += 1;
        if found.is_dir() {
            let entries = std::fs::read_dir(&path).unwrap();
            paths.extend(entries.map(|entry| entry.unwrap().path()));
        }
    }
    assert!(files > 20, "{files}");
    let mut left = std::fs::read_dir(&folder).unwrap();
    let start = left.any(|entry| {
        entry
            .unwrap()
            .file_name()
            .to_string_lossy()
            .starts_with("start")
    });
    assert!(
        !start,
        "the start folder, which has password hashes, still exists"
    );
    let environment = std::fs::read(format!("/proc/{}/environ", engine.pid())).unwrap();
    let environment = String::from_utf8(environment).unwrap();
    let names: Vec<&str> = environment
        .split('\0')
        .filter_map(|pair| Some(pair.split_once('=')?.0))
        .filter(|name| *name != "LD_LIBRARY_PATH")
        .collect();
    assert_eq!(names, ["CLICKHOUSE_HISTORY_FILE", "TZ"]);
    engine.stop().await;
}

#[tokio::test]
async fn another_user_of_the_machine_has_no_access() {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        // Only root can become another user.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A folder that others may enter, as in older versions.
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let data_dir = folder.path().join("engine");
    std::fs::create_dir(&data_dir).unwrap();
    std::fs::set_permissions(&data_dir, std::fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("intruder");
    std::fs::copy(PROGRAM, &program).unwrap();
    let engine = TestEngine::on(&crate::support::options(&data_dir)).await;
    let intrude = || {
        let mut command = Command::new(&program);
        command
            .args(["intruder", engine.address()])
            .arg(&data_dir)
            .arg(engine.pid().to_string())
            .current_dir("/")
            .uid(NOBODY)
            .gid(NOBODY);
        let output = command.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(intrude(), "done\n");
    assert_eq!(engine.ask(&[], "SELECT 1").await, "1\n");
    engine.stop().await;
}
