//! Keys of obfuscated functions, under which spans are stored. Mappings give the keys their readable names.

use sha2::{Digest, Sha256};
use unjank_protocol::Frame;
use unjank_symbols::map_id_of;

/// The number of digits of a key, which distinguish functions and builds of one project.
const DIGITS: usize = 12;
/// The maximum size of the class and the function together, in bytes. Names that R8 gives are short.
const MOST_BYTES: usize = 256;

/// Returns the key of a function of an obfuscated app: `class.function@`, followed by digits of a hash of the class, the function and the id
/// of its mapping. Returns `None` for other functions.
#[must_use]
pub fn function_key(function: &Frame<'_>) -> Option<String> {
    let id = map_id_of(&function.file)?;
    let (class, name) = (function.class.as_str(), function.function.as_str());
    if class.is_empty() || name.is_empty() || class.len() + name.len() > MOST_BYTES {
        return None;
    }
    // The hash is cryptographic, so that a device cannot send another function with the same key: neither would have a readable name.
    let mut digest = Sha256::new();
    for part in [class, name, id.as_str()] {
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    let digest = format!("{:x}", digest.finalize());
    Some(format!("{class}.{name}@{}", digest.get(..DIGITS)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_functions_of_obfuscated_apps_have_a_key() {
        let key = |class: &str, function: &str, file: &str| {
            function_key(&Frame {
                class: class.to_owned().into(),
                function: function.to_owned().into(),
                file: file.to_owned().into(),
                ..Frame::default()
            })
        };
        let file = "r8-map-id-5A7D1B0C9E8F70615243342516078F9EADBCCBDA0F1E2D3C4B5A69788796A5B4";
        let known = key("a.b", "c", file).unwrap_or_default();
        let (name, digits) = known.split_once('@').unwrap_or_default();
        assert_eq!((name, digits.len()), ("a.b.c", 12));
        // The same id in another form.
        assert_eq!(key("a.b", "c", &file.to_lowercase()), Some(known.clone()));
        // Another function or another build with the same text.
        assert_ne!(key("a", "b.c", file), Some(known.clone()));
        assert_ne!(key("a.b", "c", &file.replace("A5B4", "A5B5")), Some(known));
        assert_eq!(key("", "c", file), None);
        assert_eq!(key("a.b", "", file), None);
        assert_eq!(key("a.b", &"c".repeat(300), file), None);
        assert_eq!(key("a.b", "c", "SourceFile"), None);
        assert_eq!(key("a.b", "c", "r8-map-id-"), None);
    }
}
