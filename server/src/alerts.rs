//! Alerts: rules, their evaluation, and the incidents and notifications that follow.
//!
//! A user writes a [`Rule`]. [`judge()`] evaluates it at a given time, with the same queries as the screens. It is stateless, so
//! [`replay()`] can run a rule on past data. [`Evaluator`] keeps the states and the incidents. [`notify`] sends notifications of them.

mod incident;
mod judge;
pub mod notify;
mod overrides;
mod rule;

pub use self::incident::evaluator::{Evaluator, Round};
pub use self::incident::preview::{Preview, PreviewedPeriod, preview};
pub use self::incident::preview_lines::Line;
pub use self::incident::replay::{Replay, Transition, replay};
pub use self::incident::skipped::{SkipReason, SkippedGroup};
pub use self::incident::states::{GroupStatus, Next, Observation, Timing, next};
pub use self::judge::contributors::Moved;
pub use self::judge::evidence::Evidence;
pub use self::judge::verdict::{Numbers, Sides, Verdict};
pub use self::judge::{Case, Judge, OpenGroup, judge};
pub use self::rule::action::{Action, ActionOutcome, SamplingRates};
pub use self::rule::mute_window::{MuteWindow, Weekday};
pub use self::rule::templates::templates;
pub use self::rule::validation::RuleFault;
pub use self::rule::{Compare, Condition, Effect, Metric, Rule, Worse};
