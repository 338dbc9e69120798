//! Ids of installs and sessions. The SDK sends UUIDs. Apps that use OpenTelemetry or OpenFeature may have ids of any text.

use sha2::{Digest, Sha256};
use unjank_protocol::Text;
use uuid::Uuid;

/// The maximum number of bytes of an id that count, as for every text of OpenTelemetry.
const LONGEST: usize = 1_024;

/// Returns the id that a text names: the UUID that it writes, or one made of its hash. Returns `None` if the text is blank.
#[must_use]
pub fn id_of(text: &str) -> Option<Uuid> {
    let mut text = Text::from(text);
    text.truncate(LONGEST);
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    Some(Uuid::try_parse(text).unwrap_or_else(|_| hashed_id(&Sha256::digest(text))))
}

/// Returns the form of an id that conditions, percentages and queries compare. Empty if the text is blank.
#[must_use]
pub fn canonical_id(text: &str) -> String {
    id_of(text).map_or_else(String::new, |id| id.to_string())
}

/// Returns a UUID of version 8, whose bits are those of a hash.
#[must_use]
pub fn hashed_id(hash: &[u8]) -> Uuid {
    let first = hash.first_chunk().copied().unwrap_or_default();
    uuid::Builder::from_custom_bytes(first).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";

    #[test]
    fn a_text_names_one_id_however_it_is_written() {
        for text in [
            ID.to_uppercase(),
            format!("{{{ID}}}"),
            ID.replace('-', ""),
            format!(" {ID}\n"),
        ] {
            assert_eq!(canonical_id(&text), ID, "{text}");
        }
        let phone = id_of("phone-7");
        assert_eq!(phone.map(|id| id.get_version_num()), Some(8));
        assert_eq!(id_of(" phone-7 "), phone);
        assert_ne!(id_of("phone-8"), phone);
        // Its id is that of the id itself.
        assert_eq!(phone.and_then(|id| id_of(&id.to_string())), phone);
        assert_eq!(canonical_id(" "), "");
        // Bytes after the longest text do not count.
        assert_eq!(id_of(&"a".repeat(5_000)), id_of(&"a".repeat(4_000)));
    }
}
