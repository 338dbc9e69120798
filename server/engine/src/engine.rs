//! One run of an engine, from its start to its end.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::configuration;
use crate::log::{self, LastError};
use crate::options::EngineOptions;
use crate::port::Ports;
use crate::private;
use crate::terminal;

/// A data folder with many parts takes a while to open.
const START_PATIENCE: Duration = Duration::from_secs(600);
/// How long the process may take to end after its queries were cancelled.
const END_PATIENCE: Duration = Duration::from_secs(12);

/// A running ClickHouse. Dropping it kills ClickHouse, which loses no stored data.
#[derive(Debug)]
pub struct Engine {
    child: Child,
    /// ClickHouse stops gracefully when this closes, so it never outlives the process that started it.
    terminal: Option<OwnedFd>,
    http: SocketAddr,
    native: Option<SocketAddr>,
    last_error: LastError,
    shutdown_patience: Duration,
}

impl Engine {
    /// Starts ClickHouse on its data folder and on reserved ports. Returns when it listens.
    ///
    /// # Errors
    /// If the data folder is in use or cannot be written, or if ClickHouse does not start. The error contains the last error of ClickHouse.
    pub async fn start(options: &EngineOptions, ports: &Ports) -> anyhow::Result<Self> {
        let folder = &options.data_dir;
        let failed = || format!("the engine's data folder {}", folder.display());
        private::folder(folder).with_context(failed)?;
        let options = &EngineOptions {
            data_dir: folder.canonicalize().with_context(failed)?,
            ..options.clone()
        };
        ensure!(
            options.data_dir.to_str().is_some(),
            "{} is not valid UTF-8",
            failed()
        );
        let (http, native) = (ports.http()?, ports.native()?);
        let start = Start::write(options, http, native).with_context(failed)?;
        let (terminal, stdin) = terminal::open().context("cannot open a terminal")?;
        // A socket instead of a pipe: SQL that opens /proc/self/fd/2 could steal the lines of a pipe.
        let (output, stderr) = StdUnixStream::pair()?;
        output.set_nonblocking(true)?;
        let child = spawn(options, &start, stdin, stderr)?;
        let last_error = LastError::default();
        #[expect(
            clippy::disallowed_methods,
            reason = "the task ends with the process whose output it reads"
        )]
        drop(tokio::spawn(log::forward(
            UnixStream::from_std(output)?,
            last_error.clone(),
        )));
        let mut engine = Self {
            child,
            terminal: Some(terminal),
            http,
            native,
            last_error,
            shutdown_patience: options.shutdown_patience,
        };
        let ready = timeout(START_PATIENCE, engine.until_ready(&start)).await;
        let Ok(ready) = ready else {
            bail!(
                "ClickHouse was not ready after {START_PATIENCE:?}: {}",
                engine.last_error
            )
        };
        ready?;
        remove_leftovers(&options.data_dir)?;
        Ok(engine)
    }

    /// Tells ClickHouse to listen once it has read its configuration, and returns when it listens.
    async fn until_ready(&mut self, start: &Start) -> anyhow::Result<()> {
        self.until(&start.file("loaded")).await?;
        // SQL can read files in the data folder, so the hashes of the passwords must be deleted before ClickHouse accepts queries.
        std::fs::remove_file(start.file("users.xml"))?;
        let native = self.native.map_or("", |_| "SYSTEM START LISTEN TCP;");
        let report = start.report("ready");
        let statements = format!("SYSTEM START LISTEN HTTP; {native} {report}\n{END_OF_INPUT}");
        let terminal = self
            .terminal
            .as_ref()
            .context("the engine has no terminal")?;
        rustix::io::write(terminal, statements.as_bytes())?;
        self.until(&start.file("ready")).await
    }

    /// Waits until ClickHouse has written this file.
    async fn until(&mut self, file: &str) -> anyhow::Result<()> {
        while !Path::new(file).exists() {
            if let Some(status) = self.child.try_wait()? {
                // The last lines of its log may not have arrived yet.
                sleep(Duration::from_millis(100)).await;
                bail!("ClickHouse did not start ({status}): {}", self.last_error);
            }
            // At a terminal, ClickHouse does not end when its first statements fail.
            if self.last_error.is_of_statement() {
                bail!("ClickHouse did not start: {}", self.last_error);
            }
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Returns the URL of ClickHouse's HTTP interface.
    pub fn url(&self) -> String {
        format!("http://{}", self.http)
    }

    /// Returns the address of ClickHouse's native protocol, if enabled.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.native
    }

    /// Returns the process id of ClickHouse.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until ClickHouse ends on its own, and returns the reason.
    pub async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => format!("ClickHouse ended ({status}): {}", self.last_error),
            Err(error) => format!("cannot wait for ClickHouse: {error}"),
        }
    }

    /// Stops ClickHouse: it accepts no more requests, lets running queries finish for a while, cancels the others, and closes its tables.
    ///
    /// # Errors
    /// If ClickHouse does not end and has to be killed. No stored data is lost.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        drop(self.terminal.take());
        let patience = self.shutdown_patience + END_PATIENCE;
        let Ok(ended) = timeout(patience, self.child.wait()).await else {
            self.child.kill().await?;
            bail!("ClickHouse did not end within {patience:?} and was killed");
        };
        let status = ended?;
        ensure!(
            status.success(),
            "ClickHouse ended with an error ({status}): {}",
            self.last_error
        );
        Ok(())
    }
}

/// Control-D.
const END_OF_INPUT: char = '\u{4}';

/// The folder of ClickHouse's start files. It is deleted when ClickHouse listens.
struct Start {
    folder: TempDir,
}

/// The prefix of the names of such folders.
const START: &str = "start-";

impl Start {
    fn write(
        options: &EngineOptions,
        http: SocketAddr,
        native: Option<SocketAddr>,
    ) -> std::io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(START)
            .tempdir_in(&options.data_dir)?;
        let start = Self { folder };
        let users_file = start.file("users.xml");
        let config = configuration::config(options, http, native, &users_file);
        private::file(&start.file("config.xml"), &config)?;
        private::file(&users_file, &configuration::users(options))?;
        private::file(&start.file("loaded.sql"), &start.report("loaded"))?;
        Ok(start)
    }

    /// Returns a statement that creates a file.
    fn report(&self, name: &str) -> String {
        let path = self.file(name).replace('\\', "\\\\").replace('\'', "\\'");
        format!("SELECT 1 INTO OUTFILE '{path}' TRUNCATE;")
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }
}

/// Deletes the start folders of supervisors that were killed at least an hour ago while their engines started.
fn remove_leftovers(data_dir: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(data_dir)? {
        let entry = entry?;
        let age = entry.metadata()?.modified()?.elapsed().unwrap_or_default();
        let is_start = entry.file_name().to_string_lossy().starts_with(START);
        if is_start && age > Duration::from_secs(3_600) {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}

fn spawn(
    options: &EngineOptions,
    start: &Start,
    stdin: File,
    stderr: StdUnixStream,
) -> anyhow::Result<Child> {
    let arguments = [
        format!("--config-file={}", start.file("config.xml")),
        format!("--path={}", options.data_dir.display()),
        format!("--log-level={}", log::level()),
        "--interactive".to_owned(),
        "--disable_suggestion".to_owned(),
        // Otherwise they would read keystrokes from the terminal while a query runs.
        "--progress=off".to_owned(),
        "--progress-table=off".to_owned(),
        "--enable-progress-table-toggle=0".to_owned(),
        format!("--queries-file={}", start.file("loaded.sql")),
        // The statements that make ClickHouse listen.
        "--queries-file=/dev/stdin".to_owned(),
        // ClickHouse reads this until the terminal hangs up.
        "--queries-file=/dev/stdin".to_owned(),
    ];
    let host = &options.host;
    let inherited = ["LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"];
    Command::new(&host.program)
        .args(&host.arguments)
        .arg(serde_json::to_string(&(options, arguments))?)
        .env_clear()
        .envs(
            inherited
                .iter()
                .filter_map(|name| Some((name, std::env::var_os(name)?))),
        )
        // Days are the same on every machine.
        .env("TZ", "UTC")
        .env("CLICKHOUSE_HISTORY_FILE", "/dev/null")
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(OwnedFd::from(stderr))
        // Ctrl-C is for the supervisor, which stops ClickHouse gracefully.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("cannot start {}", host.program.display()))
}
