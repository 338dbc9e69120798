//! One rule: what it looks for in a frame, and what a match means.

use std::fmt;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::names::Names;

/// What it means that a rule matches a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// Our code: the innermost such frame is the culprit.
    InApp,
    /// A kind of work, remembered while the walk goes on outwards to find who asked for it.
    Category,
    /// System or framework: says nothing.
    Ignore,
    /// An idle loop. Innermost, it means that the sample missed the stall: nobody is blamed.
    NotACause,
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InApp => "in_app",
            Self::Category => "category",
            Self::Ignore => "ignore",
            Self::NotACause => "not_a_cause",
        })
    }
}

/// Which part of a frame a pattern looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum On {
    /// The class; where a language has none, the function with its path.
    Class,
    /// The library, image or package.
    Module,
}

/// How a rule recognises a class or module: by any one of a list.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// No pattern: function and file decide alone.
    Any,
    Prefixes(Vec<String>),
    Globs(Vec<String>),
    Regexes(Vec<String>),
}

impl Pattern {
    /// Those that hold for whatever begins with them: a glob that ends in its only `*` is one, too.
    pub(super) fn prefixes(&self) -> impl Iterator<Item = &str> {
        let (prefixes, globs) = match self {
            Self::Prefixes(prefixes) => (prefixes.as_slice(), &[][..]),
            Self::Globs(globs) => (&[][..], globs.as_slice()),
            Self::Any | Self::Regexes(_) => (&[][..], &[][..]),
        };
        let simple = globs
            .iter()
            .filter_map(|glob| glob.strip_suffix('*').filter(|prefix| is_literal(prefix)));
        prefixes.iter().map(String::as_str).chain(simple)
    }

    /// Those that hold for one name only: globs without a wildcard.
    pub(super) fn literals(&self) -> impl Iterator<Item = &str> {
        let globs = if let Self::Globs(globs) = self {
            globs.as_slice()
        } else {
            &[]
        };
        globs
            .iter()
            .map(String::as_str)
            .filter(|glob| is_literal(glob))
    }

    /// Those that need a regular expression, as such.
    pub(super) fn regexes(&self) -> Vec<String> {
        match self {
            Self::Any | Self::Prefixes(_) => Vec::new(),
            Self::Globs(globs) => globs
                .iter()
                .filter(|glob| !is_simple(glob))
                .map(|glob| regex_of_glob(glob))
                .collect(),
            Self::Regexes(regexes) => regexes.clone(),
        }
    }

    /// The one of the list that matches a frame, as a person would write it.
    fn shown(&self, names: &Names<'_>) -> String {
        let holds = |regex: String| {
            Regex::new(&regex).is_ok_and(|regex| names.subjects().any(|name| regex.is_match(name)))
        };
        let (key, list, as_regex): (_, _, fn(&str) -> String) = match self {
            Self::Any => return String::new(),
            Self::Prefixes(list) => ("match", list, |prefix| {
                format!(r"\A{}", regex::escape(prefix))
            }),
            Self::Globs(list) => ("glob", list, regex_of_glob),
            Self::Regexes(list) => ("regex", list, str::to_owned),
        };
        let found = list
            .iter()
            .find(|text| holds(as_regex(text)))
            .or(list.first());
        format!("{key} {:?}", found.map_or("", String::as_str))
    }
}

/// A glob over a whole name: `*` is any run of characters, `?` any one.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    text: String,
    /// Nothing when the glob has no wildcard: then it is compared as it stands.
    regex: Option<Regex>,
}

impl Glob {
    pub(super) fn new(text: String) -> Result<Self, regex::Error> {
        let regex = if is_literal(&text) {
            None
        } else {
            Some(Regex::new(&regex_of_glob(&text))?)
        };
        Ok(Self { text, regex })
    }

    fn matches(&self, name: &str) -> bool {
        self.regex
            .as_ref()
            .map_or(self.text == name, |regex| regex.is_match(name))
    }
}

/// Whether a glob is a name, or the beginning of one: then no expression is needed.
pub(super) fn is_simple(glob: &str) -> bool {
    is_literal(glob.strip_suffix('*').unwrap_or(glob))
}

/// Whether a glob, or a part of one, stands for itself.
fn is_literal(glob: &str) -> bool {
    !glob.contains(['*', '?'])
}

pub(super) fn regex_of_glob(glob: &str) -> String {
    let mut regex = String::from(r"(?s)\A");
    for piece in glob.split_inclusive(['*', '?']) {
        let literal = piece.trim_end_matches(['*', '?']);
        regex.push_str(&regex::escape(literal));
        match piece.chars().last() {
            Some('*') => regex.push_str(".*"),
            Some('?') => regex.push('.'),
            _ => {}
        }
    }
    regex.push_str(r"\z");
    regex
}

/// Where a rule was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// In the rule file.
    File,
    /// In the rules that come with the program.
    BuiltIn,
}

/// One rule, checked.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) origin: Origin,
    /// Its place among the rules of its origin, from 1.
    pub(super) index: usize,
    /// The line it starts on, from 1.
    pub(super) line: usize,
    pub(super) pattern: Pattern,
    /// Nothing: class and module, whichever matches.
    pub(super) on: Option<On>,
    /// Any of these; empty: any function.
    pub(super) function: Vec<Glob>,
    /// Any of these; empty: any file.
    pub(super) file: Vec<Glob>,
    pub(super) means: Means,
    pub(super) category: String,
    pub(super) owner: String,
    pub(super) note: String,
}

impl Rule {
    /// Whether the pattern alone decides.
    pub(super) fn is_unconditional(&self) -> bool {
        self.function.is_empty() && self.file.is_empty()
    }

    pub(super) fn looks_at(&self, on: On) -> bool {
        match (&self.pattern, self.on) {
            // Without a pattern there is nothing to look at twice.
            (Pattern::Any, _) => on == On::Class,
            (_, None) => true,
            (_, Some(chosen)) => chosen == on,
        }
    }

    /// Whether function and file are as the rule wants them. The pattern has matched already.
    pub(super) fn accepts(&self, names: &Names<'_>) -> bool {
        let any =
            |globs: &[Glob], name| globs.is_empty() || globs.iter().any(|glob| glob.matches(name));
        any(&self.function, names.function()) && any(&self.file, names.file)
    }

    /// The rule as an explanation of this frame shows it.
    pub(super) fn summary(&self, names: &Names<'_>) -> RuleSummary {
        let mut parts = vec![self.pattern.shown(names)];
        for (key, globs, name) in [
            ("function", &self.function, names.function()),
            ("file", &self.file, names.file),
        ] {
            parts.extend(
                globs
                    .iter()
                    .find(|glob| glob.matches(name))
                    .map(|glob| format!("{key} {:?}", glob.text)),
            );
        }
        parts.retain(|part| !part.is_empty());
        let pattern = parts.join(", ");
        RuleSummary {
            origin: self.origin,
            index: self.index,
            line: self.line,
            pattern,
            means: self.means,
            category: self.category.clone(),
            owner: self.owner.clone(),
            note: self.note.clone(),
        }
    }
}

/// A rule as an explanation shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleSummary {
    /// Where the rule was written.
    pub origin: Origin,
    /// Its place among the rules of its origin, from 1.
    pub index: usize,
    /// The line it starts on, from 1.
    pub line: usize,
    /// What it found in the frame: the one of its patterns that matches.
    pub pattern: String,
    /// What a match means.
    pub means: Means,
    /// The label, for a category.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub category: String,
    /// The team it names.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// Why the rule is there.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_covers_the_whole_name() {
        let cases = [
            ("pay", "pay", true),
            ("pay", "payment", false),
            ("pay*", "payment", true),
            ("*pay", "repay", true),
            ("p?y", "pay", true),
            ("p?y", "py", false),
            ("*", "", true),
            ("a.b*", "axb", false),
            ("**$$serializer", "Cart$$serializer", true),
            ("*ü?", "grün", true),
        ];
        for (glob, name, matches) in cases {
            assert_eq!(
                Glob::new(glob.into()).unwrap().matches(name),
                matches,
                "{glob} on {name}"
            );
        }
    }
}
