//! A program for tests: the host of an engine, a stand-in for `clickhouse`, or an intruder.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let text = |place: usize| arguments.get(place).and_then(|argument| argument.to_str());
    match text(0) {
        // host <instructions>
        Some("host") => unjank_engine::host::run(text(1).unwrap_or_default()),
        // local <arguments of clickhouse local…>, with the library in the working folder
        Some("local") => {
            let library = std::env::current_dir()?.join("libchdb.so");
            unjank_engine::host::run_library(&library, arguments.into_iter().skip(1))
        }
        // intruder <address> <folder> <pid>
        Some("intruder") => intrude(
            text(1).unwrap_or_default(),
            Path::new(text(2).unwrap_or_default()),
            text(3).unwrap_or_default(),
        ),
        _ => anyhow::bail!("the first argument must be host, local or intruder"),
    }
}

/// Attempts what another user of the machine could attempt, and prints what succeeded.
fn intrude(address: &str, folder: &Path, pid: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout();
    for path in [
        "",
        "status",
        "metadata",
        "store",
        "../engine.json",
        "../engine.new",
    ] {
        let path = folder.join(path);
        if std::fs::File::open(&path).is_ok() || std::fs::write(&path, "x").is_ok() {
            writeln!(out, "opened {}", path.display())?;
        }
    }
    if std::fs::write(folder.join("intruder"), "x").is_ok() {
        writeln!(out, "wrote a file")?;
    }
    for name in ["environ", "mem", "maps"] {
        let readable = std::fs::File::open(format!("/proc/{pid}/{name}"))
            .and_then(|mut file| file.read(&mut [0; 64]))
            .is_ok_and(|count| count > 0);
        if readable {
            writeln!(out, "read {name}")?;
        }
    }
    let killed = std::process::Command::new("kill")
        .args(["-9", pid])
        .output()?;
    if killed.status.success() {
        writeln!(out, "killed it")?;
    }
    if std::net::TcpListener::bind(address).is_ok() {
        writeln!(out, "took its port")?;
    }
    for user in ["", "default", "reader", "writer", "admin", "unjank"] {
        for query in [
            "SELECT 1",
            "SYSTEM STOP LISTEN HTTP",
            "SHOW TABLES",
            "KILL QUERY WHERE 1",
        ] {
            let status = ask(address, user, query)?;
            if status == 200 {
                writeln!(out, "{user} may {query}")?;
            }
        }
    }
    writeln!(out, "done")?;
    Ok(())
}

/// Returns the status of a query without a password.
fn ask(address: &str, user: &str, query: &str) -> anyhow::Result<u16> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let name = if user.is_empty() {
        String::new()
    } else {
        format!("X-ClickHouse-User: {user}\r\n")
    };
    write!(
        stream,
        "POST / HTTP/1.1\r\nHost: x\r\n{name}Content-Length: {}\r\nConnection: close\r\n\r\n{query}",
        query.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.split(' ').nth(1).unwrap_or_default().parse()?)
}
