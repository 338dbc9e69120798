//! A comparison as a pull-request comment in GitHub's Markdown, which GitLab also renders. Names come from apps, so everything in
//! them that is not plain text is escaped.

use std::fmt::Write as _;

use super::{Comparison, Counted, Gate, Limit, Row, Verdict, numbers};
use crate::test_run::Measurable;

/// Lets CI find its earlier comment and update it instead of adding another one.
pub const MARKER: &str = "<!-- unjank:report -->";

/// A comment on GitHub can have at most 65,536 characters.
const MOST_CHARACTERS: usize = 65_000;
/// Space reserved for the text after the tables.
const FOOTER_SPACE: usize = 1_500;
const MOST_NAME: usize = 120;
const MOST_LABEL: usize = 400;
const MOST_MISSING: usize = 20;
const HEADER: &str = "| what | metric | base | head | Δ | Δ % | n | p | verdict |\n|---|---|--:|--:|--:|--:|--:|--:|---|\n";

/// Returns the whole report.
#[must_use]
pub fn markdown(comparison: &Comparison) -> String {
    let mut page = Page::default();
    page.add(&format!(
        "{MARKER}\n### {} unjank: {}\n\n",
        sign_of(comparison.gate()),
        verdict_line(comparison)
    ));
    page.add(&format!(
        "Base: {} ({}). Head: {} ({}).\n\n",
        escaped(&comparison.base.label, MOST_LABEL),
        runs(comparison.base.runs),
        escaped(&comparison.head.label, MOST_LABEL),
        runs(comparison.head.runs),
    ));
    for missing in comparison.missing.iter().take(MOST_MISSING) {
        let name = escaped(missing, MOST_NAME);
        page.add(&format!(
            "{} The head did not measure a metric that has a budget: {name}\n\n",
            sign_of(comparison.on_missing)
        ));
    }
    let is_notable = |row: &&Row| {
        row.gate != Gate::Pass || matches!(row.verdict, Verdict::Improved | Verdict::Regressed)
    };
    let notable: Vec<&Row> = comparison.rows.iter().filter(is_notable).collect();
    let rest: Vec<&Row> = comparison
        .rows
        .iter()
        .filter(|row| !is_notable(row))
        .collect();
    if !notable.is_empty() {
        page.table(&notable);
        page.add("\n");
    }
    if !rest.is_empty() {
        let summary = format!("{} more: {}", rest.len(), counts(comparison, &REST));
        page.add(&format!("<details><summary>{summary}</summary>\n\n"));
        page.table(&rest);
        page.add("\n</details>\n\n");
    }
    page.text.push_str(&footer(comparison));
    page.text
}

const REST: [Verdict; 4] = [
    Verdict::Unchanged,
    Verdict::NotEnoughSamples,
    Verdict::New,
    Verdict::Gone,
];

#[derive(Default)]
struct Page {
    text: String,
    characters: usize,
}

impl Page {
    fn add(&mut self, text: &str) {
        self.text.push_str(text);
        self.characters += text.chars().count();
    }

    /// Adds as many rows as fit.
    fn table(&mut self, rows: &[&Row]) {
        self.add(HEADER);
        for (place, row) in rows.iter().enumerate() {
            let line = line(row);
            if self.characters + line.chars().count() > MOST_CHARACTERS - FOOTER_SPACE {
                let left = rows.len() - place;
                self.add(&format!("\n{left} more rows are in the JSON.\n"));
                return;
            }
            self.add(&line);
        }
    }
}

fn verdict_line(comparison: &Comparison) -> String {
    let notable = counts(
        comparison,
        &[Verdict::OverBudget, Verdict::Regressed, Verdict::Improved],
    );
    if !notable.is_empty() {
        return notable;
    }
    let compared = comparison.count(Verdict::Unchanged);
    if compared == 0 {
        return "not enough samples for a verdict".to_owned();
    }
    "no regression".to_owned()
}

fn counts(comparison: &Comparison, verdicts: &[Verdict]) -> String {
    let parts = verdicts.iter().filter_map(|verdict| {
        let count = comparison.count(*verdict);
        (count > 0).then(|| format!("{count} {}", words(*verdict)))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::OverBudget => "over budget",
        Verdict::Regressed => "regressed",
        Verdict::Improved => "improved",
        Verdict::New => "new",
        Verdict::Gone => "gone",
        Verdict::NotEnoughSamples => "not enough samples",
        Verdict::Unchanged => "unchanged",
    }
}

fn sign_of(gate: Gate) -> &'static str {
    match gate {
        Gate::Fail => "❌",
        Gate::Warn => "⚠️",
        Gate::Pass => "✅",
    }
}

fn sign(row: &Row) -> &'static str {
    match (row.verdict, row.gate) {
        (_, Gate::Fail) => "❌",
        (_, Gate::Warn) | (Verdict::Regressed | Verdict::OverBudget, _) => "⚠️",
        (Verdict::Improved, _) => "✅",
        (Verdict::New, _) => "➕",
        (Verdict::Gone, _) => "➖",
        (Verdict::NotEnoughSamples, _) => "❔",
        (Verdict::Unchanged, _) => "▫️",
    }
}

fn runs(count: usize) -> String {
    match count {
        1 => "1 run".to_owned(),
        _ => format!("{count} runs"),
    }
}

pub(super) fn subject(of: &Measurable) -> String {
    match of {
        Measurable::Page(name) if name.is_empty() => "(no page)".to_owned(),
        Measurable::Page(name) => escaped(name, MOST_NAME),
        Measurable::Span(name) => format!("span {}", escaped(name, MOST_NAME)),
        Measurable::Start(kind) => format!("{} start", escaped(kind, MOST_NAME)),
        Measurable::Run => "whole run".to_owned(),
    }
}

fn line(row: &Row) -> String {
    let number = |value: Option<f64>| {
        value.map_or_else(|| "–".to_owned(), |value| numbers::value(row.metric, value))
    };
    let count = match row.counted {
        Counted::Runs => format!("{} / {} runs", row.base_count, row.head_count),
        Counted::Values => format!("{} / {}", row.base_count, row.head_count),
    };
    let limit = match row.limit.filter(|_| row.verdict == Verdict::OverBudget) {
        Some(Limit::AtMost(most)) => format!(" of {}", numbers::value(row.metric, most)),
        Some(Limit::AtLeast(least)) => {
            format!(" of at least {}", numbers::value(row.metric, least))
        }
        None => String::new(),
    };
    let change = row
        .change()
        .map_or_else(|| "–".to_owned(), |by| numbers::change(row.metric, by));
    let p = row.p.map_or_else(|| "–".to_owned(), numbers::p);
    let mut line = String::new();
    // Writing to a string does not fail.
    let _written = writeln!(
        line,
        "| {} | {} | {} | {} | {change} | {} | {count} | {p} | {} {}{limit} |",
        subject(&row.of),
        row.metric.label(),
        number(row.base),
        number(row.head),
        numbers::percent(row),
        sign(row),
        words(row.verdict),
    )
    .is_ok();
    line
}

fn footer(comparison: &Comparison) -> String {
    let tests = comparison.rows.iter().filter(|row| row.p.is_some()).count();
    format!(
        "<sub>p: Mann–Whitney, corrected (Holm) for {tests} tests; a regression needs p ≤ {} and a change beyond the tolerance. \
         n is the number of values, or of runs where noted.</sub>\n",
        comparison.significance
    )
}

/// Escapes a name as plain text in a table cell: one line without markup, HTML, links or mentions.
pub(super) fn escaped(name: &str, most: usize) -> String {
    let mut text = String::with_capacity(name.len());
    let is_plain = |letter: &char| !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    for letter in name.chars().filter(is_plain).take(most) {
        match letter {
            _ if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}') => text.push(' '),
            // Includes text that would be linked automatically: addresses, mentions, issues.
            '<' | '>' | '&' | '@' | '#' | ':' => {
                let _written = write!(text, "&#{};", u32::from(letter)).is_ok();
            }
            '.' if text.to_ascii_lowercase().ends_with("www") => text.push_str("&#46;"),
            '.' | '-' | '/' | ',' | '\'' | '%' | '+' | '=' | '?' | ';' | '(' | ')' => {
                text.push(letter);
            }
            _ if letter.is_ascii_punctuation() => text.extend(['\\', letter]),
            _ => text.push(letter),
        }
    }
    if name.chars().count() > most {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_name_is_escaped() {
        assert_eq!(
            escaped(
                "a|b`c`\n<img src=x> @ann #7 *x* _y_ [l](http://e.com) www.e.com",
                200
            ),
            "a\\|b\\`c\\` &#60;img src=x&#62; &#64;ann &#35;7 \\*x\\* \\_y\\_ \\[l\\](http&#58;//e.com) www&#46;e.com"
        );
        assert_eq!(escaped("\u{202e}evil\u{200b}", 200), "evil");
        assert_eq!(escaped("--> x", 200), "--&#62; x");
        assert_eq!(escaped(&"x".repeat(300), 5), "xxxxx…");
    }
}
