//! A rule: the pattern it looks for in a frame, and the meaning of a match.

use std::fmt;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::names::Names;

/// The meaning of a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Means {
    /// The app's own code. The innermost such frame is the culprit.
    InApp,
    /// A kind of work. The walk remembers it and continues outwards to find the code that requested it.
    Category,
    /// System or framework code, which is skipped.
    Ignore,
    /// An idle loop. If it is innermost, the sample missed the stall and no frame is blamed.
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

/// The part of a frame that a pattern is matched against.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum On {
    /// The class or, if the language has none, the function with its path.
    Class,
    /// The library, image or package.
    Module,
}

/// A list of patterns for a class or module, any of which may match.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// No pattern: only function and file are checked.
    Any,
    Prefixes(Vec<String>),
    Globs(Vec<String>),
    Regexes(Vec<String>),
}

impl Pattern {
    /// Returns the patterns that are prefixes, including globs whose only wildcard is a final `*`.
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

    /// Returns the patterns that match exactly one name: globs without a wildcard.
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

    /// Returns the patterns that need a regular expression, converted to one.
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

    /// Returns the pattern of the list that matches a frame, as written in a rule file.
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

/// A glob that matches a whole name: `*` matches any run of characters, `?` any single one.
#[derive(Clone, Debug)]
pub(super) struct Glob {
    text: String,
    /// `None` if the glob has no wildcard and is compared literally.
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

/// Whether a glob is a literal name or prefix, and so needs no regular expression.
pub(super) fn is_simple(glob: &str) -> bool {
    is_literal(glob.strip_suffix('*').unwrap_or(glob))
}

/// Whether a glob, or a part of one, has no wildcard.
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

/// The source of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The rule file.
    File,
    /// The rules that ship with the program.
    BuiltIn,
}

/// A validated rule.
#[derive(Clone, Debug)]
pub(super) struct Rule {
    pub(super) origin: Origin,
    /// Its place among the rules of its origin, from 1.
    pub(super) index: usize,
    /// The line it starts on, from 1.
    pub(super) line: usize,
    pub(super) pattern: Pattern,
    /// `None`: the class or the module may match.
    pub(super) on: Option<On>,
    /// One of these must match. Empty: any function matches.
    pub(super) function: Vec<Glob>,
    /// One of these must match. Empty: any file matches.
    pub(super) file: Vec<Glob>,
    pub(super) means: Means,
    pub(super) category: String,
    pub(super) owner: String,
    pub(super) note: String,
}

impl Rule {
    /// Whether the rule has no conditions besides its pattern.
    pub(super) fn is_unconditional(&self) -> bool {
        self.function.is_empty() && self.file.is_empty()
    }

    pub(super) fn looks_at(&self, on: On) -> bool {
        match (&self.pattern, self.on) {
            // A rule without a pattern is evaluated only once.
            (Pattern::Any, _) => on == On::Class,
            (_, None) => true,
            (_, Some(chosen)) => chosen == on,
        }
    }

    /// Whether function and file meet the rule's conditions. Assumes that the pattern matches.
    pub(super) fn accepts(&self, names: &Names<'_>) -> bool {
        let any =
            |globs: &[Glob], name| globs.is_empty() || globs.iter().any(|glob| glob.matches(name));
        any(&self.function, names.function()) && any(&self.file, names.file)
    }

    /// Returns the summary of the rule for the explanation of a frame.
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

/// A rule, as shown in an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleSummary {
    /// Where the rule was written.
    pub origin: Origin,
    /// Its place among the rules of its origin, from 1.
    pub index: usize,
    /// The line it starts on, from 1.
    pub line: usize,
    /// The pattern that matches the frame.
    pub pattern: String,
    /// The meaning of a match.
    pub means: Means,
    /// The label of the category, if the rule names one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub category: String,
    /// The team that the rule names as owner.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub owner: String,
    /// The rule's note, such as the reason for it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_matches_the_whole_name() {
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
