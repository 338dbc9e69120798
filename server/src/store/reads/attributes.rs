//! Dimensions `attribute.<name>`: the attributes that the app gives to metrics and spans. Only raw rows have them.

/// Begins the name of such a dimension.
const PREFIX: &str = "attribute.";
/// The subjects whose raw rows have the column `attributes`.
const SUBJECTS: [&str; 2] = ["metrics", "spans"];
/// Maximum length of the name of an attribute, in bytes.
pub(super) const LONGEST: usize = 64;

/// The name of an attribute that can be queried: letters, digits, `_`, `-` and `.`, at most 64 bytes. Stored inline, because queries copy
/// their dimensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct AttributeName {
    /// The name of the dimension.
    bytes: [u8; PREFIX.len() + LONGEST],
    length: usize,
}

/// Returns the attribute that a dimension of a subject names, if the subject has attributes and the name of the attribute can be queried. An
/// event without the attribute has the empty text.
pub(super) fn attribute(subject: &str, dimension: &str) -> Option<AttributeName> {
    AttributeName::parse(dimension).filter(|_| has_attributes(subject))
}

/// Returns whether the raw rows of a subject have attributes.
pub(super) fn has_attributes(subject: &str) -> bool {
    SUBJECTS.contains(&subject)
}

impl AttributeName {
    /// Parses the name of a dimension.
    fn parse(name: &str) -> Option<Self> {
        let attribute = name.strip_prefix(PREFIX)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        // The name becomes a part of the statement, so nothing else may pass.
        if !(1..=LONGEST).contains(&attribute.len()) || !attribute.bytes().all(is_plain) {
            return None;
        }
        let mut bytes = [0; PREFIX.len() + LONGEST];
        bytes[..name.len()].copy_from_slice(name.as_bytes());
        let length = name.len();
        Some(Self { bytes, length })
    }

    /// Returns the name of the dimension.
    pub(super) fn of_dimension(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.length]).unwrap_or_default()
    }

    /// Returns the value of the attribute in a raw row.
    pub(super) fn sql(&self) -> String {
        let name = self.of_dimension();
        let attribute = name.strip_prefix(PREFIX).unwrap_or(name);
        format!("s.attributes['{attribute}']")
    }
}

#[cfg(test)]
mod tests {
    use super::super::subject;
    use super::*;
    use crate::store::reads::define::{Dimension, Subject};

    fn dimension(subject: &Subject, name: &str) -> Option<Dimension> {
        attribute(subject.name, name).map(Dimension::of_attribute)
    }

    #[test]
    fn only_plain_names_of_subjects_with_attributes_are_dimensions() {
        let metrics = subject("metrics").unwrap();
        let found = dimension(metrics, "attribute.input").unwrap();
        assert_eq!(found.name(), "attribute.input");
        assert_eq!(found.raw_value(), "s.attributes['input']");
        for name in [
            "attribute.",
            "attribute.a'b",
            "attribute.a\\",
            "attribute.a]",
            "input",
            "attribute.é",
        ] {
            assert!(dimension(metrics, name).is_none(), "{name}");
        }
        assert!(dimension(metrics, &format!("attribute.{}", "a".repeat(65))).is_none());
        assert!(dimension(subject("janks").unwrap(), "attribute.input").is_none());
        assert!(dimension(subject("spans").unwrap(), "attribute.input").is_some());
    }
}
