//! Stacks: parses them from text, computes their identity, and classifies them by a set of rules.
//!
//! The walk implements the innermost-frame rule of Meituan's Hertz. A stall's innermost frame is system code that
//! unrelated features share, and its outermost frame is the looper. The frame to blame is therefore the innermost frame
//! of the app's own code. [`Rules`] mark the app's own frames, the frames that name a kind of work, and the frames to
//! skip.
//!
//! This module is pure: no files, network, clock, database or HTTP. The caller passes in text and gets back a class.

mod class;
mod comparison;
mod demangle;
mod explain;
mod function_key;
mod group;
mod installs;
mod matcher;
mod names;
mod needs;
mod owner_rule;
mod parse;
mod prefix_tree;
mod qualified_name;
mod rule;
mod rule_set;
mod rules;
mod rules_file;
mod script_names;
mod stable_names;
mod stack_hash;
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
pub use self::demangle::readable_function;
pub use self::explain::{Explanation, FrameVerdict};
pub use self::function_key::function_key;
pub use self::installs::Installs;
pub use self::names::top_level_code;
pub use self::needs::{SymbolNeed, needs_symbols};
pub use self::owner_rule::{NoOwnerRule, OwnerRule, owner_rule};
pub use self::parse::{ParseError, parse_text};
pub use self::rule::{Means, Origin, RuleSummary};
pub use self::rule_set::{RuleSet, RulesId};
pub use self::rules::Rules;
pub use self::rules_file::RulesError;
pub use self::walk::Role;
pub use crate::stack_hash::stack_hash;
