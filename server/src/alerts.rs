//! Alerts: rules, their evaluation, and the incidents and notifications that follow.
//!
//! A user writes a [`Rule`]. [`judge()`] evaluates it at a given time, with the same queries as the screens. It is stateless, so
//! [`replay()`] can run a rule on past data. [`Evaluator`] keeps the states and the incidents. [`notify`] sends notifications of them.

mod absence;
mod act;
mod action;
mod check;
mod cohort;
mod comparison;
mod devices;
mod evaluator;
mod evidence;
mod judge;
mod link;
mod machine;
mod moved;
mod mute_window;
pub mod notify;
mod place;
mod raise;
mod replay;
mod rule;
mod templates;
mod threshold;
mod verdict;
mod versions;

pub use self::action::{Action, ActionOutcome, SamplingRates};
pub use self::check::RuleFault;
pub use self::evaluator::{Evaluator, Round};
pub use self::evidence::Evidence;
pub use self::judge::{Case, Judge, OpenGroup, judge};
pub use self::machine::{GroupStatus, Next, Observation, Timing, next};
pub use self::moved::Moved;
pub use self::mute_window::{MuteWindow, Weekday};
pub use self::replay::{Replay, ReplayProgress, Transition, replay};
pub use self::rule::{Compare, Condition, Effect, Metric, Rule, Worse};
pub use self::templates::templates;
pub use self::verdict::{Numbers, Sides, Verdict};
