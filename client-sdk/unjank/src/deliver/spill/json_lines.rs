//! Reads the file of versions that kept events as JSON: a line for the batch without events, and then one for each event: the name of its list, a
//! tab, and its JSON. The list [`STALL`] has the stall that is under way, or `null`.

use std::path::{Path, PathBuf};

use serde_json::value::RawValue;
use unjank_protocol::{Batch, Jank, Signal};

use super::{add_stall, stall_of};
use crate::deliver::batch::{Packer, Sealed, counts, sealed};
use crate::deliver::form::Form;
use crate::deliver::modules;

/// Begins a line with the stall that is under way.
const STALL: &str = "stall";

pub(super) fn path(folder: &Path) -> PathBuf {
    folder.join("pending.jsonl")
}

pub(super) fn recovered(bytes: &[u8]) -> Option<Sealed> {
    let text = String::from_utf8_lossy(bytes);
    // The last line may be incomplete.
    let (whole, _) = text.rsplit_once('\n')?;
    let (head, lines) = whole.split_once('\n').unwrap_or((whole, ""));
    let mut head: Batch<'_> = serde_json::from_str(head).ok()?;
    let mut stall = None;
    let mut lists: Vec<(Signal, Vec<&str>)> = Vec::new();
    for (name, json) in lines.lines().filter_map(|line| line.split_once('\t')) {
        match name {
            STALL => stall = stall_of(json.as_bytes()),
            "janks" => head.janks.extend(serde_json::from_str::<Jank<'_>>(json)),
            _ => add(&mut lists, name, json),
        }
    }
    add_stall(&mut head, stall);
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
    let json = (Form::Json, json.into_bytes());
    sealed(&head, json, events, &mut Packer::default()).ok()
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
