//! The engine in this process: its data folder, its boot, connections to it, and stopping statements from outside.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::exception::Exception;
use crate::ffi::{Api, Connection, Statement};
use crate::options::EngineOptions;
use crate::running::Running;
use crate::sql::quote_text;

/// ClickHouse needs deep stacks for deep queries.
pub(crate) const STACK: usize = 8 << 20;
/// How many statements may wait to be stopped. The worst case is every running one.
const STOPS: usize = 4096;
/// A statement that is told to stop before it has started is told again, this often.
const STOP_TRIES: u32 = 200;

/// The thread that stops statements, and the way to it.
struct Stopper {
    stops: SyncSender<Arc<Running>>,
    thread: JoinHandle<()>,
}

/// The one engine of this process.
pub(crate) struct Engine {
    api: &'static Api,
    path: String,
    settings: Vec<String>,
    stopper: Mutex<Option<Stopper>>,
    /// Keeps other engines out of the data folder.
    _lock: File,
}

impl Engine {
    /// Locks the data folder, loads the library and boots the engine on the folder.
    pub(crate) fn boot(options: &EngineOptions) -> anyhow::Result<Arc<Self>> {
        let folder = &options.data_dir;
        std::fs::create_dir_all(folder).with_context(|| {
            format!(
                "the engine's data folder {} cannot be made",
                folder.display()
            )
        })?;
        let lock = lock(folder, options.lock_patience)?;
        raise_file_limit();
        let folder = folder.canonicalize()?;
        let path = folder
            .to_str()
            .context("the path of the engine's data folder is not UTF-8")?
            .to_owned();
        let api = Api::load(&options.library).with_context(|| {
            format!(
                "the ClickHouse library {} cannot be loaded",
                options.library.display()
            )
        })?;
        let mut settings = CONNECTION_SETTINGS.map(str::to_owned).to_vec();
        settings.extend(
            options
                .threads
                .map(|threads| format!("--max_threads={}", threads.max(1))),
        );
        let mut boot = server_settings(options);
        boot.insert(0, format!("--path={path}"));
        boot.extend(settings.iter().cloned());
        let connection = api
            .connect(&boot)
            .with_context(|| format!("ClickHouse does not start on {path}: is the disk full, or the folder another version's?"))?;
        // Its one connection also keeps the engine alive while no statement runs.
        let (stops, requests) = sync_channel(STOPS);
        let thread = std::thread::Builder::new()
            .name("stopper".to_owned())
            .stack_size(STACK)
            .spawn(move || stop_statements(connection, &requests))?;
        Ok(Arc::new(Self {
            api,
            path,
            settings,
            stopper: Mutex::new(Some(Stopper { stops, thread })),
            _lock: lock,
        }))
    }

    /// A fresh connection, so that no request sees another's settings, database or temporary tables.
    pub(crate) fn connect(&self, token: &str) -> Result<Connection, Exception> {
        let mut arguments = vec![
            format!("--path={}", self.path),
            format!("--log_comment={token}"),
        ];
        arguments.extend(self.settings.iter().cloned());
        self.api.connect(&arguments).ok_or_else(|| {
            Exception::new(
                210,
                "NETWORK_ERROR",
                "The embedded engine gave no connection: it is out of memory or shutting down",
            )
        })
    }

    /// Stops a statement soon, wherever it is. Does not wait.
    pub(crate) fn stop(&self, running: &Arc<Running>) {
        running.stop();
        let stopper = self.stopper.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stopper) = stopper.as_ref()
            && stopper.stops.try_send(Arc::clone(running)).is_err()
        {
            tracing::warn!("too many statements are to be stopped at once; one goes on to its end");
        }
    }

    /// Ends the engine. Only when no statement runs and no connection is held.
    pub(crate) fn shut_down(&self) {
        let stopper = self
            .stopper
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(Stopper { stops, thread }) = stopper {
            drop(stops);
            if thread.join().is_err() {
                tracing::error!("the thread that stops statements had panicked");
            }
        }
        // With a table of the MergeTree family it always refuses. Nothing hangs on it: each INSERT is on disk before its answer.
        if !self.api.shut_down() {
            tracing::debug!("the library does not join its threads: they end with the process");
        }
    }
}

/// What every connection starts with, where the library's defaults differ from a server's.
const CONNECTION_SETTINGS: [&str; 3] = [
    "--implicit_select=0",
    "--allow_introspection_functions=0",
    "--async_insert=0",
];

/// What the engine itself starts with.
fn server_settings(options: &EngineOptions) -> Vec<String> {
    vec![
        format!("--max_server_memory_usage={}", options.max_memory_bytes),
        // Threads of a burst of statements end after it; each holds three files open.
        "--max_thread_pool_free_size=16".to_owned(),
        // A cache may take a part of the memory, not all of it.
        format!(
            "--mark_cache_size={}",
            (options.max_memory_bytes / 8).min(512 << 20)
        ),
        format!(
            "--uncompressed_cache_size={}",
            (options.max_memory_bytes / 16).min(256 << 20)
        ),
    ]
}

/// The usual limit of 1024 open files is little for a table of many parts and columns.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    ) {
        tracing::warn!(%error, "the limit of open files stays as it is");
    }
}

/// Takes the folder for this engine, waiting for another to leave.
fn lock(folder: &Path, patience: Duration) -> anyhow::Result<File> {
    let path = folder.join("unjank-engine.lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("{} cannot be written", path.display()))?;
    let until = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(TryLockError::WouldBlock) => anyhow::bail!(
                "another engine has used the data folder {} for the last {} s: end it, or give this one another folder",
                folder.display(),
                patience.as_secs()
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("{} cannot be locked", path.display()));
            }
        }
    }
}

/// Has the engine stop statements by what they are known by. A connection cannot be told by hand while it is busy.
fn stop_statements(mut connection: Connection, requests: &Receiver<Arc<Running>>) {
    let mut waiting: Vec<(Arc<Running>, u32)> = Vec::new();
    loop {
        // Blocks while there is nothing to stop, and looks every few milliseconds while there is.
        let next = if waiting.is_empty() {
            match requests.recv() {
                Ok(running) => Some(running),
                Err(_) => return,
            }
        } else {
            requests.recv_timeout(Duration::from_millis(25)).ok()
        };
        waiting.extend(next.map(|running| (running, 0)));
        waiting.extend(requests.try_iter().map(|running| (running, 0)));
        waiting.retain(|(running, tries)| !running.is_finished() && *tries < STOP_TRIES);
        for (running, tries) in &mut waiting {
            *tries += 1;
            let text = format!(
                "KILL QUERY WHERE startsWith(Settings['log_comment'], {}) ASYNC FORMAT Null",
                quote_text(&running.token)
            );
            let statement = Statement {
                text: text.as_bytes(),
                format: "Null",
                parameters: &[],
            };
            if let Err(error) = connection.query(statement) {
                tracing::warn!(error, "a statement could not be stopped");
            }
        }
    }
}
