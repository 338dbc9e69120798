//! The handle to ClickHouse, embedded or on a server. Uses the official client over HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use clickhouse::{Client, Compression};
use tokio::sync::Notify;
use unjank_foundation::clock::{DAY, UnixTime};
use uuid::Uuid;

use crate::records::native::BadFrame;

/// How to reach ClickHouse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub url: String,
    /// The user that inserts rows and changes the schema.
    pub writer: Login,
    /// The user that runs queries. The same as `writer` if there is only one user.
    pub reader: Login,
    pub database: String,
    /// Whether to compress requests. Pays off across a network, not on loopback.
    pub compress: bool,
}

/// A ClickHouse user.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: String,
}

/// Omits the password.
impl std::fmt::Debug for Login {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.user)
    }
}

impl Target {
    fn client(&self, login: &Login) -> Client {
        let compression = if self.compress {
            Compression::Lz4
        } else {
            Compression::None
        };
        let client = Client::default()
            .with_url(&self.url)
            .with_user(&login.user)
            .with_compression(compression);
        if login.password.is_empty() {
            client
        } else {
            client.with_password(&login.password)
        }
    }
}

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// ClickHouse is unreachable, busy, full or not set up. A retry may succeed.
    #[error("{0}")]
    Later(String),
    /// ClickHouse rejects the rows, and would reject them again.
    #[error("{0}")]
    Content(String),
    /// The query takes too long or too much memory. A retry would fail, too.
    #[error("{0}")]
    TooMuch(String),
}

impl From<BadFrame> for Failure {
    fn from(error: BadFrame) -> Self {
        Self::Content(error.to_string())
    }
}

/// Error codes that concern the rows and not the state of the server. The writer retries all others without end, because waiting loses nothing.
const CONTENT_CODES: [u32; 14] = [
    6,   // CANNOT_PARSE_TEXT
    27,  // CANNOT_PARSE_INPUT_ASSERTION_FAILED
    33,  // CANNOT_READ_ALL_DATA
    53,  // TYPE_MISMATCH
    69,  // ARGUMENT_OUT_OF_BOUND
    70,  // CANNOT_CONVERT_TYPE
    117, // INCORRECT_DATA
    131, // TOO_LARGE_STRING_SIZE
    190, // SIZES_OF_ARRAYS_DONT_MATCH
    321, // VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE
    349, // CANNOT_INSERT_NULL_IN_ORDINARY_COLUMN
    469, // VIOLATED_CONSTRAINT
    547, // INVALID_RAISED_EXCEPTION
    691, // UNKNOWN_ELEMENT_OF_ENUM
];

/// Error codes of queries that exceed a limit. The writer retries an INSERT that gets one, as after any other error.
const LIMIT_CODES: [u32; 8] = [
    158, // TOO_MANY_ROWS
    159, // TIMEOUT_EXCEEDED
    160, // TOO_SLOW
    167, // TOO_DEEP_AST
    168, // TOO_BIG_AST
    241, // MEMORY_LIMIT_EXCEEDED
    306, // TOO_DEEP_RECURSION
    396, // TOO_MANY_ROWS_OR_BYTES
];

impl From<clickhouse::error::Error> for Failure {
    fn from(error: clickhouse::error::Error) -> Self {
        let text = error.to_string();
        match exception_code(&text) {
            Some(code) if CONTENT_CODES.contains(&code) => Self::Content(text),
            Some(code) if LIMIT_CODES.contains(&code) => Self::TooMuch(text),
            _ => Self::Later(text),
        }
    }
}

/// Extracts the error code: `Code: 469. DB::Exception: …` → 469.
fn exception_code(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("Code: ")?;
    rest.split_once('.')?.0.parse().ok()
}

/// A shared handle to ClickHouse. It points nowhere while the embedded engine is down.
#[derive(Clone)]
pub struct ClickHouse {
    clients: Arc<ArcSwapOption<Clients>>,
    pointed: Arc<Notify>,
    /// Whether ClickHouse has answered no query for three minutes, see `engine_watch`.
    is_silent: Arc<AtomicBool>,
    /// Why the embedded engine does not run.
    why_down: Arc<ArcSwapOption<String>>,
    database: Arc<str>,
}

struct Clients {
    writer: Client,
    reader: Client,
}

/// What to do about a ClickHouse that hangs.
pub(super) const SILENCE: &str = "ClickHouse has answered no query for three minutes: check that it runs, and that this server can reach it and log in; if it hangs, restart it";

/// An INSERT that takes longer has lost its connection. The writer sends the range again.
pub(super) const SEND_TIMEOUT: Duration = Duration::from_secs(30);
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(300);

/// With a deduplication token, ClickHouse ignores a repeated block, in its table and in the roll-ups that materialized views build from it.
pub(super) const EXACTLY_ONCE: [(&str, &str); 4] = [
    ("insert_deduplicate", "1"),
    ("async_insert", "0"),
    // A view's GROUP BY yields each key once. Merging the rows again before the write took a quarter of the INSERT's time.
    ("optimize_on_insert", "0"),
    ("deduplicate_blocks_in_dependent_materialized_views", "1"),
];

/// An INSERT … SELECT writes one block, so that each attempt makes the same parts.
pub(super) const ONE_BLOCK: [(&str, &str); 3] = [
    ("min_insert_block_size_rows", "1000000000"),
    ("min_insert_block_size_bytes", "0"),
    ("max_insert_threads", "1"),
];

impl ClickHouse {
    /// Creates a handle that points nowhere yet.
    pub fn away(database: &str) -> Self {
        Self {
            clients: Arc::default(),
            pointed: Arc::default(),
            is_silent: Arc::default(),
            why_down: Arc::default(),
            database: Arc::from(database),
        }
    }

    pub fn database(&self) -> &str {
        &self.database
    }

    /// Points the handle at `target`, or nowhere.
    pub fn point_at(&self, target: Option<&Target>) {
        let clients = target.map(|target| Clients {
            writer: target.client(&target.writer),
            reader: target.client(&target.reader),
        });
        if clients.is_some() {
            self.why_down.store(None);
        }
        self.clients.store(clients.map(Arc::new));
        self.pointed.notify_waiters();
    }

    /// Waits until the handle points somewhere.
    pub async fn pointed(&self) {
        loop {
            let pointed = self.pointed.notified();
            if self.clients.load().is_some() {
                return;
            }
            pointed.await;
        }
    }

    /// Returns a client that may write.
    pub fn client(&self) -> Result<Client, Failure> {
        Ok(self.clients()?.writer.clone())
    }

    /// Returns a client that may only read, if ClickHouse has a user for that.
    pub fn reader(&self) -> Result<Client, Failure> {
        Ok(self.clients()?.reader.clone())
    }

    fn clients(&self) -> Result<Arc<Clients>, Failure> {
        self.clients
            .load_full()
            .ok_or_else(|| Failure::Later("ClickHouse is not running yet".to_owned()))
    }

    /// Notes why the embedded engine does not run, for [`Self::ping`].
    pub(super) fn set_why_down(&self, reason: String) {
        self.why_down.store(Some(Arc::new(reason)));
    }

    pub(super) fn set_silent(&self, is_silent: bool) {
        self.is_silent.store(is_silent, Ordering::Relaxed);
    }

    pub(super) fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }

    /// Fails unless ClickHouse responds within five seconds. The error is for operators.
    pub async fn ping(&self) -> Result<(), Failure> {
        let answered = self.ping_once().await;
        answered.map_err(|failure| match failure {
            Failure::Later(why) if self.is_silent() => Failure::Later(format!("{why}. {SILENCE}")),
            Failure::Later(why) => Failure::Later(match self.why_down.load_full() {
                Some(reason) => format!("{why}: {reason}"),
                None => why,
            }),
            failure => failure,
        })
    }

    async fn ping_once(&self) -> Result<(), Failure> {
        let answer = self.reader()?.query("SELECT 1").fetch_one::<u8>();
        tokio::time::timeout(Duration::from_secs(5), answer)
            .await
            .map_err(|_| Failure::Later("ClickHouse did not answer within 5 s".to_owned()))??;
        Ok(())
    }

    /// Calls `recall` for the batches that arrived on the day before `now`, newest first, for at most `most` of them.
    pub async fn recall_batches(
        &self,
        most: usize,
        now: UnixTime,
        mut recall: impl FnMut(&str, Uuid),
    ) -> Result<u64, Failure> {
        let sql = format!(
            "SELECT toString(project) AS project, batch_id FROM `{}`.batches \
             WHERE received_at >= fromUnixTimestamp64Micro({{since:Int64}}) ORDER BY received_at DESC LIMIT {most}",
            self.database,
        );
        #[derive(clickhouse::Row, serde::Deserialize)]
        struct Stored<'a> {
            project: &'a str,
            #[serde(with = "clickhouse::serde::uuid")]
            batch_id: Uuid,
        }
        let query = self.client()?.query(&sql);
        // People and the writer wait for answers while a server starts, and nobody waits for this one.
        let query = query
            .param("since", (now - DAY).as_micros())
            .with_setting("max_threads", "1");
        let mut rows = query.fetch::<Stored<'_>>()?;
        let mut batches = 0;
        while let Some(row) = rows.next().await? {
            recall(row.project, row.batch_id);
            batches += 1;
        }
        Ok(batches)
    }
}
