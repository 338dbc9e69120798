//! Rules for a whole document, beyond the range of each key.

use hashbrown::HashSet;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use unjank_protocol::JankStrategy;
use unjank_protocol::config::Document;

use super::fault::{Fault, FaultCode};
use super::schema::MAX_DOCUMENT_BYTES;

/// The monitors built into every SDK.
pub(super) const MONITORS: [&str; 4] = ["fps", "cpu", "memory", "battery"];

/// Reads the document from a JSON value whose shape has been checked, and checks that its values are consistent.
///
/// # Errors
/// Returns every fault, with paths below `path`.
pub(super) fn document(value: &Value, path: &str) -> Result<Document, Vec<Fault>> {
    let document = Document::deserialize(value)
        .map_err(|error| vec![Fault::new(path, FaultCode::WrongType, error.to_string())])?;
    let mut faults = Vec::new();
    strategies(&document, path, &mut faults);
    let pages = document.pages.iter().map(|page| page.page.as_str());
    duplicates(pages, &format!("{path}.pages"), &mut faults);
    let sources = document.traffic.sources.iter();
    let sources = sources.map(|source| source.source.as_str());
    duplicates(sources, &format!("{path}.traffic.sources"), &mut faults);
    if let Some(bytes) = bytes_of(&document).filter(|bytes| *bytes > MAX_DOCUMENT_BYTES) {
        let message = format!(
            "the document is {bytes} bytes long; the limit is {MAX_DOCUMENT_BYTES}, because every device downloads it"
        );
        faults.push(Fault::new(path, FaultCode::TooLarge, message));
    }
    if faults.is_empty() {
        Ok(document)
    } else {
        Err(faults)
    }
}

/// Rejects strategies whose stalls do not fit into their period, because those never hold.
fn strategies(document: &Document, path: &str, faults: &mut Vec<Fault>) {
    fitting(
        &document.jank.strategies,
        &format!("{path}.jank.strategies"),
        faults,
    );
    for (index, one) in document.jank.overrides.iter().enumerate() {
        let path = format!("{path}.jank.overrides[{index}].strategies");
        fitting(&one.strategies, &path, faults);
    }
}

fn fitting(strategies: &[JankStrategy], path: &str, faults: &mut Vec<Fault>) {
    for (index, strategy) in strategies.iter().enumerate() {
        let stalls_ms = u64::from(strategy.count) * u64::from(strategy.threshold_ms);
        if strategy.count > 1 && u64::from(strategy.period_ms) < stalls_ms {
            let message = format!(
                "{} stalls of {} ms do not fit into a period of {} ms",
                strategy.count, strategy.threshold_ms, strategy.period_ms
            );
            let path = format!("{path}[{index}].period_ms");
            faults.push(Fault::new(path, FaultCode::Inconsistent, message));
        }
    }
}

fn duplicates<'a>(names: impl Iterator<Item = &'a str>, path: &str, faults: &mut Vec<Fault>) {
    let mut seen = HashSet::new();
    for (index, name) in names.enumerate() {
        if !seen.insert(name) {
            let message = format!("`{name}` is already in the list");
            faults.push(Fault::new(
                format!("{path}[{index}]"),
                FaultCode::Duplicate,
                message,
            ));
        }
    }
}

fn bytes_of(document: &impl Serialize) -> Option<usize> {
    serde_json::to_vec(document).ok().map(|bytes| bytes.len())
}
