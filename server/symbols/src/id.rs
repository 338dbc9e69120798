//! The ids by which frames and symbol files find each other.

use std::fmt;

/// The id of one build of a module, by which frames and symbol files find each other: a GNU build id, the UUID of a Mach-O image, the
/// GUID and age of a PDB, the debug id of a JavaScript bundle, or the id of an R8 mapping.
///
/// Tools write the same id in several ways. Here it is lower-case hexadecimal without dashes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SymbolId(String);

impl SymbolId {
    /// A SHA-512 in hexadecimal.
    const LONGEST: usize = 128;
    /// R8 shortens the id of a mapping to seven characters.
    const SHORTEST: usize = 7;

    /// Reads an id in any of its forms, also in braces, as a URN, and with blanks around it. Returns `None` if the text is not hexadecimal,
    /// or shorter than 7 or longer than 128 digits.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = bare(text.trim());
        if text.len() > 2 * Self::LONGEST {
            return None;
        }
        let digits: String = (text.chars())
            .filter(|letter| *letter != '-')
            .map(|letter| letter.to_ascii_lowercase())
            .collect();
        let is_id = digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            && (Self::SHORTEST..=Self::LONGEST).contains(&digits.len())
            // Linkers write zeros when they are told to leave the id out.
            && digits.bytes().any(|byte| byte != b'0');
        is_id.then_some(Self(digits))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the text of an id without the braces of a GUID, or without the prefix of a URN.
fn bare(text: &str) -> &str {
    const URN: &str = "urn:uuid:";
    if let Some((prefix, rest)) = text.split_at_checked(URN.len())
        && prefix.eq_ignore_ascii_case(URN)
    {
        return rest;
    }
    let inner = text
        .strip_prefix('{')
        .and_then(|text| text.strip_suffix('}'));
    inner.unwrap_or(text)
}

impl fmt::Display for SymbolId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::SymbolId;

    #[test]
    fn forms_of_one_id_are_equal() {
        let forms = [
            "67E9247C-814E-392B-A027-DBDE6748FCBF",
            "{67E9247C-814E-392B-A027-DBDE6748FCBF}",
            "{67e9247c814e392ba027dbde6748fcbf}",
            "urn:uuid:67e9247c-814e-392b-a027-dbde6748fcbf",
            "URN:UUID:67E9247C-814E-392B-A027-DBDE6748FCBF",
            " 67e9247c-814e-392b-a027-dbde6748fcbf\n",
        ];
        let id = SymbolId::parse("67e9247c814e392ba027dbde6748fcbf");
        assert!(id.is_some());
        for form in forms {
            assert_eq!(SymbolId::parse(form), id, "{form}");
        }
    }

    #[test]
    fn texts_that_are_no_ids_are_refused() {
        let long = "a".repeat(129);
        for text in [
            "",
            "-",
            "abc",
            "main.js",
            "../../etc",
            "0000000000",
            "{67e9247c",
            "67e9247c}",
            "urn:uuid:",
            "urn:67e9247c",
            "{urn:uuid:67e9247c}",
            &long,
        ] {
            assert_eq!(SymbolId::parse(text), None, "{text}");
        }
    }
}
