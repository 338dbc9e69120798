//! The embedded library's C interface: every `unsafe` of this crate, behind types that cannot be misused.
//!
//! Nothing here knows HTTP or SQL. What the library promises and this file relies on: many connections to one data
//! path; one statement at a time on a connection (so methods that run one take `&mut self`); a connection may be used
//! from any thread (so it is `Send`); results and streams are freed exactly once by their owner.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::path::Path;
use std::ptr::NonNull;

type RawConnection = *mut c_void;
type RawResult = *mut c_void;
type RawInsert = *mut c_void;

/// How statements with parameters are started: text, format, names, values.
type StartFn<T> = unsafe extern "C" fn(
    RawConnection,
    *const c_char,
    usize,
    *const c_char,
    usize,
    *const *const c_char,
    *const usize,
    *const *const c_char,
    *const usize,
    usize,
) -> T;
type CountFn = unsafe extern "C" fn(RawResult) -> u64;

/// The functions of a loaded library.
pub(crate) struct Api {
    connect: unsafe extern "C" fn(c_int, *mut *mut c_char) -> *mut RawConnection,
    close: unsafe extern "C" fn(*mut RawConnection),
    query: StartFn<RawResult>,
    stream_insert: StartFn<RawInsert>,
    insert_append: unsafe extern "C" fn(RawInsert, *const c_void, usize) -> c_int,
    insert_done: unsafe extern "C" fn(RawInsert) -> RawResult,
    insert_cancel: unsafe extern "C" fn(RawInsert),
    insert_error: unsafe extern "C" fn(RawInsert) -> *const c_char,
    insert_destroy: unsafe extern "C" fn(RawInsert),
    result_buffer: unsafe extern "C" fn(RawResult) -> *const c_char,
    result_length: unsafe extern "C" fn(RawResult) -> usize,
    result_error: unsafe extern "C" fn(RawResult) -> *const c_char,
    result_rows: CountFn,
    result_bytes: CountFn,
    rows_written: CountFn,
    bytes_written: CountFn,
    storage_rows: CountFn,
    storage_bytes: CountFn,
    result_destroy: unsafe extern "C" fn(RawResult),
    shutdown: unsafe extern "C" fn() -> c_int,
}

impl Api {
    /// Loads the library for the rest of the process: its threads outlive every handle, so it is never unloaded.
    ///
    /// It reads the machine's time zone while it is loaded; UTC is what it must see, so that days mean the same everywhere.
    #[expect(unsafe_code, reason = "loading a library and resolving C functions")]
    pub(crate) fn load(path: &Path) -> Result<&'static Self, libloading::Error> {
        // SAFETY: called once, when the process has started nothing that reads the environment from C concurrently;
        // Rust's own readers take the lock that `set_var` takes.
        unsafe { std::env::set_var("TZ", "UTC") };
        // SAFETY: the file is the ClickHouse library, whose initializers only set up its own globals.
        let library = Box::leak(Box::new(unsafe { libloading::Library::new(path)? }));
        // SAFETY: each symbol has the C type written in the field it goes to, as the library's header declares it; the
        // library is leaked, so the function pointers stay valid.
        let api = unsafe {
            let set_signal_handlers: unsafe extern "C" fn(c_int) =
                *library.get(b"chdb_set_signal_handlers_enabled\0")?;
            set_signal_handlers(0);
            Self {
                connect: *library.get(b"chdb_connect\0")?,
                close: *library.get(b"chdb_close_conn\0")?,
                query: *library.get(b"chdb_query_with_params_n\0")?,
                stream_insert: *library.get(b"chdb_stream_insert_with_params_n\0")?,
                insert_append: *library.get(b"chdb_stream_append\0")?,
                insert_done: *library.get(b"chdb_stream_done\0")?,
                insert_cancel: *library.get(b"chdb_stream_cancel_insert\0")?,
                insert_error: *library.get(b"chdb_stream_insert_error\0")?,
                insert_destroy: *library.get(b"chdb_destroy_insert_stream\0")?,
                result_buffer: *library.get(b"chdb_result_buffer\0")?,
                result_length: *library.get(b"chdb_result_length\0")?,
                result_error: *library.get(b"chdb_result_error\0")?,
                result_rows: *library.get(b"chdb_result_rows_read\0")?,
                result_bytes: *library.get(b"chdb_result_bytes_read\0")?,
                rows_written: *library.get(b"chdb_result_rows_written\0")?,
                bytes_written: *library.get(b"chdb_result_bytes_written\0")?,
                storage_rows: *library.get(b"chdb_result_storage_rows_read\0")?,
                storage_bytes: *library.get(b"chdb_result_storage_bytes_read\0")?,
                result_destroy: *library.get(b"chdb_destroy_query_result\0")?,
                shutdown: *library.get(b"chdb_shutdown\0")?,
            }
        };
        Ok(Box::leak(Box::new(api)))
    }

    /// Opens a connection. The first one boots the engine with its arguments; later ones take their settings from them.
    /// `None` when the library refuses, which it does without a reason.
    #[expect(unsafe_code, reason = "C call")]
    pub(crate) fn connect(&'static self, arguments: &[String]) -> Option<Connection> {
        let texts: Vec<CString> = std::iter::once("clickhouse")
            .chain(arguments.iter().map(String::as_str))
            .map(CString::new)
            .collect::<Result<_, _>>()
            .ok()?;
        let mut pointers: Vec<*mut c_char> =
            texts.iter().map(|text| text.as_ptr().cast_mut()).collect();
        let count = c_int::try_from(pointers.len()).ok()?;
        // SAFETY: `count` NUL-terminated strings that live until after the call; the library only reads them.
        let handle = NonNull::new(unsafe { (self.connect)(count, pointers.as_mut_ptr()) })?;
        // SAFETY: a non-null answer points to the connection's handle.
        if unsafe { handle.as_ref() }.is_null() {
            return None;
        }
        Some(Connection { api: self, handle })
    }

    /// Joins the library's threads, or says that it did not. When every connection is closed; afterwards none can be opened.
    #[expect(unsafe_code, reason = "C call")]
    pub(crate) fn shut_down(&self) -> bool {
        // SAFETY: callable at any time; with a connection still open it does nothing and says so.
        unsafe { (self.shutdown)() == 0 }
    }
}

/// A statement and what it is run with.
#[derive(Clone, Copy)]
pub(crate) struct Statement<'a> {
    pub(crate) text: &'a [u8],
    /// The format of the answer, or of an insert's data.
    pub(crate) format: &'a str,
    pub(crate) parameters: &'a [(String, String)],
}

/// A connection to the engine: settings, current database and temporary tables of its own.
pub(crate) struct Connection {
    api: &'static Api,
    handle: NonNull<RawConnection>,
}

// SAFETY: the library ties a connection to no thread; `&mut self` keeps it to one thread at a time.
#[expect(unsafe_code, reason = "the handle is a pointer")]
unsafe impl Send for Connection {}

impl Connection {
    #[expect(unsafe_code, reason = "C call")]
    fn start<T>(&mut self, function: StartFn<T>, statement: Statement<'_>) -> T {
        let pointers =
            |pick: fn(&(String, String)) -> &String| -> (Vec<*const c_char>, Vec<usize>) {
                statement
                    .parameters
                    .iter()
                    .map(|pair| (pick(pair).as_ptr().cast(), pick(pair).len()))
                    .unzip()
            };
        let (names, name_lengths) = pointers(|pair| &pair.0);
        let (values, value_lengths) = pointers(|pair| &pair.1);
        // SAFETY: the handle is open, every pointer goes with its length and outlives the call, which copies what it keeps.
        unsafe {
            function(
                self.raw(),
                statement.text.as_ptr().cast(),
                statement.text.len(),
                statement.format.as_ptr().cast(),
                statement.format.len(),
                names.as_ptr(),
                name_lengths.as_ptr(),
                values.as_ptr(),
                value_lengths.as_ptr(),
                statement.parameters.len(),
            )
        }
    }

    #[expect(unsafe_code, reason = "pointer read")]
    fn raw(&self) -> RawConnection {
        // SAFETY: the handle is valid until it is closed, which only `drop` does.
        unsafe { *self.handle.as_ptr() }
    }

    /// Runs a statement to its end and holds its whole answer.
    pub(crate) fn query(&mut self, statement: Statement<'_>) -> Result<Answer, String> {
        let raw = self.start(self.api.query, statement);
        Answer::take(self.api, raw)
    }

    /// Starts an INSERT (its text without FORMAT and data); the data follows by `append`.
    pub(crate) fn insert(&mut self, statement: Statement<'_>) -> Result<Insert<'_>, String> {
        let raw = self.start(self.api.stream_insert, statement);
        let raw = NonNull::new(raw).ok_or_else(|| "the library answered nothing".to_owned())?;
        let insert = Insert {
            api: self.api,
            raw,
            ended: false,
            connection: PhantomData,
        };
        match insert.error() {
            Some(error) => Err(error),
            None => Ok(insert),
        }
    }
}

impl Drop for Connection {
    #[expect(unsafe_code, reason = "C call")]
    fn drop(&mut self) {
        // SAFETY: open, closed only here, and nothing borrows it any more.
        unsafe { (self.api.close)(self.handle.as_ptr()) };
    }
}

/// What a statement did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) result_rows: u64,
    pub(crate) result_bytes: u64,
    pub(crate) read_rows: u64,
    pub(crate) read_bytes: u64,
    pub(crate) written_rows: u64,
    pub(crate) written_bytes: u64,
}

/// An answer: bytes in the asked format, and counts.
pub(crate) struct Answer {
    api: &'static Api,
    raw: NonNull<c_void>,
}

impl Answer {
    /// Owns `raw`, or gives the error it carries.
    fn take(api: &'static Api, raw: RawResult) -> Result<Self, String> {
        let raw = NonNull::new(raw).ok_or_else(|| "the library answered nothing".to_owned())?;
        let answer = Self { api, raw };
        match answer.error() {
            Some(error) => Err(error),
            None => Ok(answer),
        }
    }

    #[expect(unsafe_code, reason = "C call")]
    fn error(&self) -> Option<String> {
        // SAFETY: the result is owned; its error text, when there is one, is NUL-terminated and lives as long.
        unsafe { owned_text((self.api.result_error)(self.raw.as_ptr())) }
    }

    #[expect(unsafe_code, reason = "C call")]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: buffer and length belong together and stay valid and unchanged while the result is owned.
        unsafe {
            let length = (self.api.result_length)(self.raw.as_ptr());
            let buffer = (self.api.result_buffer)(self.raw.as_ptr());
            if length == 0 || buffer.is_null() {
                &[]
            } else {
                std::slice::from_raw_parts(buffer.cast(), length)
            }
        }
    }

    #[expect(unsafe_code, reason = "C call")]
    pub(crate) fn counts(&self) -> Counts {
        // SAFETY: getters on an owned result.
        let count = |getter: CountFn| unsafe { getter(self.raw.as_ptr()) };
        Counts {
            result_rows: count(self.api.result_rows),
            result_bytes: count(self.api.result_bytes),
            read_rows: count(self.api.storage_rows),
            read_bytes: count(self.api.storage_bytes),
            written_rows: count(self.api.rows_written),
            written_bytes: count(self.api.bytes_written),
        }
    }
}

impl Drop for Answer {
    #[expect(unsafe_code, reason = "C call")]
    fn drop(&mut self) {
        // SAFETY: owned and freed only here.
        unsafe { (self.api.result_destroy)(self.raw.as_ptr()) };
    }
}

/// A running INSERT. Dropping it before `finish` cancels it.
pub(crate) struct Insert<'a> {
    api: &'static Api,
    raw: NonNull<c_void>,
    ended: bool,
    connection: PhantomData<&'a mut Connection>,
}

impl Insert<'_> {
    #[expect(unsafe_code, reason = "C call")]
    fn error(&self) -> Option<String> {
        // SAFETY: the stream is owned; its error text is NUL-terminated and lives as long as it.
        unsafe { owned_text((self.api.insert_error)(self.raw.as_ptr())) }
    }

    /// Adds data, cut anywhere. Waits while the engine is behind. `false` when the insert has failed: `finish` says why.
    #[expect(unsafe_code, reason = "C call")]
    pub(crate) fn append(&mut self, data: &[u8]) -> bool {
        // SAFETY: the stream is owned, and the library copies the bytes.
        unsafe {
            (self.api.insert_append)(self.raw.as_ptr(), data.as_ptr().cast(), data.len()) == 0
        }
    }

    /// Ends the data and waits until it is stored.
    #[expect(unsafe_code, reason = "C call")]
    pub(crate) fn finish(mut self) -> Result<Counts, String> {
        self.ended = true;
        // SAFETY: the stream is owned and not ended yet; `Drop` frees it.
        let raw = unsafe { (self.api.insert_done)(self.raw.as_ptr()) };
        Ok(Answer::take(self.api, raw)?.counts())
    }
}

impl Drop for Insert<'_> {
    #[expect(unsafe_code, reason = "C call")]
    fn drop(&mut self) {
        // SAFETY: owned and freed only here; cancelling comes before freeing.
        unsafe {
            if !self.ended {
                (self.api.insert_cancel)(self.raw.as_ptr());
            }
            (self.api.insert_destroy)(self.raw.as_ptr());
        }
    }
}

/// # Safety
/// `text` is null or a NUL-terminated string.
#[expect(unsafe_code, reason = "reads a C string")]
unsafe fn owned_text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    Some(
        unsafe { CStr::from_ptr(text) }
            .to_string_lossy()
            .into_owned(),
    )
}
