//! Reads rule files: validates the TOML and reports errors with their position and a remedy.

use serde::Deserialize;
use toml::Spanned;
use unjank_foundation::expressions::Expressions;

use super::rule::{Glob, Means, On, Origin, Pattern, Rule, is_simple, regex_of_glob};

/// The maximum number of patterns: every new stack is matched against all of them, and the matcher stays in memory.
const MAX_PATTERNS: usize = 5_000;
const MAX_PATTERN_BYTES: usize = 1_024;
/// The memory limit for all compiled regular expressions and globs.
const EXPRESSIONS_BYTES: usize = 4 << 20;

/// Why a rule file was rejected.
#[derive(Debug, thiserror::Error)]
pub enum RulesError {
    /// The text is not TOML, or not a rule file.
    #[error(
        "cannot read the rules: {detail}\nA rule looks like this:\n\n[[rule]]\nmatch = \"com.example.\"\nmeans = \"in_app\""
    )]
    Unreadable {
        /// The line of the error, from 1, if known.
        line: Option<usize>,
        /// A description of the error, including the line.
        detail: String,
    },
    /// A setting of the whole file is invalid.
    #[error("{0}")]
    File(String),
    /// A rule is invalid.
    #[error("rule {index} (line {line}): {problem}")]
    Rule {
        /// The rule's position in the file, from 1.
        index: usize,
        /// The line on which the rule starts, from 1.
        line: usize,
        /// What is wrong and what to do.
        problem: String,
    },
}

impl RulesError {
    fn unreadable(text: &str, error: &toml::de::Error) -> Self {
        Self::Unreadable {
            line: error.span().map(|span| line_of(text, span.start)),
            detail: error.to_string(),
        }
    }

    /// Returns the position of the invalid rule, from 1, if the error concerns a rule.
    #[must_use]
    pub fn rule(&self) -> Option<usize> {
        match self {
            Self::Rule { index, .. } => Some(*index),
            Self::Unreadable { .. } | Self::File(_) => None,
        }
    }

    /// Returns the line of the error, from 1, if known.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match self {
            Self::Rule { line, .. } => Some(*line),
            Self::Unreadable { line, .. } => *line,
            Self::File(_) => None,
        }
    }
}

/// The contents of a rule file.
pub(super) struct RulesFile {
    pub(super) version: u32,
    /// The memory its compiled regular expressions use.
    pub(super) expressions_bytes: usize,
    /// Whether the built-in rules follow those of the file.
    pub(super) built_in: bool,
    /// Whether frames that no rule matches are the app's own. `None`: only if no rule means `in_app`.
    pub(super) assume_in_app: Option<bool>,
    pub(super) rules: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    #[serde(default = "first_version")]
    version: u32,
    #[serde(default)]
    built_in: bool,
    assume_in_app: Option<bool>,
    #[serde(default)]
    rule: Vec<Spanned<RawRule>>,
}

fn first_version() -> u32 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRule {
    r#match: Option<OneOrMany>,
    glob: Option<OneOrMany>,
    regex: Option<OneOrMany>,
    on: Option<On>,
    function: Option<OneOrMany>,
    file: Option<OneOrMany>,
    means: Option<Means>,
    #[serde(default)]
    category: String,
    #[serde(default)]
    owner: String,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a string or a list of strings")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn into_list(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Many(texts) => texts,
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(texts) => texts.len(),
        }
    }
}

impl RawRule {
    fn patterns(&self) -> usize {
        let lists = [
            &self.r#match,
            &self.glob,
            &self.regex,
            &self.function,
            &self.file,
        ];
        lists
            .into_iter()
            .flatten()
            .map(OneOrMany::len)
            .sum::<usize>()
            .max(1)
    }
}

pub(super) fn read(text: &str, origin: Origin) -> Result<RulesFile, RulesError> {
    let file: RawFile =
        toml::from_str(text).map_err(|error| RulesError::unreadable(text, &error))?;
    if file.version == 0 {
        return Err(RulesError::File(
            "version = 0 is invalid; versions count from 1 and grow with every change of the rules"
                .into(),
        ));
    }
    let patterns: usize = file.rule.iter().map(|rule| rule.get_ref().patterns()).sum();
    if patterns > MAX_PATTERNS {
        let problem = format!(
            "the file has {patterns} patterns; the limit is {MAX_PATTERNS}. A shorter prefix can often replace many rules"
        );
        return Err(RulesError::File(problem));
    }
    let mut expressions = Expressions::new(EXPRESSIONS_BYTES);
    let mut rules = Vec::with_capacity(file.rule.len());
    for (position, raw) in file.rule.into_iter().enumerate() {
        let index = position + 1;
        let line = line_of(text, raw.span().start);
        let rule =
            check(raw.into_inner(), &mut expressions).map_err(|problem| RulesError::Rule {
                index,
                line,
                problem,
            })?;
        rules.push(Rule {
            origin,
            index,
            line,
            ..rule
        });
    }
    Ok(RulesFile {
        version: file.version,
        expressions_bytes: expressions.used(),
        built_in: file.built_in,
        assume_in_app: file.assume_in_app,
        rules,
    })
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes()
        .take(offset)
        .filter(|byte| *byte == b'\n')
        .count()
        + 1
}

fn check(raw: RawRule, expressions: &mut Expressions) -> Result<Rule, String> {
    let pattern = pattern(raw.r#match, raw.glob, raw.regex, expressions)?;
    let Some(means) = raw.means else {
        return Err("the meaning of a match is missing: add means = \"in_app\", \"category\", \"ignore\" or \"not_a_cause\"".into());
    };
    if means == Means::Category && raw.category.trim().is_empty() {
        return Err("means = \"category\" needs a label: add category = \"JSON on main thread\", for example".into());
    }
    if means != Means::Category && !raw.category.is_empty() {
        return Err(format!(
            "category = {:?} has no effect: set means = \"category\", or remove the category",
            raw.category
        ));
    }
    if matches!(pattern, Pattern::Any) {
        if raw.function.is_none() && raw.file.is_none() {
            return Err("the rule matches nothing: add match = \"com.example.\" (a prefix of the class or module), glob, regex, function or file".into());
        }
        if raw.on.is_some() {
            return Err(
                "`on` selects the subject of match, glob or regex: add one of them, or remove `on`"
                    .into(),
            );
        }
    }
    Ok(Rule {
        origin: Origin::File,
        index: 0,
        line: 0,
        pattern,
        on: raw.on,
        function: globs("function", raw.function, expressions)?,
        file: globs("file", raw.file, expressions)?,
        means,
        category: raw.category.trim().to_owned(),
        owner: raw.owner.trim().to_owned(),
        note: raw.note,
    })
}

fn pattern(
    prefixes: Option<OneOrMany>,
    globs: Option<OneOrMany>,
    regexes: Option<OneOrMany>,
    expressions: &mut Expressions,
) -> Result<Pattern, String> {
    let (key, list, pattern): (_, _, fn(Vec<String>) -> Pattern) = match (prefixes, globs, regexes) {
        (None, None, None) => return Ok(Pattern::Any),
        (Some(list), None, None) => ("match", list, Pattern::Prefixes),
        (None, Some(list), None) => ("glob", list, Pattern::Globs),
        (None, None, Some(list)) => ("regex", list, Pattern::Regexes),
        _ => return Err("the rule has more than one of match, glob and regex: keep one, and add another rule for the other".into()),
    };
    let list = filled(key, list)?;
    for text in &list {
        if key == "match" && text.contains('*') {
            return Err(format!(
                "match = {text:?} is a prefix, in which `*` is literal: remove the `*`, or write glob = {text:?}"
            ));
        }
        let expression = match key {
            "regex" => text.clone(),
            // Simple globs are looked up as prefixes or literals.
            "glob" if !is_simple(text) => regex_of_glob(text),
            _ => continue,
        };
        let checked = expressions.check(&expression);
        checked.map_err(|error| format!("{key} = {text:?} cannot be used: {error}"))?;
    }
    Ok(pattern(list))
}

fn globs(
    key: &str,
    list: Option<OneOrMany>,
    expressions: &mut Expressions,
) -> Result<Vec<Glob>, String> {
    let Some(list) = list else {
        return Ok(Vec::new());
    };
    let globs = filled(key, list)?.into_iter().map(|text| {
        let checked = expressions.check(&regex_of_glob(&text));
        checked.map_err(|error| format!("{key} = {text:?} cannot be used: {error}"))?;
        Glob::new(text).map_err(|error| format!("the glob in {key} is too large: {error}"))
    });
    globs.collect()
}

/// Returns the texts of a key. There must be at least one, none of them empty or too long.
fn filled(key: &str, list: OneOrMany) -> Result<Vec<String>, String> {
    let list = list.into_list();
    if list.is_empty() || list.iter().any(String::is_empty) {
        return Err(format!("{key} is empty: add a pattern, or remove {key}"));
    }
    match list.iter().map(String::len).max() {
        Some(length) if length > MAX_PATTERN_BYTES => Err(format!(
            "{key} is {length} bytes long; the limit is {MAX_PATTERN_BYTES}"
        )),
        _ => Ok(list),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        read(text, Origin::File)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn a_file_has_a_version_and_rules() {
        let file = read(
            "version = 7\nbuilt_in = true\n\n[[rule]]\nmatch = \"com.example.\"\nmeans = \"in_app\"\nowner = \"team-shop\"\n",
            Origin::File,
        )
        .unwrap();
        assert_eq!(
            (file.version, file.built_in, file.rules.len()),
            (7, true, 1)
        );
        assert_eq!(
            (file.rules[0].line, file.rules[0].owner.as_str()),
            (4, "team-shop")
        );
        assert_eq!(read("", Origin::File).unwrap().version, 1);
    }

    #[test]
    fn an_invalid_rule_is_reported_with_its_line_and_a_remedy() {
        let two = |rule: &str| {
            problem(&format!(
                "[[rule]]\nmatch = \"a.\"\nmeans = \"in_app\"\n\n[[rule]]\n{rule}\n"
            ))
        };
        let cases = [
            ("match = \"b.\"", "add means ="),
            ("match = \"b.\"\nmeans = \"category\"", "add category ="),
            (
                "match = \"b.\"\nmeans = \"ignore\"\ncategory = \"x\"",
                "has no effect",
            ),
            ("means = \"ignore\"", "the rule matches nothing"),
            (
                "function = \"f\"\non = \"module\"\nmeans = \"ignore\"",
                "`on` selects",
            ),
            ("match = \"\"\nmeans = \"ignore\"", "is empty"),
            ("match = []\nmeans = \"ignore\"", "is empty"),
            (
                "match = \"b.*\"\nmeans = \"ignore\"",
                "write glob = \"b.*\"",
            ),
            (
                "match = \"b.\"\nglob = \"b*\"\nmeans = \"ignore\"",
                "keep one",
            ),
            (
                "regex = \"(\"\nmeans = \"ignore\"",
                "is not a regular expression",
            ),
        ];
        for (rule, remedy) in cases {
            let problem = two(rule);
            assert!(problem.starts_with("rule 2 (line 5): "), "{problem}");
            assert!(problem.contains(remedy), "{problem}");
        }
    }

    #[test]
    fn text_that_is_not_a_rule_file_is_rejected_with_its_line() {
        let unknown_key = problem("[[rule]]\nmatch = \"a.\"\nmeens = \"in_app\"\n");
        assert!(
            unknown_key.contains("line 3") && unknown_key.contains("meens"),
            "{unknown_key}"
        );
        let unknown_meaning = problem("[[rule]]\nmatch = \"a.\"\nmeans = \"inapp\"\n");
        assert!(
            unknown_meaning.contains("line 3") && unknown_meaning.contains("in_app"),
            "{unknown_meaning}"
        );
        assert!(problem("version = 0").contains("count from 1"));
    }
}
