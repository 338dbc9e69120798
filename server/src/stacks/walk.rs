//! The walk from the innermost frame outwards, and what it remembers.

use serde::Serialize;
use unjank_protocol::Frame;

use super::class::qualified_name;
use super::names::Names;
use super::rule::{Means, Rule};
use super::rules::Rules;

/// How many different in-app frames a group looks at, culprit included: enough to tell callers apart, few enough that
/// the depth of a call tree does not split a group.
pub(super) const MAX_IN_APP_FRAMES: usize = 6;

/// What a frame turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It is to blame: the innermost frame of the app.
    Culprit,
    /// The app's own, further out than the culprit: tells groups apart.
    InApp,
    /// It gave the category.
    Category,
    /// It is the idle loop the stack was caught in.
    NotACause,
    /// A rule claims it, and it changes nothing.
    Skipped,
    /// No rule claims it.
    Unclaimed,
}

/// What a walk found. Frames are indexes into the stack.
#[derive(Default)]
pub(super) struct Walk<'r> {
    /// The innermost frame that is not ignored.
    pub(super) first: Option<usize>,
    /// The frame and the rule that gave the category.
    pub(super) category: Option<(usize, &'r Rule)>,
    pub(super) culprit: Option<usize>,
    /// The rule that calls the culprit in-app; nothing when that is only assumed.
    pub(super) culprit_rule: Option<&'r Rule>,
    /// The names of the culprit and of the in-app frames further out, each once, bounded.
    pub(super) in_app: Vec<String>,
    /// The idle loop, when the stack was caught in one.
    pub(super) idle: Option<usize>,
}

/// Walks no further than the class needs.
pub(super) fn walk<'r>(rules: &'r Rules, frames: &[Frame<'_>]) -> Walk<'r> {
    walk_while(rules, frames, || true).unwrap_or_default()
}

/// The same, or nothing if `has_time` says no before a frame.
pub(super) fn walk_while<'r>(
    rules: &'r Rules,
    frames: &[Frame<'_>],
    has_time: impl Fn() -> bool,
) -> Option<Walk<'r>> {
    let mut walk = Walk::default();
    for (index, frame) in frames.iter().enumerate() {
        if !has_time() {
            return None;
        }
        let names = Names::of(frame);
        walk.step(index, &names, rules.first(&names), rules.assumes_in_app());
        if walk.is_decided() {
            break;
        }
    }
    Some(walk)
}

impl<'r> Walk<'r> {
    /// Takes in the next frame outwards.
    pub(super) fn step(
        &mut self,
        index: usize,
        names: &Names<'_>,
        rule: Option<&'r Rule>,
        assumes_in_app: bool,
    ) -> Role {
        let means = match rule {
            Some(rule) => rule.means,
            None if assumes_in_app && !names.is_nameless() => Means::InApp,
            None => {
                self.first.get_or_insert(index);
                return Role::Unclaimed;
            }
        };
        if means == Means::Ignore || self.idle.is_some() {
            return Role::Skipped;
        }
        // Ignored frames further in do not count: the wait inside the loop is one, on iOS.
        let innermost = *self.first.get_or_insert(index) == index;
        match (means, rule) {
            (Means::InApp, rule) => self.in_app_frame(index, names, rule),
            (Means::Category, Some(rule)) if self.category.is_none() && self.culprit.is_none() => {
                self.category = Some((index, rule));
                Role::Category
            }
            (Means::NotACause, _) if innermost => {
                self.idle = Some(index);
                Role::NotACause
            }
            _ => Role::Skipped,
        }
    }

    fn in_app_frame(&mut self, index: usize, names: &Names<'_>, rule: Option<&'r Rule>) -> Role {
        // Each name once: neither the depth of a recursion nor its phase splits a group.
        if self.in_app.len() < MAX_IN_APP_FRAMES {
            let name = qualified_name(names);
            if !self.in_app.contains(&name) {
                self.in_app.push(name);
            }
        }
        if self.culprit.is_some() {
            return Role::InApp;
        }
        self.culprit = Some(index);
        self.culprit_rule = rule;
        Role::Culprit
    }

    /// Whether frames further out can change nothing any more.
    fn is_decided(&self) -> bool {
        self.idle.is_some() || self.in_app.len() == MAX_IN_APP_FRAMES
    }
}
