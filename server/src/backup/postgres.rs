//! The control database in PostgreSQL: PostgreSQL's own programs copy it.

use std::io;
use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use percent_encoding::percent_decode_str;
use tokio::process::Command;

/// Fails if the program that copies a database is missing.
pub(super) async fn check() -> anyhow::Result<()> {
    output(Command::new("pg_dump").arg("--version")).await
}

/// Writes all tables of a database to a file.
pub(super) async fn dump(url: &str, file: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("pg_dump");
    command.args(["--format=custom", "--no-owner", "--no-privileges", "--file"]);
    run(command.arg(file), url).await
}

/// Reads all tables of a file into an empty database.
pub(super) async fn load(url: &str, file: &Path) -> anyhow::Result<()> {
    let mut command = Command::new("pg_restore");
    command.args([
        "--exit-on-error",
        "--single-transaction",
        "--no-owner",
        "--no-privileges",
    ]);
    run(command.arg(file), url).await
}

/// Runs a program on a database. Everybody on the machine can read its arguments, but not its environment.
async fn run(command: &mut Command, url: &str) -> anyhow::Result<()> {
    // The URL is not quoted, because it may contain a password.
    let mut url = reqwest::Url::parse(url).context("the URL of the control database is invalid")?;
    if let Some(password) = url.password() {
        let password = percent_decode_str(password).decode_utf8()?.into_owned();
        command.env("PGPASSWORD", password);
        let _changed = url.set_password(None).is_ok();
    }
    output(command.arg(format!("--dbname={url}"))).await
}

async fn output(command: &mut Command) -> anyhow::Result<()> {
    let program = command
        .as_std()
        .get_program()
        .to_string_lossy()
        .into_owned();
    let output = match command.stdin(Stdio::null()).output().await {
        Err(error) if error.kind() == io::ErrorKind::NotFound => anyhow::bail!(
            "the control database is in PostgreSQL, and `{program}` is not on the PATH: install PostgreSQL's client programs"
        ),
        output => output?,
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{program}: {}", errors.trim());
    Ok(())
}
