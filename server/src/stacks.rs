//! Stacks: reading them from text, their identity, and the class a set of rules gives them.
//!
//! The walk is the innermost-frame rule of Meituan's Hertz: a stall's innermost frame is system code that unrelated
//! features share, its outermost is the looper, so the frame to blame is the first of the app's own, seen from within.
//! [`Rules`] say which frames are the app's own, which name a kind of work, and which say nothing.
//!
//! Pure: bytes in, values out. No files, no network, no clock, no database, no HTTP; a caller that needs any of these
//! brings the text here and takes the class away.

mod class;
mod comparison;
mod demangle;
mod explain;
mod identity;
mod installs;
mod matcher;
mod names;
mod parse;
mod prefix_tree;
mod rule;
mod rule_set;
mod rules;
mod rules_file;
mod stable_names;
mod walk;

#[cfg(test)]
mod built_in_rules;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod recorded_stacks;
#[cfg(test)]
mod worked_examples;

pub use self::class::Class;
pub use self::comparison::{Comparison, Group, List, Merge, Move, Part, Report, Split, Usage};
pub use self::explain::{Explanation, FrameVerdict};
pub use self::identity::stack_hash;
pub use self::installs::Installs;
pub use self::parse::{ParseError, parse_text};
pub use self::rule::{Means, Origin, RuleSummary};
pub use self::rule_set::{RuleSet, RulesId};
pub use self::rules::Rules;
pub use self::rules_file::RulesError;
pub use self::walk::Role;
