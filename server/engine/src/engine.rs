//! One life of an engine: started, ready, ended.

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

/// A data folder of many parts takes a while to open.
const START_PATIENCE: Duration = Duration::from_secs(600);
/// After its queries were cancelled, how long the process may take to end.
const END_PATIENCE: Duration = Duration::from_secs(12);

/// A running ClickHouse. Dropping it kills ClickHouse; stored data is safe.
#[derive(Debug)]
pub struct Engine {
    child: Child,
    /// ClickHouse ends in order when this closes, so it never outlives the process that started it.
    terminal: Option<OwnedFd>,
    http: SocketAddr,
    native: Option<SocketAddr>,
    last_error: LastError,
    shutdown_patience: Duration,
}

impl Engine {
    /// Starts ClickHouse on its data folder and on reserved ports, and returns when it listens.
    ///
    /// # Errors
    /// When the data folder is in use or cannot be written, and when ClickHouse does not start. The error says what ClickHouse
    /// said last.
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
            "{} is not UTF-8",
            failed()
        );
        let (http, native) = (ports.http()?, ports.native()?);
        let start = Start::write(options, http, native).with_context(failed)?;
        let (terminal, stdin) = terminal::open().context("a terminal cannot be opened")?;
        // A socket: SQL that opens /proc/self/fd/2 could steal the lines of a pipe.
        let (output, stderr) = StdUnixStream::pair()?;
        output.set_nonblocking(true)?;
        let child = spawn(options, &start, stdin, stderr)?;
        let last_error = LastError::default();
        #[expect(
            clippy::disallowed_methods,
            reason = "it ends with the process whose output it reads"
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

    /// Has ClickHouse listen once it has read its configuration, and returns when it listens.
    async fn until_ready(&mut self, start: &Start) -> anyhow::Result<()> {
        self.until(&start.file("loaded")).await?;
        // SQL can read files in the data folder: the hashes of passwords must be gone before anybody can ask.
        std::fs::remove_file(start.file("users.xml"))?;
        let native = self.native.map_or("", |_| "SYSTEM START LISTEN TCP;");
        let report = start.report("ready");
        let statements = format!("SYSTEM START LISTEN HTTP; {native} {report}\n{END_OF_INPUT}");
        let terminal = self.terminal.as_ref().context("it has no terminal")?;
        rustix::io::write(terminal, statements.as_bytes())?;
        self.until(&start.file("ready")).await
    }

    /// Returns when ClickHouse has written this file.
    async fn until(&mut self, file: &str) -> anyhow::Result<()> {
        while !Path::new(file).exists() {
            if let Some(status) = self.child.try_wait()? {
                // Its last lines may still be on their way.
                sleep(Duration::from_millis(100)).await;
                bail!("ClickHouse did not start ({status}): {}", self.last_error);
            }
            // At a terminal it does not end when its first statements fail.
            if self.last_error.is_of_statement() {
                bail!("ClickHouse did not start: {}", self.last_error);
            }
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Where ClickHouse's HTTP interface is.
    pub fn url(&self) -> String {
        format!("http://{}", self.http)
    }

    /// Where ClickHouse's native protocol is spoken, if it is.
    pub fn tcp_address(&self) -> Option<SocketAddr> {
        self.native
    }

    /// The process of ClickHouse.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until ClickHouse ends by itself, and answers how.
    pub async fn ended(&mut self) -> String {
        match self.child.wait().await {
            Ok(status) => format!("ClickHouse ended ({status}): {}", self.last_error),
            Err(error) => format!("ClickHouse cannot be waited for: {error}"),
        }
    }

    /// Ends ClickHouse: it accepts nothing more, lets running queries finish for a while, cancels the rest, and closes its tables.
    ///
    /// # Errors
    /// When ClickHouse does not end by itself and has to be killed. Nothing that was stored is lost by that.
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

/// The folder of the files that ClickHouse starts with. It goes when ClickHouse listens.
struct Start {
    folder: TempDir,
}

/// What the names of such folders begin with.
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

    /// A statement that creates a file.
    fn report(&self, name: &str) -> String {
        let path = self.file(name).replace('\\', "\\\\").replace('\'', "\\'");
        format!("SELECT 1 INTO OUTFILE '{path}' TRUNCATE;")
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }
}

/// Removes folders of supervisors that were killed while their engines started, an hour ago or earlier.
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
        // While a query runs they would read the terminal for keystrokes.
        "--progress=off".to_owned(),
        "--progress-table=off".to_owned(),
        "--enable-progress-table-toggle=0".to_owned(),
        format!("--queries-file={}", start.file("loaded.sql")),
        // The statements that have it listen.
        "--queries-file=/dev/stdin".to_owned(),
        // Reading this lasts until the terminal hangs up.
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
        // Days mean the same on every machine.
        .env("TZ", "UTC")
        .env("CLICKHOUSE_HISTORY_FILE", "/dev/null")
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(OwnedFd::from(stderr))
        // Ctrl-C is for the supervisor, which ends ClickHouse in order.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{} does not start", host.program.display()))
}
