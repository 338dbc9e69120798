//! A compiled set of rules that classifies stacks.

use std::collections::BTreeSet;
use std::time::Instant;

use unjank_protocol::Frame;

use super::class::Class;
use super::matcher::Matcher;
use super::names::Names;
use super::rule::{Means, Origin, Rule};
use super::rules_file::{self, RulesError, RulesFile};
use super::walk::Walk;

/// Rules whose compiled regular expressions use more memory than this are slow.
const SLOW_BYTES: usize = 32 << 10;

/// The text of the rules that ship with the program.
const BUILT_IN: &str = include_str!("built_in.toml");

/// An ordered, immutable set of classification rules. The first rule that matches a frame wins.
///
/// Building one takes about a millisecond; classifying allocates nothing until it builds the class. Build it once and
/// share it in an `Arc`.
#[derive(Debug)]
pub struct Rules {
    version: u32,
    rules: Vec<Rule>,
    matcher: Matcher,
    expressions_bytes: usize,
    /// Whether the built-in rules follow those of the file.
    has_built_in: bool,
    /// Whether frames that no rule matches count as the app's own: the file's setting, or else true if no rule means
    /// `in_app`.
    assumes_in_app: bool,
}

impl Rules {
    /// Parses a rule file. [`Rules::built_in_toml`] is an example that explains every key.
    ///
    /// # Errors
    /// If the text is not a rule file, or a rule is invalid. The error names the rule, its line and what to do.
    pub fn parse(toml: &str) -> Result<Self, RulesError> {
        let mut file = rules_file::read(toml, Origin::File)?;
        if file.built_in {
            file.rules
                .extend(rules_file::read(BUILT_IN, Origin::BuiltIn)?.rules);
        }
        Self::new(file)
    }

    /// Returns the rules that ship with the program: the system frames of Android, iOS, native code, Flutter and
    /// JavaScript, and the kinds of work that block main threads. They name no app, so frames that no rule matches
    /// count as the app's own.
    #[must_use]
    pub fn built_in() -> Self {
        rules_file::read(BUILT_IN, Origin::BuiltIn)
            .and_then(Self::new)
            .expect("a test parses the built-in rules")
    }

    /// Returns the text of the built-in rules, whose comments explain the format.
    #[must_use]
    pub fn built_in_toml() -> &'static str {
        BUILT_IN
    }

    fn new(file: RulesFile) -> Result<Self, RulesError> {
        let RulesFile {
            version,
            expressions_bytes,
            built_in,
            rules,
            ..
        } = file;
        let matcher = Matcher::new(&rules)
            .map_err(|error| RulesError::File(format!("the rules are too large: {error}")))?;
        let says_in_app = rules.iter().any(|rule| rule.means == Means::InApp);
        let assumes_in_app = file.assume_in_app.unwrap_or(!says_in_app);
        Ok(Self {
            version,
            rules,
            matcher,
            expressions_bytes,
            has_built_in: built_in,
            assumes_in_app,
        })
    }

    /// Returns the version stated in the file, by default 1. It is informational only: classes are stored under
    /// [`RulesId`](super::RulesId).
    #[must_use]
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Whether the built-in rules follow those of the file.
    #[must_use]
    pub fn has_built_in(&self) -> bool {
        self.has_built_in
    }

    /// Returns the number of rules.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether frames that no rule matches count as the app's own: the file's setting, or else true if no rule means
    /// `in_app`.
    #[must_use]
    pub fn assumes_in_app(&self) -> bool {
        self.assumes_in_app
    }

    /// Whether the regular expressions are so large that matching a frame would delay other requests.
    #[must_use]
    pub fn are_slow(&self) -> bool {
        self.expressions_bytes > SLOW_BYTES
    }

    /// Classifies a stack, given innermost frame first.
    #[must_use]
    pub fn classify(&self, frames: &[Frame<'_>]) -> Class {
        Class::new(frames, &self.walk(frames))
    }

    /// Whether a rule ignores a frame, because it belongs to the system, a language or a library.
    #[must_use]
    pub fn ignores(&self, frame: &Frame<'_>) -> bool {
        let rule = self.first(&Names::new(frame));
        rule.is_some_and(|rule| rule.means == Means::Ignore)
    }

    /// Classifies a stack like [`Self::classify`]. Returns `None` if slow rules have not finished by `end`.
    #[must_use]
    pub fn classify_until(&self, frames: &[Frame<'_>], end: Instant) -> Option<Class> {
        if !self.are_slow() {
            return Some(self.classify(frames));
        }
        let walk = self.walk_while(frames, || Instant::now() < end)?;
        Some(Class::new(frames, &walk))
    }

    /// Returns warnings about rules that can never match first. These are probably mistakes, but not errors.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        // Overriding a built-in rule is intentional, so only the file's own rules are checked.
        let own = self
            .rules
            .iter()
            .enumerate()
            .filter(|(_, rule)| rule.origin == self.origin());
        let prefixes = own.flat_map(|(index, rule)| {
            rule.pattern
                .prefixes()
                .map(move |prefix| (index, rule, prefix))
        });
        let warning = |(index, rule, prefix): (usize, &Rule, &str)| {
            let earlier = self.matcher.shadow(&self.rules, index, prefix)?;
            let earlier = self.rules.get(earlier)?;
            Some(format!(
                "rule {} (line {}): {prefix:?} never matches, because rule {} (line {}) comes first and matches the same \
                 frames; move the narrower rule up",
                rule.index, rule.line, earlier.index, earlier.line
            ))
        };
        prefixes.filter_map(warning).collect()
    }

    /// Returns the owners that rules name, in alphabetical order.
    #[must_use]
    pub fn owners(&self) -> BTreeSet<&str> {
        let owners = self.rules.iter().map(|rule| rule.owner.as_str());
        owners.filter(|owner| !owner.is_empty()).collect()
    }

    /// Returns the origin of the set's own rules.
    fn origin(&self) -> Origin {
        self.rules.first().map_or(Origin::File, |rule| rule.origin)
    }

    /// Walks a stack until its class is decided.
    pub(super) fn walk(&self, frames: &[Frame<'_>]) -> Walk<'_> {
        self.walk_while(frames, || true).unwrap_or_default()
    }

    /// Walks a stack like [`Self::walk`]. Returns `None` as soon as `has_time` returns false before a frame.
    fn walk_while(&self, frames: &[Frame<'_>], has_time: impl Fn() -> bool) -> Option<Walk<'_>> {
        let mut walk = Walk::default();
        for (index, frame) in frames.iter().enumerate() {
            if !has_time() {
                return None;
            }
            let names = Names::new(frame);
            walk.step(index, &names, self.first(&names), self.assumes_in_app());
            if walk.is_decided() {
                break;
            }
        }
        Some(walk)
    }

    /// Returns the first rule that matches a frame.
    pub(super) fn first(&self, names: &Names<'_>) -> Option<&Rule> {
        self.matcher
            .first(&self.rules, names)
            .and_then(|index| self.rules.get(index))
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> &[Rule] {
        &self.rules
    }
}
