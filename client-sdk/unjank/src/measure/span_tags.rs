//! Tags that patterns give to spans, so that the remote configuration can select code that the app did not annotate.

use std::fmt;
use std::str::FromStr;

use unjank_protocol::Glob;

/// Maximum number of lines with a pattern.
const MOST: usize = 1_000;

/// Patterns that give tags to spans, for [`crate::Config::span_tags`]. They are parsed from text, for example a file of the project
/// with `include_str!`:
///
/// ```
/// use unjank::SpanTags;
///
/// let tags: SpanTags = "
///     # pattern         = tags
///     checkout*         = checkout, money
///     shop::network::*  = network
///     */startup/*.rs    = startup
/// "
/// .parse()?;
/// let config = unjank::Config::new("http://127.0.0.1:8080", "demo").span_tags(tags);
/// # drop(config);
/// # Ok::<(), unjank::SpanTagsError>(())
/// ```
///
/// Each line has a glob, an equals sign, and tags with commas between them. `*` matches any characters, `?` one; ASCII case is
/// ignored. A glob matches the whole name of a span, its whole module path (for a method, with its type) or its whole source file. The
/// module is known for `#[traced]` and for spans of `tracing`. Every line that matches gives its tags, besides those in the code. Empty
/// lines and lines that begin with `#` are ignored.
#[derive(Clone, Debug)]
pub struct SpanTags(Vec<(Glob, Vec<Box<str>>)>);

/// Why patterns cannot be parsed.
///
/// ```
/// let error = "checkout*".parse::<unjank::SpanTags>().unwrap_err();
/// assert_eq!(error.to_string(), "line 1: write a pattern, `=` and tags");
/// assert_eq!(error.line(), 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanTagsError {
    line: usize,
    problem: &'static str,
}

impl SpanTagsError {
    /// Returns the number of the line, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }
}

impl fmt::Display for SpanTagsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

impl std::error::Error for SpanTagsError {}

impl FromStr for SpanTags {
    type Err = SpanTagsError;

    /// Parses patterns, at most 1,000.
    ///
    /// # Errors
    /// If a line has no pattern or no tags, or there are too many lines.
    fn from_str(text: &str) -> Result<Self, SpanTagsError> {
        let mut patterns = Vec::new();
        let lines = text.lines().map(str::trim).enumerate();
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let failed = |problem| SpanTagsError {
                line: number.saturating_add(1),
                problem,
            };
            let expected = "write a pattern, `=` and tags";
            let (pattern, tags) = line.split_once('=').ok_or_else(|| failed(expected))?;
            let tags = tags.split(',').map(str::trim);
            let tags: Vec<Box<str>> = tags.map(Into::into).collect();
            let pattern = pattern.trim();
            if pattern.is_empty() || tags.iter().any(|tag| tag.is_empty()) {
                return Err(failed(expected));
            }
            if patterns.len() >= MOST {
                return Err(failed("at most 1,000 patterns are allowed"));
            }
            patterns.push((Glob::new(pattern), tags));
        }
        Ok(Self(patterns))
    }
}

impl SpanTags {
    /// Returns the tags of a span by its name, its module and its file.
    pub(crate) fn of<'t>(&'t self, texts: [&'t str; 3]) -> impl Iterator<Item = &'t str> {
        let matching = self.0.iter().filter(move |(glob, _)| {
            let mut texts = texts.iter().filter(|text| !text.is_empty());
            texts.any(|text| glob.matches(text))
        });
        matching.flat_map(|(_, tags)| tags.iter().map(|tag| &**tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let error = text.parse::<SpanTags>().unwrap_err();
        error.to_string()
    }

    #[test]
    fn every_matching_line_gives_its_tags() {
        let text = "# a comment\n\ncheckout* = checkout, money\nshop::net::* = network\n*/start.rs = startup\n";
        let tags: SpanTags = text.parse().unwrap();
        let of = |texts| tags.of(texts).collect::<Vec<_>>();
        assert_eq!(of(["checkout.pay", "", ""]), ["checkout", "money"]);
        assert_eq!(
            of(["pay", "shop::net::Client", "src/start.rs"]),
            ["network", "startup"]
        );
        assert_eq!(of(["my checkout", "shop", "start.rs"]), [] as [&str; 0]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        assert_eq!(error("a = b\nc"), "line 2: write a pattern, `=` and tags");
        assert_eq!(error("= b"), "line 1: write a pattern, `=` and tags");
        assert_eq!(error("a = b,,c"), "line 1: write a pattern, `=` and tags");
        let many = "a = b\n".repeat(1_001);
        assert_eq!(
            error(&many),
            "line 1001: at most 1,000 patterns are allowed"
        );
    }
}
