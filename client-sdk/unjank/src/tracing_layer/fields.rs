//! Formats fields of `tracing` as text, up to the length that is sent.

use std::fmt::{self, Debug, Write};

use tracing_core::field::{Field, Visit};

/// Maximum length of a value in bytes. The rest is cut.
const MOST_BYTES: usize = 1_024;
/// Maximum number of fields of a span.
const MOST_FIELDS: usize = 64;

/// The fields of a span, in the order they were recorded.
#[derive(Debug, Default)]
pub(crate) struct Fields(pub(crate) Vec<(&'static str, String)>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if self.0.len() < MOST_FIELDS {
            let mut text = Bounded::default();
            text.add(format_args!("{value:?}"));
            self.0.push((field.name(), text.0));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.0.len() < MOST_FIELDS {
            let mut text = Bounded::default();
            text.add(format_args!("{value}"));
            self.0.push((field.name(), text.0));
        }
    }
}

/// An event as one line: its message, then its fields.
#[derive(Debug, Default)]
pub(crate) struct Line {
    message: Bounded,
    fields: Bounded,
}

impl Line {
    /// Returns the line, or `None` if it is empty.
    pub(crate) fn text(self) -> Option<String> {
        let Self {
            message: mut line,
            fields,
        } = self;
        line.add(format_args!("{}", fields.0));
        let text = line.0.trim_start();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn record(&mut self, field: &Field, value: fmt::Arguments<'_>) {
        match field.name() {
            "message" => self.message.add(value),
            name => self.fields.add(format_args!(" {name}={value}")),
        }
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.record(field, format_args!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record(field, format_args!("{value}"));
    }
}

/// Text up to the length that is sent. When it is full, it stops the formatter, because a value may be as large as a response.
#[derive(Debug, Default)]
struct Bounded(String);

impl Bounded {
    fn add(&mut self, value: fmt::Arguments<'_>) {
        // An error means that the text is full or that the value failed to format. What was written until then is kept.
        self.write_fmt(value).unwrap_or_default();
    }
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let free = MOST_BYTES.saturating_sub(self.0.len());
        if text.len() <= free {
            self.0.push_str(text);
            return Ok(());
        }
        let end = text.floor_char_boundary(free.saturating_sub("…".len()));
        self.0.push_str(text.get(..end).unwrap_or_default());
        if free >= "…".len() {
            self.0.push('…');
        }
        Err(fmt::Error)
    }
}
