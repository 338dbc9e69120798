//! Who may do what: users, other people of the machine, web pages.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use unjank_engine::Source;

use crate::support::{PROGRAM, TestEngine, refused, shared};

#[tokio::test]
async fn nobody_gets_in_without_a_password() {
    let engine = shared();
    let statuses = [
        "SELECT 1",
        "SYSTEM STOP LISTEN HTTP",
        "SHOW GRANTS",
        "SET max_threads = 1",
        "SELECT file('/etc/passwd')",
    ];
    for query in statuses {
        let anonymous = engine.client.post(&engine.url).body(query).send().await;
        // The user `default` has one session, and ClickHouse itself has it.
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
async fn each_role_may_do_its_work_and_nothing_else() {
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
async fn no_role_reaches_anything_outside() {
    let engine = TestEngine::start().await;
    engine.ask(&[], "CREATE DATABASE unjank").await;
    for outside in [
        "SELECT * FROM file('/etc/passwd', 'LineAsString')",
        "INSERT INTO FUNCTION file('/tmp/unjank-was-here', 'CSV') SELECT 1",
        "SELECT * FROM url('http://127.0.0.1:1/', 'CSV', 'a String')",
        "SELECT * FROM s3('http://127.0.0.1:1/bucket/key', 'CSV', 'a String')",
        "SELECT * FROM remote('127.0.0.1', 'system.one')",
        "SELECT * FROM executable('sh', 'CSV', 'a String')",
        "SELECT * FROM mysql('127.0.0.1:1', 'd', 't', 'u', 'p')",
        "CREATE TABLE unjank.outside (a String) ENGINE = File(CSV, '/etc/passwd')",
        "CREATE TABLE unjank.outside (a String) ENGINE = URL('http://127.0.0.1:1/', 'CSV')",
        "CREATE TABLE unjank.outside (a String) ENGINE = Distributed('c', 'system', 'one')",
        "CREATE DICTIONARY unjank.outside (a UInt64) PRIMARY KEY a SOURCE(FILE(path '/etc/passwd' format 'CSV')) LAYOUT(FLAT()) LIFETIME(0)",
        "CREATE USER x IDENTIFIED BY 'y'",
        "GRANT ALL ON *.* TO reader",
        "SYSTEM STOP LISTEN HTTP",
        "SYSTEM SHUTDOWN",
        "SELECT file('/etc/passwd')",
        "SELECT file('/proc/1/environ')",
    ] {
        for user in ["reader", "writer", "admin"] {
            let refused = engine
                .request(user, &[])
                .body(outside)
                .send()
                .await
                .unwrap();
            assert_ne!(refused.status(), 200, "{user}: {outside}");
        }
    }
    assert!(!std::path::Path::new("/tmp/unjank-was-here").exists());
    engine.stop().await;
}

#[tokio::test]
async fn an_operator_may_allow_what_is_forbidden() {
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
    assert_ne!(
        engine.refusal("admin", "SELECT file('/etc/passwd')").await,
        0
    );
    let own = format!(
        "SELECT * FROM url('{}/ping', 'LineAsString', 'a String')",
        engine.url
    );
    assert_eq!(engine.ask(&[], &own).await, "Ok.\n");
    assert_eq!(engine.refusal("reader", &own).await, 497);
    engine.stop().await;
}

#[tokio::test]
async fn a_broken_connection_stops_nobody() {
    let engine = TestEngine::start_native().await;
    let http: SocketAddr = engine.address().parse().unwrap();
    let native = engine.engine.tcp_address().unwrap();
    let long = vec![b'y'; 200_000];
    let beginnings: [&[u8]; 9] = [
        b"",
        b"G",
        b"GET / HTTP/1.1\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nSEL",
        b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"\0\x05admin",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        &long,
    ];
    let beginnings = beginnings
        .iter()
        .flat_map(|bytes| [(*bytes, 0), (*bytes, 20)]);
    for (beginning, pause) in beginnings {
        for address in [http, native] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // It may have hung up already.
            stream.write_all(beginning).await.unwrap_or_default();
            tokio::time::sleep(Duration::from_millis(pause)).await;
            // Without lingering the end is a reset.
            stream.set_zero_linger().unwrap();
            drop(stream);
            assert_eq!(engine.ask(&[], "SELECT 1").await, "1\n", "{beginning:?}");
        }
    }
    engine.stop().await;
}

#[tokio::test]
async fn a_web_page_cannot_ask() {
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
async fn only_its_owner_can_open_what_it_writes() {
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
    assert!(!start, "it holds hashes of passwords");
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
async fn another_user_of_the_machine_reaches_nothing() {
    const NOBODY: u32 = 65_534;
    if !rustix::process::geteuid().is_root() {
        // Only root can become another user.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A folder that others may enter, as of an older version.
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
