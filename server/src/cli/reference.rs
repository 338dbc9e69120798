//! `unjank reference`: prints a page of docs/reference as Markdown. A test compares the pages in the repository with the code.

mod metrics;
mod remote_configuration;
mod settings;

use std::io::Write;

use clap::{Args, ValueEnum};

#[derive(Args, Debug)]
pub(super) struct ReferenceArgs {
    /// The page.
    #[arg(value_enum)]
    page: Page,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Page {
    /// The settings of `unjank serve`.
    Settings,
    /// The metrics of a server.
    Metrics,
    /// The keys and conditions of the remote configuration.
    RemoteConfiguration,
}

pub(super) fn run(args: &ReferenceArgs, mut out: impl Write) -> anyhow::Result<()> {
    let page = match args.page {
        Page::Settings => settings::page(),
        Page::Metrics => metrics::page(),
        Page::RemoteConfiguration => remote_configuration::page(),
    };
    out.write_all(page.as_bytes())?;
    Ok(())
}

/// Returns a table in Markdown.
fn table<const COLUMNS: usize>(
    heads: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
) -> String {
    let line = |cells: [String; COLUMNS]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(heads.map(str::to_owned));
    text.push_str(&line(heads.map(|_| "---".to_owned())));
    for row in rows {
        text.push_str(&line(row.map(|cell| in_cell(&cell))));
    }
    text
}

/// A row of a table is one line, and bars end a cell, also inside of code.
fn in_cell(text: &str) -> String {
    one_line(text).replace('|', "\\|")
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn code(text: &str) -> String {
    format!("`{text}`")
}

/// Returns a number with commas, as in the other pages: 1,000.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_one_line_for_each_row() {
        let rows = [["`a|b`".to_owned(), "two\nlines".to_owned()]];
        assert_eq!(
            table(["name", "text"], rows),
            "| name | text |\n| --- | --- |\n| `a\\|b` | two lines |\n"
        );
    }

    #[test]
    fn long_numbers_have_commas() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_073_741_824, "1,073,741,824"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
