//! Spans as a table.

use std::collections::HashMap;
use std::io::{self, Write};

use super::tree::{nodes, spans};
use crate::event::Event;

/// Writes all spans as CSV (RFC 4180 with bare line feeds), ordered by their start. A text that a spreadsheet would run as a formula, such as
/// `=1+1`, begins with an apostrophe.
///
/// | column | meaning |
/// |---|---|
/// | `method` | the name of the span |
/// | `kind` | `manual`, `method`, `init`, … |
/// | `thread`, `main` | the thread it began on; whether that is the main thread |
/// | `start_us` | microseconds since the first span of the file |
/// | `duration_us` | microseconds |
/// | `self_us` | microseconds in which none of its children ran, on any thread |
/// | `depth` | number of recorded spans above it, from 0 |
/// | `count` | number of spans with this name in the file |
/// | `status`, `page` | how it ended; the screen it ran on |
/// | `class`, `function`, `file`, `line` | location in the source |
/// | `trace_id`, `span_id`, `parent_span_id` | position in the tree, in hexadecimal digits |
///
/// ```
/// let mut table = Vec::new();
/// unjank::export::csv(&[], &mut table)?;
/// assert!(table.starts_with(b"method,kind,thread,main,start_us,"));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If `out` cannot be written.
pub fn csv<'e>(events: impl IntoIterator<Item = &'e Event>, mut out: impl Write) -> io::Result<()> {
    let nodes = nodes(spans(events));
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for node in &nodes {
        let count = counts.entry(node.span.name.as_str()).or_default();
        *count = count.saturating_add(1);
    }
    let first = nodes.first().map_or(0, |node| node.start_us);
    writeln!(
        out,
        "method,kind,thread,main,start_us,duration_us,self_us,depth,count,status,page,class,function,file,line,trace_id,span_id,parent_span_id"
    )?;
    for node in &nodes {
        let span = node.span;
        let numbers = [
            node.start_us.saturating_sub(first),
            span.duration_us,
            node.self_us,
        ];
        let [start, duration, own] = numbers;
        let count = counts.get(span.name.as_str()).copied().unwrap_or_default();
        let parent = span.parent_span_id.map(|id| format!("{:016x}", id.0));
        write!(
            out,
            "{},{},{},{},{start},{duration},{own},{},{count},{},{},",
            cell(&span.name),
            span.kind,
            cell(&span.thread),
            span.on_main_thread,
            node.depth,
            span.status,
            cell(&span.page),
        )?;
        let code = &span.code;
        writeln!(
            out,
            "{},{},{},{},{:032x},{:016x},{}",
            cell(&code.class),
            cell(&code.function),
            cell(&code.file),
            code.line,
            span.trace_id.0,
            span.span_id.0,
            parent.unwrap_or_default(),
        )?;
    }
    Ok(())
}

fn cell(text: &str) -> String {
    let guard = if is_formula(text) { "'" } else { "" };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{guard}{text}")
    }
}

/// Whether a spreadsheet runs a text as a formula. Spreadsheets skip blanks and invisible characters before a sign. The standard library has no
/// class of invisible characters, so every character outside ASCII that is no letter or digit counts as one.
fn is_formula(text: &str) -> bool {
    const SIGNS: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];
    let is_skipped = |letter: char| {
        let is_blank = letter.is_whitespace() || letter.is_control();
        let is_invisible = !letter.is_ascii() && !letter.is_alphanumeric();
        is_blank || (is_invisible && !SIGNS.contains(&letter))
    };
    let shown = text.trim_start_matches(is_skipped);
    shown.starts_with(SIGNS) || text.starts_with(['\t', '\r', '\n'])
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn texts_are_never_formulas() {
        for formula in [
            "=1+1",
            " =1+1",
            "\u{200b}＝1",
            "\u{fe0f}=1",
            "-1",
            "\t1",
            "＠a",
        ] {
            assert_eq!(cell(formula), format!("'{formula}"));
        }
        assert_eq!(cell("=f(1,2)"), "\"'=f(1,2)\"");
        for text in ["", "u-1", "f(&self)", "é=1", "<impl Add>::add"] {
            assert_eq!(cell(text), text);
        }
    }
}
