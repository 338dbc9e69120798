//! A set of rules, ready to classify.

use std::time::Instant;

use unjank_protocol::Frame;

use super::class::Class;
use super::explain::Explanation;
use super::matcher::Matcher;
use super::names::Names;
use super::rule::{Means, Origin, Rule};
use super::rules_file::{self, RulesError, RulesFile};
use super::walk::{walk, walk_while};

/// Memory of compiled expressions above which rules are slow.
const SLOW_BYTES: usize = 32 << 10;

/// The rules that come with the program, as their file.
const BUILT_IN: &str = include_str!("built_in.toml");

/// An ordered, immutable set of classification rules. The first rule that matches a frame wins.
///
/// Building one costs about a millisecond, using one allocates nothing until a class is made: build it once, share it
/// in an `Arc`.
#[derive(Debug)]
pub struct Rules {
    version: u32,
    rules: Vec<Rule>,
    matcher: Matcher,
    expressions_bytes: usize,
    /// The built-in rules follow those of the file.
    has_built_in: bool,
    /// What no rule claims is taken for the app's own code: because no rule says what is, or because the file says so.
    assumes_in_app: bool,
}

impl Rules {
    /// Reads a rule file. [`Rules::built_in_toml`] is an example that explains every key.
    ///
    /// # Errors
    /// When the text is not a rule file, or a rule is wrong: the error names the rule, its line and what to do.
    pub fn parse(toml: &str) -> Result<Self, RulesError> {
        let mut file = rules_file::read(toml, Origin::File)?;
        if file.built_in {
            file.rules
                .extend(rules_file::read(BUILT_IN, Origin::BuiltIn)?.rules);
        }
        Self::new(file)
    }

    /// The rules that come with the program: the system frames of Android, iOS, native code, Flutter and JavaScript, and
    /// the kinds of work that block main threads. They name no app, so what no rule claims counts as the app's own.
    #[must_use]
    pub fn built_in() -> Self {
        rules_file::read(BUILT_IN, Origin::BuiltIn)
            .and_then(Self::new)
            .expect("the built-in rules are part of the program, and a test reads them")
    }

    /// The text of the built-in rules, with comments that explain the format.
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
        let matcher = Matcher::new(&rules).map_err(|error| {
            RulesError::File(format!(
                "the rules are too large to be matched together: {error}"
            ))
        })?;
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

    /// The version the file states, 1 when it states none: for its readers. What classes are kept under is
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

    /// How many rules there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether frames that no rule claims count as the app's own: because no rule says what is, or because the file says
    /// so.
    #[must_use]
    pub fn assumes_in_app(&self) -> bool {
        self.assumes_in_app
    }

    /// Whether the expressions are so large that to match a frame takes longer than a request may take others' time.
    #[must_use]
    pub fn are_slow(&self) -> bool {
        self.expressions_bytes > SLOW_BYTES
    }

    /// The class of a stack, innermost frame first.
    #[must_use]
    pub fn classify(&self, frames: &[Frame<'_>]) -> Class {
        Class::of(frames, &walk(self, frames))
    }

    /// The same, or nothing if slow rules have not found the class by `end`.
    #[must_use]
    pub fn classify_until(&self, frames: &[Frame<'_>], end: Instant) -> Option<Class> {
        if !self.are_slow() {
            return Some(self.classify(frames));
        }
        let walk = walk_while(self, frames, || Instant::now() < end)?;
        Some(Class::of(frames, &walk))
    }

    /// The class of a stack, and for every frame why.
    #[must_use]
    pub fn explain(&self, frames: &[Frame<'_>]) -> Explanation {
        Explanation::of(self, frames)
    }

    /// Sentences on rules that can never be the first to match: probably mistakes, never errors.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        // A built-in rule that a file overrules is meant to be.
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
                "rule {} (line {}): {prefix:?} never matches, since rule {} (line {}) comes first and takes the same \
                 frames: move the narrower rule up",
                rule.index, rule.line, earlier.index, earlier.line
            ))
        };
        prefixes.filter_map(warning).collect()
    }

    /// Where the rules of its own were written.
    fn origin(&self) -> Origin {
        self.rules.first().map_or(Origin::File, |rule| rule.origin)
    }

    /// The first rule that matches a frame.
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
