//! Incidents: the states of groups, the rounds that evaluate rules and open or resolve incidents, and replays of rules on past data.

pub(crate) mod evaluator;
pub(crate) mod link;
mod moved_groups;
mod moved_mutes;
pub(crate) mod preview;
pub(crate) mod preview_lines;
pub(crate) mod replay;
pub(crate) mod skipped;
pub(crate) mod states;
