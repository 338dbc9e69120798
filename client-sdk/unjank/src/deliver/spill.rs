//! Keeps events that are in no batch yet on disk, so that a process that is killed loses few of them.
//!
//! The file has a line for the batch without events, and then one per event: the name of its list, a tab, and its JSON. A line that begins
//! with [`STALL`] has the stall that is under way, or `null` once there is none. Lines are written, but not synced: they outlive the
//! process, not the power. When the batch is sealed, the file is emptied. A batch that was sealed just before the end has the same id.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use unjank_protocol::{Batch, Jank, JankEnd, Signal};

use super::batch::{Packer, Sealed, counts, sealed};
use super::modules;

/// Begins a line with the stall that is under way.
const STALL: &str = "stall";
/// A larger file is not read: this is more than a full queue of spans takes.
const MOST_BYTES: u64 = 64 << 20;

/// The open file.
#[derive(Debug, Default)]
pub(crate) struct Spill {
    file: Option<File>,
    /// What is to be written next.
    lines: Vec<u8>,
    /// The size of the file.
    bytes: u64,
    /// Where the line of the stall begins, if it is the last one.
    last_stall: Option<u64>,
    /// Whether the file has the line of the batch.
    has_head: bool,
    /// Nothing is written until the file is emptied: it is the only copy of a batch, or writing failed.
    is_stopped: bool,
}

impl Spill {
    /// Opens the file, which [`recover`] has read, and empties it if its batch is safe. Without a folder, nothing is written.
    pub(crate) fn open(folder: Option<&Path>, is_safe: bool) -> Self {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let mut spill = Self {
            // If it cannot be opened, events are on disk when their batch is sealed.
            file: folder.and_then(|folder| options.open(path(folder)).ok()),
            is_stopped: true,
            ..Self::default()
        };
        if is_safe {
            spill.clear();
        }
        spill
    }

    fn is_open(&self) -> bool {
        self.file.is_some() && !self.is_stopped
    }

    /// Adds the line of the batch, unless the file has it.
    pub(crate) fn begin(&mut self, head: impl FnOnce() -> Option<Vec<u8>>) {
        if self.is_open()
            && !self.has_head
            && let Some(head) = head()
        {
            self.lines.extend(head);
            self.lines.push(b'\n');
            self.has_head = true;
        }
    }

    pub(crate) fn event(&mut self, signal: Signal, json: &[u8]) {
        if self.is_open() {
            self.last_stall = None;
            self.line(signal.as_str(), json);
        }
    }

    /// Writes the current stall, or that there is none, over the previous entry. A long stall therefore takes no more space.
    pub(crate) fn stall(&mut self, stall: Option<&Jank<'_>>) {
        let Ok(json) = serde_json::to_vec(&stall) else {
            return;
        };
        if !self.is_open() {
            return;
        }
        let last = self.last_stall.filter(|_| self.lines.is_empty());
        if let (Some(last), Some(file)) = (last, &mut self.file)
            && file.set_len(last).is_ok()
            && file.seek(SeekFrom::Start(last)).is_ok()
        {
            self.bytes = last;
        }
        self.last_stall = Some(self.bytes.saturating_add(self.lines.len() as u64));
        self.line(STALL, &json);
    }

    fn line(&mut self, name: &str, json: &[u8]) {
        self.lines.extend_from_slice(name.as_bytes());
        self.lines.push(b'\t');
        self.lines.extend_from_slice(json);
        self.lines.push(b'\n');
    }

    /// Hands what was added to the system.
    pub(crate) fn write(&mut self) {
        if let Some(file) = &mut self.file
            && !self.lines.is_empty()
        {
            // After a failure, half a line may be there, and the disk is probably full.
            self.is_stopped |= file.write_all(&self.lines).is_err();
            self.bytes = self.bytes.saturating_add(self.lines.len() as u64);
        }
        self.lines.clear();
    }

    /// Writes nothing more until the file is emptied.
    pub(crate) fn stop(&mut self) {
        self.lines.clear();
        self.is_stopped = true;
    }

    /// Empties the file, because its events are in a batch or were withdrawn.
    pub(crate) fn clear(&mut self) {
        self.lines.clear();
        if !self.has_head && !self.is_stopped {
            return;
        }
        (self.bytes, self.last_stall, self.has_head) = (0, None, false);
        if let Some(file) = &mut self.file {
            self.is_stopped = file.set_len(0).is_err() || file.rewind().is_err();
        }
    }
}

pub(crate) fn path(folder: &Path) -> PathBuf {
    folder.join("pending.jsonl")
}

/// Returns the batch that an earlier process had not sealed, with the stall during which it was killed.
pub(crate) fn recover(folder: &Path) -> Option<Sealed> {
    let path = path(folder);
    if std::fs::metadata(&path).ok()?.len() > MOST_BYTES {
        return None;
    }
    let text = String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned();
    // The last line may be incomplete.
    let (whole, _) = text.rsplit_once('\n')?;
    let (head, lines) = whole.split_once('\n').unwrap_or((whole, ""));
    let mut head: Batch<'_> = serde_json::from_str(head).ok()?;
    let mut stall = None;
    let mut lists: Vec<(Signal, Vec<&str>)> = Vec::new();
    for (name, json) in lines.lines().filter_map(|line| line.split_once('\t')) {
        match name {
            STALL => {
                stall = serde_json::from_str::<Option<Jank<'_>>>(json)
                    .ok()
                    .flatten();
            }
            "janks" => head.janks.extend(serde_json::from_str::<Jank<'_>>(json)),
            _ => add(&mut lists, name, json),
        }
    }
    // The process may have been killed after it was over, and before that was noted.
    let is_over = |stall: &Jank<'_>| {
        let mut known = head.janks.iter();
        known.any(|jank| jank.start == stall.start && jank.thread == stall.thread)
    };
    if let Some(mut stall) = stall.filter(|stall| !is_over(stall)) {
        stall.ended = JankEnd::Killed;
        head.janks.push(stall);
    }
    modules::share(&mut head);
    let mut events = counts(&head);
    let mut json = serde_json::to_string(&head).ok()?;
    json.pop();
    for (signal, list) in lists {
        events.push((signal, u32::try_from(list.len()).ok()?));
        json.push_str(&format!(",\"{}\":[{}]", signal.as_str(), list.join(",")));
    }
    if events.is_empty() {
        return None;
    }
    sealed(&head, json.as_bytes(), events, &mut Packer::default()).ok()
}

fn add<'l>(lists: &mut Vec<(Signal, Vec<&'l str>)>, name: &str, json: &'l str) {
    let signal = Signal::ALL.iter().find(|signal| signal.as_str() == name);
    // A line that is not JSON would make the whole batch unreadable.
    let Some(signal) = signal.filter(|_| serde_json::from_str::<&RawValue>(json).is_ok()) else {
        return;
    };
    match lists.iter_mut().find(|(one, _)| one == signal) {
        Some((_, list)) => list.push(json),
        None => lists.push((*signal, vec![json])),
    }
}
