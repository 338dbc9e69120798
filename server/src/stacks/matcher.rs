//! The first rule that matches a frame, quickly.
//!
//! Prefixes, which is nearly all rules, are one automaton. It finds the longest prefix that stands at the start of a
//! name; every other prefix that stands there too is then a prefix of that one, known beforehand, so each pattern
//! carries the list of all rules that hold once it is found, in the order of the file. That keeps "the first rule
//! wins" exact although the automaton reports one match. Globs and regular expressions on classes share one set, which is asked only when
//! one of its rules could still come before the best prefix.

use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, BuildError, Input, MatchKind, StartKind};
use regex::RegexSet;

use super::names::Names;
use super::rule::{On, Pattern, Rule};

/// Finds the first rule that matches a frame.
#[derive(Debug)]
pub(super) struct Matcher {
    classes: Side,
    modules: Side,
}

impl Matcher {
    pub(super) fn new(rules: &[Rule]) -> Result<Self, MatcherError> {
        Ok(Self { classes: Side::new(rules, On::Class)?, modules: Side::new(rules, On::Module)? })
    }

    /// The index of the first rule that matches.
    pub(super) fn first(&self, rules: &[Rule], names: &Names<'_>) -> Option<usize> {
        let mut best = self.classes.first(rules, names, names.class_or_function(), usize::MAX);
        let modules = [Some(names.module).filter(|module| !module.is_empty()), names.module_file()];
        for module in modules.into_iter().flatten() {
            best = self.modules.first(rules, names, module, best);
        }
        (best != usize::MAX).then_some(best)
    }

    /// The earlier rule that takes everything from a prefix of the rule at `index`; nothing when there is none.
    pub(super) fn shadow(&self, rules: &[Rule], index: usize, prefix: &str) -> Option<usize> {
        let rule = rules.get(index)?;
        let mut shadow = None;
        for (side, on) in [(&self.classes, On::Class), (&self.modules, On::Module)] {
            if rule.looks_at(on) {
                shadow = Some(side.chain(prefix).last().copied().filter(|last| *last < index)?);
            }
        }
        shadow
    }
}

/// Why rules could not be made into a matcher.
#[derive(Debug, thiserror::Error)]
pub(super) enum MatcherError {
    #[error(transparent)]
    Prefixes(#[from] BuildError),
    #[error(transparent)]
    Patterns(#[from] regex::Error),
}

/// The patterns that look at one part of a frame.
#[derive(Debug)]
struct Side {
    prefixes: Option<AhoCorasick>,
    /// By pattern of the automaton: the rules that hold when it is found.
    chains: Vec<Vec<usize>>,
    /// The rules that need no pattern.
    always: Vec<usize>,
    set: RegexSet,
    /// By pattern of the set: its rule. Ascending.
    set_rules: Vec<usize>,
}

impl Side {
    fn new(rules: &[Rule], on: On) -> Result<Self, MatcherError> {
        let here = || rules.iter().enumerate().filter(move |(_, rule)| rule.looks_at(on));
        let mut prefixes: Vec<&str> = here().flat_map(|(_, rule)| rule.pattern.prefixes()).map(String::as_str).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        let holds = |name: Option<&str>, rule: &Rule| match (&rule.pattern, name) {
            (Pattern::Any, _) => true,
            (Pattern::Prefixes(prefixes), Some(name)) => prefixes.iter().any(|prefix| name.starts_with(prefix)),
            _ => false,
        };
        let chain = |name: Option<&str>| {
            let mut chain = Vec::new();
            for (index, rule) in here().filter(|(_, rule)| holds(name, rule)) {
                chain.push(index);
                if rule.is_unconditional() {
                    break;
                }
            }
            chain
        };
        let (set_rules, patterns): (Vec<usize>, Vec<String>) =
            here().flat_map(|(index, rule)| rule.pattern.regexes().into_iter().map(move |regex| (index, regex))).unzip();
        Ok(Self {
            chains: prefixes.iter().map(|prefix| chain(Some(prefix))).collect(),
            always: chain(None),
            prefixes: automaton(&prefixes)?,
            set: RegexSet::new(&patterns)?,
            set_rules,
        })
    }

    /// The first rule before `best` that matches, else `best`.
    fn first(&self, rules: &[Rule], names: &Names<'_>, subject: &str, best: usize) -> usize {
        let accepts = |index: usize| rules.get(index).is_some_and(|rule| rule.accepts(names));
        let mut best = best;
        if let Some(found) = self.chain(subject).iter().take_while(|index| **index < best).find(|index| accepts(**index)) {
            best = *found;
        }
        // Function and file are cheaper to look at than a regular expression.
        if self.set_rules.iter().take_while(|index| **index < best).any(|index| accepts(*index)) {
            let matches = self.set.matches(subject).into_iter().filter_map(|pattern| self.set_rules.get(pattern));
            if let Some(found) = matches.take_while(|index| **index < best).find(|index| accepts(**index)) {
                best = *found;
            }
        }
        best
    }

    fn chain(&self, subject: &str) -> &[usize] {
        let longest = self.prefixes.as_ref().and_then(|automaton| {
            let input = Input::new(subject).anchored(Anchored::Yes);
            automaton.try_find(input).ok().flatten()
        });
        longest.and_then(|found| self.chains.get(found.pattern().as_usize())).unwrap_or(&self.always)
    }
}

/// Longest match, anchored at the start; nothing when there are no prefixes.
fn automaton(prefixes: &[&str]) -> Result<Option<AhoCorasick>, BuildError> {
    if prefixes.is_empty() {
        return Ok(None);
    }
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .start_kind(StartKind::Anchored)
        .kind(Some(AhoCorasickKind::DFA))
        .build(prefixes)
        .map(Some)
}
