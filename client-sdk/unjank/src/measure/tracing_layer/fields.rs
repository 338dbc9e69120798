//! Formats fields of `tracing` as text, up to the length that is sent.

use std::fmt::{self, Debug};

use compact_str::CompactString;
use tracing_core::field::{Field, Visit};

use crate::bounded_text::BoundedText;

/// Maximum number of fields of a span.
const MOST_FIELDS: usize = 64;

/// The fields of a span, in the order they were recorded.
#[derive(Debug, Default)]
pub(crate) struct Fields(pub(crate) Vec<(&'static str, CompactString)>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if self.0.len() < MOST_FIELDS {
            let mut text = BoundedText::with_mark();
            text.add(format_args!("{value:?}"));
            self.0.push((field.name(), text.text));
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if self.0.len() < MOST_FIELDS {
            let mut text = BoundedText::with_mark();
            text.add(format_args!("{value}"));
            self.0.push((field.name(), text.text));
        }
    }
}

/// An event as one line: its message, then its fields.
#[derive(Debug)]
pub(crate) struct Line {
    message: BoundedText,
    fields: BoundedText,
}

impl Default for Line {
    fn default() -> Self {
        Self {
            message: BoundedText::with_mark(),
            fields: BoundedText::with_mark(),
        }
    }
}

impl Line {
    /// Returns the line, or `None` if it is empty.
    pub(crate) fn text(self) -> Option<String> {
        let Self {
            message: mut line,
            fields,
        } = self;
        line.add(format_args!("{}", fields.text));
        let text = line.text.trim_start();
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
