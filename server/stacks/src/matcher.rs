//! Finds the first rule that matches a frame, quickly.
//!
//! Nearly all rules are prefixes, and all prefixes are in one tree. The tree finds the longest prefix of a name; every
//! other prefix of the name is a prefix of that one and so known in advance. Each prefix therefore carries the list of
//! all rules that match when it is found, in file order. A single lookup thus keeps "the first rule wins" exact.
//! Regular expressions are in one set, evaluated only if one of its rules could still precede the match by prefix.

use regex::RegexSet;

use super::names::Names;
use super::prefix_tree::PrefixTree;
use super::rule::{On, Pattern, Rule};

/// Finds the first rule that matches a frame.
#[derive(Debug)]
pub(super) struct Matcher {
    classes: Side,
    modules: Side,
}

/// The rules are too large for one matcher.
#[derive(Debug, thiserror::Error)]
pub(super) enum TooLarge {
    #[error(transparent)]
    Expressions(#[from] regex::Error),
    #[error(
        "too many rules have prefixes that begin with the prefixes of others, such as `a`, `ab`, `abc` and so on"
    )]
    Prefixes,
}

/// The maximum number of rules in all chains, at 8 bytes each.
const MOST_CHAINED: usize = 1 << 20;

impl Matcher {
    pub(super) fn new(rules: &[Rule]) -> Result<Self, TooLarge> {
        Ok(Self {
            classes: Side::new(rules, On::Class)?,
            modules: Side::new(rules, On::Module)?,
        })
    }

    /// Returns the index of the first rule that matches.
    pub(super) fn first(&self, rules: &[Rule], names: &Names<'_>) -> Option<usize> {
        let mut best = self
            .classes
            .first(rules, names, names.class_or_function(), usize::MAX);
        let modules = [
            Some(names.module).filter(|module| !module.is_empty()),
            names.module_file(),
        ];
        for module in modules.into_iter().flatten() {
            best = self.modules.first(rules, names, module, best);
        }
        (best != usize::MAX).then_some(best)
    }

    /// Returns the earlier rule, if any, that matches every name with this prefix of the rule at `index`.
    pub(super) fn shadow(&self, rules: &[Rule], index: usize, prefix: &str) -> Option<usize> {
        let rule = rules.get(index)?;
        let mut shadow = None;
        for (side, on) in [(&self.classes, On::Class), (&self.modules, On::Module)] {
            if rule.looks_at(on) {
                shadow = Some(
                    side.chains_of(prefix)?.0[0]
                        .last()
                        .copied()
                        .filter(|last| *last < index)?,
                );
            }
        }
        shadow
    }
}

/// Regular expressions see only this much of a name, because their time grows with its length.
const MOST_LOOKED_AT: usize = 256;

/// The patterns for one part of a frame.
#[derive(Debug)]
struct Side {
    prefixes: PrefixTree,
    /// By prefix: the rules that match a name with this prefix, and those that match if the prefix is the whole name.
    chains: Vec<[Vec<usize>; 2]>,
    /// The rules without a pattern.
    always: Vec<usize>,
    set: RegexSet,
    /// By pattern of the set: the index of its rule. Ascending.
    set_rules: Vec<usize>,
}

impl Side {
    fn new(rules: &[Rule], on: On) -> Result<Self, TooLarge> {
        let here = || {
            rules
                .iter()
                .enumerate()
                .filter(move |(_, rule)| rule.looks_at(on))
        };
        let mut prefixes: Vec<&str> = here()
            .flat_map(|(_, rule)| rule.pattern.prefixes().chain(rule.pattern.literals()))
            .collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        let always = chain(here(), |pattern| matches!(pattern, Pattern::Any));
        let of_prefix = |name: &str| {
            let begins = |pattern: &Pattern| {
                matches!(pattern, Pattern::Any)
                    || pattern.prefixes().any(|prefix| name.starts_with(prefix))
            };
            let is = |pattern: &Pattern| {
                begins(pattern) || pattern.literals().any(|literal| name == literal)
            };
            [chain(here(), begins), chain(here(), is)]
        };
        let (mut chains, mut chained) = (Vec::with_capacity(prefixes.len()), 0);
        for prefix in &prefixes {
            let chain = of_prefix(prefix);
            chained += chain.iter().map(Vec::len).sum::<usize>();
            if chained > MOST_CHAINED {
                return Err(TooLarge::Prefixes);
            }
            chains.push(chain);
        }
        let (set_rules, patterns): (Vec<usize>, Vec<String>) = here()
            .flat_map(|(index, rule)| {
                rule.pattern
                    .regexes()
                    .into_iter()
                    .map(move |regex| (index, regex))
            })
            .unzip();
        Ok(Self {
            chains,
            always,
            prefixes: PrefixTree::new(&prefixes),
            set: RegexSet::new(&patterns)?,
            set_rules,
        })
    }

    /// Returns the first rule before `best` that matches, or else `best`.
    fn first(&self, rules: &[Rule], names: &Names<'_>, subject: &str, best: usize) -> usize {
        let accepts = |index: usize| rules.get(index).is_some_and(|rule| rule.accepts(names));
        let mut best = best;
        if let Some(found) = self
            .chain(subject)
            .iter()
            .take_while(|index| **index < best)
            .find(|index| accepts(**index))
        {
            best = *found;
        }
        // Checks function and file first, which are cheaper than a regular expression.
        if self
            .set_rules
            .iter()
            .take_while(|index| **index < best)
            .any(|index| accepts(*index))
        {
            let looked_at = subject.floor_char_boundary(MOST_LOOKED_AT);
            let matches = self
                .set
                .matches(subject.get(..looked_at).unwrap_or_default())
                .into_iter()
                .filter_map(|pattern| self.set_rules.get(pattern));
            if let Some(found) = matches
                .take_while(|index| **index < best)
                .find(|index| accepts(**index))
            {
                best = *found;
            }
        }
        best
    }

    /// Returns the rules whose pattern matches a name, except those with regular expressions.
    fn chain(&self, subject: &str) -> &[usize] {
        let found = self
            .chains_of(subject)
            .and_then(|(chains, whole)| chains.get(usize::from(whole)));
        found.unwrap_or(&self.always)
    }

    /// Returns the chains of the longest prefix of a name, and whether that prefix is the whole name.
    fn chains_of(&self, subject: &str) -> Option<(&[Vec<usize>; 2], bool)> {
        let (prefix, whole) = self.prefixes.longest(subject)?;
        Some((self.chains.get(prefix)?, whole))
    }
}

/// Returns the rules whose pattern matches, up to the first unconditional one: rules after that can never be first.
fn chain<'r>(
    rules: impl Iterator<Item = (usize, &'r Rule)>,
    holds: impl Fn(&Pattern) -> bool,
) -> Vec<usize> {
    let mut chain = Vec::new();
    for (index, rule) in rules.filter(|(_, rule)| holds(&rule.pattern)) {
        chain.push(index);
        if rule.is_unconditional() {
            break;
        }
    }
    chain
}
