//! Walks a stack from the innermost frame outwards and records the frames that decide its class.

use serde::Serialize;

use super::names::Names;
use super::qualified_name::qualified_name;
use super::rule::{Means, Rule};

/// The maximum number of distinct in-app frames that identify a group, including the culprit: enough to distinguish
/// callers, few enough that the depth of a call tree does not split a group.
pub(super) const MAX_IN_APP_FRAMES: usize = 6;

/// The role of a frame in the classification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The frame to blame: the app's innermost frame.
    Culprit,
    /// An app frame further out than the culprit. Helps to identify the group.
    InApp,
    /// The frame that determined the category.
    Category,
    /// The idle loop in which the stack was sampled.
    NotACause,
    /// A rule matches the frame, but it does not affect the class.
    Skipped,
    /// No rule matches the frame.
    Unclaimed,
}

/// The result of a walk. Frames are indexes into the stack.
#[derive(Default)]
pub(super) struct Walk<'r> {
    /// The innermost frame that is not ignored.
    pub(super) first: Option<usize>,
    /// The frame and the rule that determined the category.
    pub(super) category: Option<(usize, &'r Rule)>,
    pub(super) culprit: Option<usize>,
    /// The rule that marks the culprit as in-app. `None` if that is only assumed.
    pub(super) culprit_rule: Option<&'r Rule>,
    /// The distinct names of the culprit and the in-app frames further out, at most [`MAX_IN_APP_FRAMES`].
    pub(super) in_app: Vec<String>,
    /// The idle loop, if the stack was sampled in one.
    pub(super) idle: Option<usize>,
}

impl<'r> Walk<'r> {
    /// Processes the next frame outwards.
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
        // Ignored frames further in do not count: on iOS, the system call inside the idle loop is one.
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
        // Names are recorded once, so that neither the depth of a recursion nor its phase splits a group.
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

    /// Whether frames further out can no longer change the class.
    pub(super) fn is_decided(&self) -> bool {
        self.idle.is_some() || self.in_app.len() == MAX_IN_APP_FRAMES
    }
}
