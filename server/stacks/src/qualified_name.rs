//! The names of frames that identify a group.

use super::names::Names;
use super::stable_names::{stable_class, stable_function};

/// Returns `class.function` without counters and generated parts: a name that is stable across releases.
pub(super) fn qualified_name(names: &Names<'_>) -> String {
    let class = stable_class(names.shown_class());
    let function = stable_function(names.function());
    joined(&class, &function).unwrap_or_else(|| names.image())
}

pub(super) fn joined(class: &str, function: &str) -> Option<String> {
    match (class.is_empty(), function.is_empty()) {
        (true, true) => None,
        (true, false) => Some(function.to_owned()),
        (false, true) => Some(class.to_owned()),
        (false, false) if class.contains("::") => Some(format!("{class}::{function}")),
        (false, false) => Some(format!("{class}.{function}")),
    }
}
