//! Globs over host names: `*` is any run of characters, `?` any one. ASCII case does not matter.

/// A glob, ready to match.
#[derive(Clone, Debug)]
pub(crate) struct Glob(Vec<u8>);

impl Glob {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_ascii_lowercase().into_bytes())
    }

    /// Tries the shortest run first, and after a mismatch only makes the last run longer: earlier ones never need to be,
    /// so the time is bounded by the product of the lengths.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let mut glob: &[u8] = &self.0;
        let mut rest = text.as_bytes();
        let mut last_run: Option<(&[u8], &[u8])> = None;
        loop {
            match (glob.split_first(), rest.split_first()) {
                (Some((b'*', after)), _) => {
                    glob = after;
                    last_run = Some((after, rest));
                    continue;
                }
                (Some((token, after)), Some((byte, ahead)))
                    if *token == b'?' || *token == byte.to_ascii_lowercase() =>
                {
                    glob = after;
                    rest = ahead;
                    continue;
                }
                (None, None) => return true,
                _ => {}
            }
            let Some((after, [_, shorter @ ..])) = last_run else {
                return false;
            };
            last_run = Some((after, shorter));
            glob = after;
            rest = shorter;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, without cleverness.
    fn slow(glob: &[u8], text: &[u8]) -> bool {
        match (glob.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((b'*', after)), _) => {
                slow(after, text) || text.split_first().is_some_and(|(_, rest)| slow(glob, rest))
            }
            (Some((token, after)), Some((byte, rest))) => {
                (*token == b'?' || token == byte) && slow(after, rest)
            }
            _ => false,
        }
    }

    #[test]
    fn hosts_match_as_a_whole_and_without_case() {
        for (glob, host, expected) in [
            ("*.example.com", "api.Example.com", true),
            ("*.example.com", "example.com", false),
            ("*.EXAMPLE.com", "a.b.example.com", true),
            ("*.example.com", "api.example.com.evil.net", false),
            ("img?.cdn.net", "img7.cdn.net", true),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(Glob::new(glob).matches(host), expected, "{glob} {host}");
        }
    }

    proptest! {
        #[test]
        fn it_matches_as_the_definition_says(glob in "[ab*?]{0,8}", text in "[ab]{0,10}") {
            prop_assert_eq!(Glob::new(&glob).matches(&text), slow(glob.as_bytes(), text.as_bytes()));
        }
    }
}
