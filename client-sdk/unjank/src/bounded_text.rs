//! Limits texts of the app to the length that is sent: given texts, and the output of the app's formatting code.

use std::borrow::Cow;
use std::fmt::{self, Display, Write};

use castaway::match_type;
use compact_str::{CompactString, ToCompactString as _};
use unjank_monitors::bounded;

/// Maximum length of a text in bytes. The rest is cut.
const MOST_BYTES: usize = 1_024;

/// Cuts a text to the length that is sent, so that the rest does not occupy memory until then.
#[inline]
pub(crate) fn cut(text: Cow<'static, str>) -> Cow<'static, str> {
    if text.len() <= MOST_BYTES {
        text
    } else {
        cut_long(text)
    }
}

#[cold]
fn cut_long(text: Cow<'static, str>) -> Cow<'static, str> {
    let mut text = text.into_owned();
    text.truncate(bounded(&text).len());
    Cow::Owned(text)
}

/// Formats a value, up to the length that is sent. If the value fails to format, returns what it wrote until then: a broken
/// `Display` must not end the app.
#[inline]
pub(crate) fn bounded_text<T: Display>(value: &T) -> CompactString {
    // Numbers are attributes most often, and take a third of the time without the formatter of the standard library.
    match_type!(value, {
        &u8 as whole => whole.to_compact_string(),
        &i8 as whole => whole.to_compact_string(),
        &u16 as whole => whole.to_compact_string(),
        &i16 as whole => whole.to_compact_string(),
        &u32 as whole => whole.to_compact_string(),
        &i32 as whole => whole.to_compact_string(),
        &u64 as whole => whole.to_compact_string(),
        &i64 as whole => whole.to_compact_string(),
        &usize as whole => whole.to_compact_string(),
        &isize as whole => whole.to_compact_string(),
        &bool as truth => truth.to_compact_string(),
        other => formatted(other),
    })
}

fn formatted(value: &dyn Display) -> CompactString {
    let mut text = BoundedText::default();
    text.add(format_args!("{value}"));
    text.text
}

/// Text up to the length that is sent. When it is full, it stops the formatter, because a value may be as large as a response.
/// Short texts need no allocation.
#[derive(Debug, Default)]
pub(crate) struct BoundedText {
    pub(crate) text: CompactString,
    /// Marks a text that was cut.
    mark: &'static str,
}

impl BoundedText {
    /// Creates an empty text that will end with `…` if it is cut.
    #[cfg(feature = "tracing")]
    pub(crate) fn with_mark() -> Self {
        Self {
            text: CompactString::default(),
            mark: "…",
        }
    }

    pub(crate) fn add(&mut self, value: fmt::Arguments<'_>) {
        // An error means that the text is full or that the value failed to format. What was written until then is kept.
        self.write_fmt(value).unwrap_or_default();
    }
}

impl Write for BoundedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let free = MOST_BYTES.saturating_sub(self.text.len());
        if text.len() <= free {
            self.text.push_str(text);
            return Ok(());
        }
        let end = text.floor_char_boundary(free.saturating_sub(self.mark.len()));
        self.text.push_str(text.get(..end).unwrap_or_default());
        if free >= self.mark.len() {
            self.text.push_str(self.mark);
        }
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Broken(usize);

    impl Display for Broken {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            for _ in 0..self.0 {
                f.write_str("abc")?;
            }
            Err(fmt::Error)
        }
    }

    #[test]
    fn a_value_that_fails_to_format_keeps_what_it_wrote() {
        assert_eq!(bounded_text(&Broken(0)), "");
        assert_eq!(bounded_text(&Broken(2)), "abcabc");
        assert_eq!(bounded_text(&Broken(5_000)).len(), MOST_BYTES);
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(bounded_text(&format!("a{}", "é".repeat(600))).len(), 1_023);
        assert_eq!(bounded_text(&7), "7");
    }
}
