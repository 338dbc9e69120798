//! The tables about stacks: what they consist of, their classes, groups and names, and which stacks still need a symbol file.

pub(super) mod former_groups;
pub(super) mod function_names;
pub(super) mod jank_groups;
pub(super) mod stored_stacks;
pub(super) mod symbolicated_stacks;
pub(super) mod texts;
