//! Globs that match a whole text, such as the name of a span, model or host: `*` matches any characters, `?` one character. ASCII case is ignored.

/// A parsed glob.
#[derive(Clone, Debug)]
pub struct Glob(Box<[Token]>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Run,
    One,
    Char(char),
}

impl Glob {
    /// Parses a glob. Every text is a valid glob.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut tokens: Vec<_> = text
            .chars()
            .map(|char| match char {
                '*' => Token::Run,
                '?' => Token::One,
                char => Token::Char(char.to_ascii_lowercase()),
            })
            .collect();
        tokens.dedup_by(|next, token| *token == Token::Run && *next == Token::Run);
        Self(tokens.into())
    }

    /// Tries the shortest match of each `*` first. After a mismatch, only the last `*` takes more characters, which is sufficient,
    /// so the time is bounded by the product of the lengths.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        let mut tokens: &[Token] = &self.0;
        let mut rest = text.chars();
        let mut last_run = None;
        loop {
            if let Some((Token::Run, after)) = tokens.split_first() {
                tokens = after;
                last_run = Some((after, rest.clone()));
                continue;
            }
            let mut ahead = rest.clone();
            match (tokens.split_first(), ahead.next()) {
                (None, None) => return true,
                (Some((token, after)), Some(char)) if token.takes(char) => {
                    tokens = after;
                    rest = ahead;
                    continue;
                }
                _ => {}
            }
            let Some((after, start)) = &mut last_run else {
                return false;
            };
            if start.next().is_none() {
                return false;
            }
            tokens = after;
            rest = start.clone();
        }
    }
}

impl Token {
    fn takes(self, char: char) -> bool {
        match self {
            Self::Run | Self::One => true,
            Self::Char(own) => own == char.to_ascii_lowercase(),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn runs_and_single_characters() {
        for (glob, text, expected) in [
            ("Pixel 8", "pixel 8", true),
            ("Pixel 8", "Pixel 8 Pro", false),
            ("Pixel*", "Pixel 8 Pro", true),
            ("SM-G99?B", "SM-G991B", true),
            ("SM-G99?B", "SM-G99B", false),
            ("*Pro*Max", "iPhone 15 Pro Max", true),
            ("*a*b", "aab ab c", false),
            ("?", "é", true),
            ("", "", true),
            ("*", "", true),
            ("", "a", false),
        ] {
            assert_eq!(Glob::new(glob).matches(text), expected, "{glob} {text}");
        }
    }

    proptest! {
        #[test]
        fn it_matches_as_a_regular_expression_does(glob in "[abé*?.]{0,8}", text in "[abé.]{0,10}") {
            let regex: String = glob.chars().map(|char| match char {
                '*' => ".*".to_owned(),
                '?' => ".".to_owned(),
                char => regex::escape(&char.to_string()),
            }).collect();
            let expected = regex::Regex::new(&format!(r"(?s)\A{regex}\z")).unwrap().is_match(&text);
            prop_assert_eq!(Glob::new(&glob).matches(&text), expected);
        }
    }
}
