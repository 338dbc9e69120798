//! How an engine is run.

use std::path::PathBuf;
use std::time::Duration;

/// How an engine is run. Start from `default()` and give at least `data_dir` and `library`.
#[derive(Clone)]
pub struct EngineOptions {
    /// The folder of the data; made when it is missing, and used by one engine at a time.
    pub data_dir: PathBuf,
    /// The library, as [`crate::library::locate_or_fetch`] finds it.
    pub library: PathBuf,
    /// The only user.
    pub user: String,
    /// Its password. Empty: none is asked for.
    pub password: String,
    /// The most memory the engine's statements and merges take together, in bytes.
    pub max_memory_bytes: u64,
    /// How many statements run at once; more wait for `queue_patience`, then get an error.
    pub max_connections: usize,
    /// How many threads one statement uses. `None`: as many as the machine has.
    pub threads: Option<usize>,
    /// How many HTTP connections are open at once; more wait to be accepted.
    pub max_clients: usize,
    /// How many sessions (`session_id`) exist at once.
    pub max_sessions: usize,
    /// How long a statement waits for a free place.
    pub queue_patience: Duration,
    /// A client that sends nothing, or takes nothing, for this long in mid-request is gone.
    pub stall: Duration,
    /// How large an answer may grow that `wait_end_of_query` holds back, in bytes of disk.
    pub largest_held_answer: u64,
    /// How long running statements may go on at shutdown before they are cancelled.
    pub shutdown_patience: Duration,
    /// How long to wait for another engine to leave the data folder.
    pub lock_patience: Duration,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::new(),
            library: PathBuf::new(),
            user: "default".to_owned(),
            password: String::new(),
            max_memory_bytes: 4 << 30,
            max_connections: 32,
            threads: None,
            max_clients: 1024,
            max_sessions: 256,
            queue_patience: Duration::from_secs(10),
            stall: Duration::from_secs(120),
            largest_held_answer: 16 << 30,
            shutdown_patience: Duration::from_secs(8),
            lock_patience: Duration::from_secs(10),
        }
    }
}

/// Without the password.
impl std::fmt::Debug for EngineOptions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("EngineOptions")
            .field("data_dir", &self.data_dir)
            .field("library", &self.library)
            .field("user", &self.user)
            .field("max_memory_bytes", &self.max_memory_bytes)
            .field("max_connections", &self.max_connections)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}
