//! One statement from its first byte to its last, on a thread of its own.
//!
//! A SELECT is told to write its answer into a pipe (`INTO OUTFILE`), which this end reads: so any format streams as one
//! document, with the engine waiting for a slow client. An INSERT's data is fed to it as it arrives. Everything else
//! runs to its end, having a small answer or none.

use std::io::{PipeReader, Read};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use crate::engine::{Engine, STACK};
use crate::exception::Exception;
use crate::ffi::{Connection, Counts, Statement};
use crate::input::Input;
use crate::output::{Output, Stopped};
use crate::request::{Request, is_setting_name};
use crate::running::{Running, Ticket};
use crate::sessions::SessionUse;
use crate::sql::{self, Head, InsertHead, Outline, StatementKind, quote_name, quote_text};

const SYNTAX_ERROR: u32 = 62;
/// The longest statement, without an INSERT's data.
const LONGEST_TEXT: usize = 16 << 20;
/// How much of an answer is read at a time.
const READ: usize = 256 << 10;

/// A statement with all it needs.
pub(crate) struct Job {
    pub(crate) engine: Arc<Engine>,
    pub(crate) request: Request,
    pub(crate) input: Input,
    pub(crate) ticket: Ticket,
    pub(crate) session: Option<SessionUse>,
}

impl From<Exception> for Stopped {
    fn from(exception: Exception) -> Self {
        Self::Failed(exception)
    }
}

fn engine_error(text: impl AsRef<str>) -> Stopped {
    Stopped::Failed(Exception::from_engine(text.as_ref()))
}

/// Runs the statement and gives its answer to `output`.
pub(crate) fn run(mut job: Job, mut output: Output) {
    match job.execute(&mut output) {
        Ok(counts) => {
            // The id and the session are free before the client can know that its statement has ended.
            drop(job);
            output.finish(counts);
        }
        Err(Stopped::Failed(exception)) => {
            drop(job);
            output.fail(exception);
        }
        Err(Stopped::ClientGone) => tracing::debug!("the client of a statement went away"),
    }
}

/// A statement's text as far as it had to be read, and what it is.
struct Text {
    /// Behind an INSERT's head, the data that was read with it.
    bytes: Vec<u8>,
    head: Head,
}

impl Job {
    fn execute(&mut self, output: &mut Output) -> Result<Counts, Stopped> {
        let text = self.read_text()?;
        let outline = match text.head {
            Head::Insert(_) | Head::BareInsert | Head::Unclear => None,
            Head::Statement => Some(checked_outline(&text.bytes)?),
        };
        self.check_reads_only(outline.as_ref())?;
        let held = self
            .session
            .as_mut()
            .and_then(|session| session.connection.take());
        let mut connection = match held {
            Some(connection) => connection,
            None => self.engine.connect(&self.ticket.running.token)?,
        };
        let restore = self.prepare(&mut connection)?;
        let result = match (text.head, outline) {
            (Head::Insert(head), _) => self.insert(&mut connection, &head, &text.bytes),
            (_, Some(outline)) => self.statement(&mut connection, &outline, &text.bytes, output),
            _ => Err(Exception::syntax("The INSERT is not complete").into()),
        };
        if let Some(session) = &mut self.session {
            session.connection = restored(connection, &restore);
        }
        result
    }

    /// Reads the text, and of an INSERT only so much that its data is known to begin.
    fn read_text(&mut self) -> Result<Text, Stopped> {
        let mut bytes = self.request.query.take().unwrap_or_default().into_bytes();
        let in_url = bytes.len();
        let url_head = sql::head(&bytes, true);
        if in_url > 0 {
            bytes.push(b'\n');
        }
        let mut whole = false;
        loop {
            let mut head = sql::head(&bytes, whole);
            let behind_url = bytes.get(in_url..).unwrap_or_default();
            if url_head == Head::BareInsert
                && (whole || !behind_url.trim_ascii().is_empty())
                && !sql::goes_on(behind_url)
            {
                let statement =
                    String::from_utf8_lossy(bytes.get(..in_url).unwrap_or_default()).into_owned();
                head = Head::Insert(InsertHead {
                    statement,
                    format: None,
                    data: in_url + 1,
                });
            }
            match head {
                Head::Insert(_) => return Ok(Text { bytes, head }),
                _ if whole => return Ok(Text { bytes, head }),
                _ if bytes.len() > LONGEST_TEXT => {
                    return Err(Exception::syntax(format!(
                        "The statement is longer than {LONGEST_TEXT} bytes"
                    ))
                    .into());
                }
                _ => whole = !self.input.read_more(&mut bytes)?,
            }
        }
    }

    /// Refuses what the request may not do. The engine itself sees to it where no session is in the way.
    fn check_reads_only(&mut self, outline: Option<&Outline>) -> Result<(), Exception> {
        let kind = outline.map_or(StatementKind::Change, |outline| outline.kind);
        if matches!(kind, StatementKind::Select | StatementKind::Look)
            && self.ticket.running.only_reads_for_nobody()
        {
            return Err(Exception::cancelled());
        }
        let asked = self
            .request
            .settings
            .iter()
            .any(|(name, value)| name == "readonly" && value != "0");
        if !(asked || self.request.reads_only) {
            return Ok(());
        }
        if kind == StatementKind::Change {
            return Err(Exception::new(
                164,
                "READONLY",
                "Cannot execute query in readonly mode. For queries over HTTP, method GET implies readonly. You should use method POST for modifying queries",
            ));
        }
        if self.session.is_some() {
            // Once set, it could not be taken back for the session's next request.
            self.request.settings.retain(|(name, _)| name != "readonly");
        } else if !asked {
            self.request.settings.retain(|(name, _)| name != "readonly");
            self.request
                .settings
                .push(("readonly".to_owned(), "2".to_owned()));
        }
        Ok(())
    }

    /// Sets the connection up for the request. Answers what a session must set back afterwards.
    fn prepare(&self, connection: &mut Connection) -> Result<Vec<String>, Stopped> {
        if let Some(database) = &self.request.database
            && (database != "default" || self.session.is_some())
        {
            command(connection, &format!("USE {}", quote_name(database)))?;
        }
        for role in &self.request.roles {
            command(connection, &format!("SET ROLE {}", quote_name(role)))?;
        }
        let mut changes = Vec::new();
        let mut last = None;
        for (name, value) in &self.request.settings {
            if !is_setting_name(name) {
                return Err(Exception::new(
                    115,
                    "UNKNOWN_SETTING",
                    format!("Unknown setting '{name}'"),
                )
                .into());
            }
            match name.as_str() {
                "log_comment" => changes.push(format!(
                    "log_comment = {}",
                    quote_text(&format!("{} {value}", self.ticket.running.token))
                )),
                // It forbids to set anything after it.
                "readonly" => last = Some(format!("SET readonly = {}", quote_text(value))),
                _ => changes.push(format!("{name} = {}", quote_text(value))),
            }
        }
        let mut restore = Vec::new();
        if self.session.is_some() {
            restore = current_values(connection, &self.request.settings)?;
            changes.insert(
                0,
                format!("log_comment = {}", quote_text(&self.ticket.running.token)),
            );
        }
        if !changes.is_empty() {
            command(connection, &format!("SET {}", changes.join(", ")))?;
        }
        if let Some(last) = last {
            command(connection, &last)?;
        }
        Ok(restore)
    }

    fn insert(
        &mut self,
        connection: &mut Connection,
        head: &InsertHead,
        bytes: &[u8],
    ) -> Result<Counts, Stopped> {
        let format = head
            .format
            .as_deref()
            .or(self.request.format.as_deref())
            .unwrap_or("Values");
        let statement = Statement {
            text: head.statement.as_bytes(),
            format,
            parameters: &self.request.parameters,
        };
        let mut insert = connection.insert(statement).map_err(engine_error)?;
        let first = bytes.get(head.data..).unwrap_or_default();
        let mut accepted = first.is_empty() || insert.append(first);
        let mut buffer = Vec::new();
        while accepted && self.input.read_more(&mut buffer)? {
            if self.ticket.running.is_stopped() {
                return Err(Exception::cancelled().into());
            }
            accepted = insert.append(&buffer);
            buffer.clear();
        }
        let counts = insert.finish().map_err(engine_error)?;
        if !accepted {
            return Err(Exception::from_engine(
                "The engine refused the data of the INSERT without a reason",
            )
            .into());
        }
        Ok(Counts {
            read_rows: counts.written_rows,
            read_bytes: counts.written_bytes,
            ..counts
        })
    }

    fn statement(
        &self,
        connection: &mut Connection,
        outline: &Outline,
        text: &[u8],
        output: &mut Output,
    ) -> Result<Counts, Stopped> {
        let format = self.answer_format(outline);
        output.set_format(format.to_owned());
        if outline.kind == StatementKind::Select {
            match self.select(connection, outline, text, output) {
                // Its own words for what is wrong, without the clause that was put into it.
                Err(Stopped::Failed(exception))
                    if exception.code == SYNTAX_ERROR && output.is_empty() => {}
                result => return result,
            }
        }
        let text = text.get(..outline.end).unwrap_or_default();
        let statement = Statement {
            text,
            format,
            parameters: &self.request.parameters,
        };
        let answer = connection.query(statement).map_err(engine_error)?;
        output.push(answer.bytes())?;
        Ok(answer.counts())
    }

    fn answer_format<'a>(&'a self, outline: &'a Outline) -> &'a str {
        let asked = outline.format.as_deref().or(self.request.format.as_deref());
        asked.unwrap_or("TabSeparated")
    }

    fn select(
        &self,
        connection: &mut Connection,
        outline: &Outline,
        text: &[u8],
        output: &mut Output,
    ) -> Result<Counts, Stopped> {
        let format = self.answer_format(outline);
        let (mut reader, writer) = std::io::pipe().map_err(out_of_handles)?;
        let clause = format!(" INTO OUTFILE '{PIPES}/{}' TRUNCATE ", writer.as_raw_fd());
        let mut whole = text.get(..outline.output).unwrap_or_default().to_vec();
        whole.extend_from_slice(clause.as_bytes());
        whole.extend_from_slice(text.get(outline.output..outline.end).unwrap_or_default());
        let added = if outline.format.is_none() {
            format!("FORMAT {format}")
        } else {
            String::new()
        };
        whole.extend_from_slice(added.as_bytes());
        let statement = Statement {
            text: &whole,
            format,
            parameters: &self.request.parameters,
        };
        std::thread::scope(|scope| {
            let selecting = std::thread::Builder::new()
                .name("select".to_owned())
                .stack_size(STACK)
                .spawn_scoped(scope, move || {
                    let answer = connection.query(statement);
                    // The last handle to the writing end: now the reading end comes to its end.
                    drop(writer);
                    answer.map(|answer| answer.counts())
                });
            let selecting = selecting.map_err(out_of_handles)?;
            let delivered = deliver(&mut reader, output, &self.engine, &self.ticket.running);
            let selected = selecting
                .join()
                .unwrap_or_else(|_| Err("The thread of the SELECT panicked".to_owned()));
            delivered?;
            selected.map_err(|error| {
                engine_error(
                    error
                        .replace(&format!("{clause}{added}"), " ")
                        .replace(clause.trim(), ""),
                )
            })
        })
    }
}

/// Where this process's open files have names.
const PIPES: &str = if cfg!(target_os = "linux") {
    "/proc/self/fd"
} else {
    "/dev/fd"
};

fn out_of_handles(error: impl std::fmt::Display) -> Stopped {
    Exception::new(
        439,
        "CANNOT_SCHEDULE_TASK",
        format!("The statement cannot be started: {error}"),
    )
    .into()
}

/// Reads the answer to its end and hands it on. When nobody wants it any more, has the statement stopped.
fn deliver(
    reader: &mut PipeReader,
    output: &mut Output,
    engine: &Engine,
    running: &Arc<Running>,
) -> Result<(), Stopped> {
    let mut buffer = vec![0; READ];
    let mut delivered = Ok(());
    loop {
        let count = match reader.read(&mut buffer) {
            Ok(0) => return delivered,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(out_of_handles(error)),
        };
        if delivered.is_ok() {
            delivered = output.push(buffer.get(..count).unwrap_or_default());
            if delivered.is_err() {
                engine.stop(running);
            }
        }
    }
}

fn checked_outline(text: &[u8]) -> Result<Outline, Exception> {
    let outline = sql::outline(text);
    if outline.kind == StatementKind::Empty {
        return Err(Exception::syntax("Empty query"));
    }
    if outline.kind == StatementKind::Nonsense {
        return Err(Exception::syntax(format!(
            "Syntax error: failed at position 1: {}",
            String::from_utf8_lossy(text.get(..40).unwrap_or(text))
        )));
    }
    if outline.several {
        return Err(Exception::syntax(
            "Syntax error (Multi-statements are not allowed)",
        ));
    }
    if outline.names_client_file {
        return Err(Exception::not_implemented(
            "INTO OUTFILE and FROM INFILE name files of the client's, which an HTTP request has not",
        ));
    }
    Ok(outline)
}

/// Runs a statement without an answer.
fn command(connection: &mut Connection, text: &str) -> Result<(), Stopped> {
    connection
        .query(Statement {
            text: text.as_bytes(),
            format: "Null",
            parameters: &[],
        })
        .map(drop)
        .map_err(engine_error)
}

/// What the settings are now, as statements that set them so again.
fn current_values(
    connection: &mut Connection,
    settings: &[(String, String)],
) -> Result<Vec<String>, Stopped> {
    if settings.is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<String> = settings.iter().map(|(name, _)| quote_text(name)).collect();
    let text = format!(
        "SELECT 'SET ' || name || ' = ' || if(changed, '\\'' || replaceAll(replaceAll(value, '\\\\', '\\\\\\\\'), '\\'', '\\\\\\'') || '\\'', 'DEFAULT') FROM system.settings WHERE name IN ({})",
        names.join(", ")
    );
    let answer = connection
        .query(Statement {
            text: text.as_bytes(),
            format: "RowBinary",
            parameters: &[],
        })
        .map_err(engine_error)?;
    let mut values = Vec::new();
    let mut rest = answer.bytes();
    while let Some((value, behind)) = take_string(rest) {
        values.push(value);
        rest = behind;
    }
    Ok(values)
}

/// The next string of a `RowBinary` answer.
fn take_string(bytes: &[u8]) -> Option<(String, &[u8])> {
    let mut length = 0_usize;
    for (index, &byte) in bytes.iter().enumerate().take(4) {
        length |= usize::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let (value, behind) = bytes.get(index + 1..)?.split_at_checked(length)?;
            return Some((String::from_utf8_lossy(value).into_owned(), behind));
        }
    }
    None
}

/// A session's connection with its settings set back, or none when they cannot be.
fn restored(mut connection: Connection, restore: &[String]) -> Option<Connection> {
    for text in restore {
        if command(&mut connection, text).is_err() {
            tracing::warn!(
                text,
                "a session ends early: a setting of one request could not be taken back"
            );
            return None;
        }
    }
    Some(connection)
}
