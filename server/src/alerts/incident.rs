//! Incidents: the states of groups, the rounds that evaluate rules and open or resolve incidents, and replays of rules on past data.

pub(in crate::alerts) mod evaluator;
pub(in crate::alerts) mod link;
mod moved_groups;
pub(in crate::alerts) mod preview;
pub(in crate::alerts) mod preview_lines;
pub(in crate::alerts) mod replay;
pub(in crate::alerts) mod skipped;
pub(in crate::alerts) mod states;
