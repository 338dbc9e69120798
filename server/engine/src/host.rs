//! The process that becomes ClickHouse: it locks the data folder, confines itself, and then runs `clickhouse local`.

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::fs::{File, TryLockError};
use std::io::{IsTerminal, stdin};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::clickhouse::ClickHouse;
use crate::confine::confine;
use crate::options::EngineOptions;

/// Becomes ClickHouse. `instructions` is the last argument that [`crate::Engine::start`] passes to its process: the options and the arguments of
/// `clickhouse local`. Returns when ClickHouse stops gracefully.
///
/// # Errors
/// If the data folder is in use, if ClickHouse cannot be loaded, or if it ends with an error.
pub fn run(instructions: &str) -> anyhow::Result<()> {
    let (options, arguments): (EngineOptions, Vec<String>) = serde_json::from_str(instructions)?;
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
    // ClickHouse holds the lock too, until the process ends.
    let lock = lock(&options.data_dir, options.lock_patience)?;
    rustix::io::fcntl_setfd(&lock, rustix::io::FdFlags::empty())?;
    remove_empty_definitions(&options.data_dir)?;
    repair_parts(&options.data_dir)?;
    if let Err(error) = rustix::process::nice(options.nice) {
        tracing::warn!(%error, "cannot lower the priority of the engine");
    }
    // ClickHouse searches its working folder.
    std::env::set_current_dir(&options.data_dir)?;
    if !confine(&options).context("cannot confine ClickHouse to its data folder")? {
        tracing::warn!(
            "this system cannot confine ClickHouse to its data folder (Linux 5.19 and later can): anyone with a ClickHouse password can read all files that this user can read"
        );
    }
    match &options.clickhouse {
        ClickHouse::Library(library) => {
            run_library(library, arguments.into_iter().map(OsString::from))
        }
        ClickHouse::Program(program) => {
            let mut command = std::process::Command::new(program);
            let error = command.arg("local").args(arguments).exec();
            Err(error).with_context(|| format!("cannot start {}", program.display()))
        }
    }
}

/// Locks the folder for this process. Waits for another engine to release it.
fn lock(folder: &Path, patience: Duration) -> anyhow::Result<File> {
    let path = folder.join("unjank-engine.lock");
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    let until = Instant::now() + patience;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            // The supervisor may have ended in the meantime. Then there is no reason to wait.
            Err(TryLockError::WouldBlock) if Instant::now() < until && stdin().is_terminal() => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(TryLockError::WouldBlock) => anyhow::bail!(
                "another engine uses the data folder {}: stop that engine, or use another folder for this one",
                folder.display(),
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("cannot lock {}", path.display()));
            }
        }
    }
}

/// Deletes empty definitions of databases and tables. ClickHouse does not start if there is one, and never writes one as a definition, so nothing
/// is lost.
fn remove_empty_definitions(data_dir: &Path) -> anyhow::Result<()> {
    let mut folders = vec![(data_dir.join("metadata"), 0), (data_dir.join("store"), 2)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            continue;
        };
        for entry in entries {
            let (path, found) = entry.and_then(|entry| Ok((entry.path(), entry.metadata()?)))?;
            let is_definition = path.extension().is_some_and(|extension| extension == "sql");
            if found.is_dir() && depth > 0 {
                folders.push((path, depth - 1));
            } else if found.is_file() && found.len() == 0 && is_definition {
                tracing::warn!(file = %path.display(), "deleted an empty definition");
                std::fs::remove_file(path)?;
            }
        }
    }
    Ok(())
}

/// Files of a part that ClickHouse does not need: it recalculates the checksums, and assumes the version of the table. They may be empty after a
/// power cut, or after a full disk under an earlier version of unjank. ClickHouse sets aside the whole part if such a file is empty.
const SPARE_FILES: [&str; 2] = ["checksums.txt", "metadata_version.txt"];

/// Deletes empty spare files from all parts.
fn repair_parts(data_dir: &Path) -> anyhow::Result<()> {
    let tables = folders_in(&data_dir.join("store")).flat_map(|prefix| folders_in(&prefix));
    for part in tables.flat_map(|table| folders_in(&table)) {
        let spare = SPARE_FILES.iter().map(|name| part.join(name));
        let is_empty = |file: &PathBuf| {
            std::fs::metadata(file).is_ok_and(|found| found.is_file() && found.len() == 0)
        };
        for file in spare.filter(is_empty) {
            tracing::warn!(file = %file.display(), "deleted an empty file, which ClickHouse creates again");
            std::fs::remove_file(file)?;
        }
    }
    Ok(())
}

fn folders_in(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path())
}

/// `chdb_query_cmdline`, and `chdb_result_error`, which returns the error text of its result.
type Run = unsafe extern "C" fn(c_int, *mut *mut c_char) -> *mut c_void;
type Error = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// Runs `clickhouse local` with these arguments, in this process.
///
/// # Errors
/// If the library cannot be loaded, or if ClickHouse ends with an error.
#[expect(unsafe_code, reason = "loading a library and calling its C functions")]
pub fn run_library(
    library: &Path,
    arguments: impl IntoIterator<Item = OsString>,
) -> anyhow::Result<()> {
    let texts: Vec<CString> = std::iter::once(OsString::from("clickhouse"))
        .chain(arguments)
        .map(|argument| CString::new(argument.as_bytes()))
        .collect::<Result<_, _>>()?;
    let mut pointers: Vec<_> = texts.iter().map(|text| text.as_ptr().cast_mut()).collect();
    let failed = || format!("cannot load the ClickHouse library {}", library.display());
    #[cfg(target_os = "linux")]
    crate::failed_writes::exit_on_failed_write();
    // SAFETY: the file is the ClickHouse library, whose initializers only set up its own globals. It is never unloaded.
    let library = unsafe { libloading::Library::new(library) }.with_context(failed)?;
    let library = Box::leak(Box::new(library));
    // SAFETY: the symbols have the types that the library's header `chdb.h` declares. The strings are NUL-terminated, their number is passed, and
    // they outlive the call. The result is null, or owns its error text and is never freed.
    let message = unsafe {
        let run = library
            .get::<Run>(b"chdb_query_cmdline\0")
            .with_context(failed)?;
        let error = library
            .get::<Error>(b"chdb_result_error\0")
            .with_context(failed)?;
        let result = run(c_int::try_from(pointers.len())?, pointers.as_mut_ptr());
        anyhow::ensure!(!result.is_null(), "ClickHouse ended without a result");
        let message = error(result);
        (!message.is_null()).then(|| CStr::from_ptr(message).to_string_lossy())
    };
    let Some(message) = message else {
        return Ok(());
    };
    anyhow::bail!(
        "{}",
        message.split(", Stack trace").next().unwrap_or_default()
    )
}
