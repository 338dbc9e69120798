//! The id of a group: which stacks are the same problem. A change here moves all stacks to other groups.

use unjank_foundation::fingerprint::fingerprint;

/// Returns the [`fingerprint`] of the kind of group, the category, and the names of the frames, culprit first. Never 0.
pub(super) fn group_id(kind: &str, category: &str, names: &[String]) -> u64 {
    let mut parts = vec![kind.as_bytes(), category.as_bytes()];
    parts.extend(names.iter().map(String::as_bytes));
    fingerprint(&parts).max(1)
}
