//! Just enough SQL to route a statement: where an INSERT's data begins, which format a SELECT asks for, where a second
//! statement would begin. The engine parses and checks everything else.

use std::ops::Range;

/// A piece of the text that is not a space or a comment.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Token {
    kind: Kind,
    range: Range<usize>,
    /// How many parentheses, brackets and braces are open around it; those that open or close one stand outside.
    depth: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A keyword, a bare name or a number.
    Word,
    /// A quoted string or name.
    Quoted,
    Sign(u8),
    /// A string, name or comment whose end is not in the text.
    Open,
}

struct Tokens<'a> {
    text: &'a [u8],
    position: usize,
    depth: usize,
}

impl<'a> Tokens<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            position: 0,
            depth: 0,
        }
    }

    fn at(&self, offset: usize) -> u8 {
        self.text.get(self.position + offset).copied().unwrap_or(0)
    }

    /// Moves past spaces and comments. `false` when a comment does not end.
    fn skip_blanks(&mut self) -> bool {
        loop {
            match (self.at(0), self.at(1)) {
                _ if self.position >= self.text.len() => return true,
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c, _) => self.position += 1,
                (b'-', b'-') | (b'#', b' ' | b'!') => self.skip_past(b"\n"),
                (b'/', b'*') if !self.skip_comment() => return false,
                (b'/', b'*') => {}
                _ => return true,
            }
        }
    }

    /// Moves past a comment in slashes and stars. `false` when it does not end.
    fn skip_comment(&mut self) -> bool {
        self.position += 2;
        let start = self.position;
        self.skip_past(b"*/");
        let comment = self.text.get(start..self.position).unwrap_or_default();
        comment.ends_with(b"*/")
    }

    fn skip_past(&mut self, end: &[u8]) {
        let rest = self.text.get(self.position..).unwrap_or_default();
        let found = rest.windows(end.len()).position(|window| window == end);
        self.position = found.map_or(self.text.len(), |at| self.position + at + end.len());
    }

    /// Moves past a quoted string or name, the position being at its opening quote. `false` when it does not end.
    fn skip_quoted(&mut self, quote: u8) -> bool {
        self.position += 1;
        while self.position < self.text.len() {
            let (first, second) = (self.at(0), self.at(1));
            let escaped = first == b'\\' || (first == quote && second == quote);
            self.position += if escaped { 2 } else { 1 };
            if first == quote && !escaped {
                return true;
            }
        }
        self.position = self.text.len();
        false
    }

    /// `$tag$ … $tag$`. `None` when this is no such string.
    fn skip_heredoc(&mut self) -> Option<bool> {
        let rest = self.text.get(self.position + 1..)?;
        let length = rest.iter().position(|&byte| byte == b'$')?;
        if !rest.iter().take(length).all(|&byte| is_word(byte)) {
            return None;
        }
        let tag = self
            .text
            .get(self.position..self.position + length + 2)?
            .to_vec();
        self.position += tag.len();
        let start = self.position;
        self.skip_past(&tag);
        Some(self.text.get(start..self.position)?.ends_with(&tag))
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let from = self.position;
        let open = |this: &Self| {
            Some(Token {
                kind: Kind::Open,
                range: from..this.text.len(),
                depth: this.depth,
            })
        };
        if !self.skip_blanks() {
            return open(self);
        }
        let start = self.position;
        let first = *self.text.get(start)?;
        let mut depth = self.depth;
        let kind = match first {
            b'\'' | b'`' | b'"' if self.skip_quoted(first) => Kind::Quoted,
            b'\'' | b'`' | b'"' => return open(self),
            b'$' if matches!(self.skip_heredoc(), Some(true)) => Kind::Quoted,
            _ if self.position != start => return open(self),
            byte if is_word(byte) => {
                while is_word(self.at(0)) && self.position < self.text.len() {
                    self.position += 1;
                }
                Kind::Word
            }
            sign => {
                self.position += 1;
                match sign {
                    b'(' | b'[' | b'{' => self.depth += 1,
                    b')' | b']' | b'}' => {
                        self.depth = self.depth.saturating_sub(1);
                        depth = self.depth;
                    }
                    _ => {}
                }
                Kind::Sign(sign)
            }
        };
        Some(Token {
            kind,
            range: start..self.position,
            depth,
        })
    }
}

/// An INSERT whose data follows its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InsertHead {
    /// The statement without FORMAT, VALUES and data.
    pub(crate) statement: String,
    /// The format of the data, when the text names one.
    pub(crate) format: Option<String>,
    /// Where in the text the data begins.
    pub(crate) data: usize,
}

/// What the beginning of a request's text is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// More of the text is needed to tell.
    Unclear,
    Insert(InsertHead),
    /// An INSERT that says neither a format nor VALUES nor SELECT: what follows, if anything, is data.
    BareInsert,
    /// Anything else, to be read to its end.
    Statement,
}

/// Reads the head of a text of which `whole` says whether it is all there.
pub(crate) fn head(text: &[u8], whole: bool) -> Head {
    let mut tokens = Tokens::new(text).filter(|token| token.depth == 0 || token.kind == Kind::Open);
    let Some(first) = tokens.next() else {
        return if whole {
            Head::Statement
        } else {
            Head::Unclear
        };
    };
    // A word at the very end may go on in the next piece.
    let cut = |token: &Token| !whole && (token.range.end >= text.len() || token.kind == Kind::Open);
    if cut(&first) {
        return Head::Unclear;
    }
    if !is(text, &first, "INSERT") {
        return Head::Statement;
    }
    let unclear = if whole {
        Head::Statement
    } else {
        Head::Unclear
    };
    let mut in_name = true;
    let mut previous_dot = false;
    for token in tokens.by_ref() {
        if cut(&token) || token.kind == Kind::Open {
            return unclear;
        }
        if is(text, &token, "INTO") || is(text, &token, "TABLE") || is(text, &token, "FUNCTION") {
            continue;
        }
        // The first name after INTO is the table's, whatever it says; so is what stands behind a dot.
        if in_name || previous_dot || token.kind == Kind::Sign(b'.') {
            in_name = false;
            previous_dot = token.kind == Kind::Sign(b'.');
            continue;
        }
        if is(text, &token, "VALUES") {
            return Head::Insert(InsertHead {
                statement: part(text, 0..token.range.start),
                format: Some("Values".to_owned()),
                data: token.range.end,
            });
        }
        if is(text, &token, "FORMAT") {
            return formatted(text, whole, token.range);
        }
        if ["SELECT", "WITH", "FROM", "WATCH"]
            .iter()
            .any(|word| is(text, &token, word))
        {
            return Head::Statement;
        }
    }
    if whole {
        Head::BareInsert
    } else {
        Head::Unclear
    }
}

/// Whether `text` goes on a statement rather than being data for it.
pub(crate) fn goes_on(text: &[u8]) -> bool {
    let first = Tokens::new(text).next();
    first.is_some_and(|token| {
        ["FORMAT", "VALUES", "SELECT", "WITH", "SETTINGS"]
            .iter()
            .any(|word| is(text, &token, word))
    })
}

/// An INSERT's head from its FORMAT on: the name, perhaps SETTINGS, then the data.
fn formatted(text: &[u8], whole: bool, format: Range<usize>) -> Head {
    let unclear = if whole {
        Head::Statement
    } else {
        Head::Unclear
    };
    let mut tokens = Tokens {
        text,
        position: format.end,
        depth: 0,
    };
    let Some(name) = tokens
        .next()
        .filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted))
    else {
        return unclear;
    };
    if !whole && name.range.end >= text.len() {
        return Head::Unclear;
    }
    let mut end = name.range.end;
    let mut settings = String::new();
    if let Some(after) = settings_clause(text, end) {
        settings = format!(" {}", part(text, end..after).trim());
        end = after;
    }
    let Some(data) = data_start(text, end, whole) else {
        return Head::Unclear;
    };
    Head::Insert(InsertHead {
        statement: part(text, 0..format.start) + &settings,
        format: Some(part(text, name.range).trim_matches('`').to_owned()),
        data,
    })
}

/// Data begins after the line break that follows the head, or else after the spaces. `None` when more text is needed.
fn data_start(text: &[u8], end: usize, whole: bool) -> Option<usize> {
    let rest = text.get(end..).unwrap_or_default();
    let blanks = rest
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t' | 0x0c))
        .count();
    let breaks = match rest.get(blanks..).unwrap_or_default() {
        [b'\r', b'\n', ..] => 2,
        [b'\n', ..] | [b'\r', _, ..] => 1,
        [] | [b'\r'] if !whole => return None,
        _ => 0,
    };
    Some(end + blanks + breaks)
}

/// Where `SETTINGS name = value, …` right after `from` ends, when it stands there.
fn settings_clause(text: &[u8], from: usize) -> Option<usize> {
    let mut tokens = Tokens {
        text,
        position: from,
        depth: 0,
    };
    let first = tokens.next()?;
    if !is(text, &first, "SETTINGS") {
        return None;
    }
    loop {
        tokens.next().filter(|token| token.kind == Kind::Word)?;
        tokens
            .next()
            .filter(|token| token.kind == Kind::Sign(b'='))?;
        let value = tokens
            .next()
            .filter(|token| matches!(token.kind, Kind::Word | Kind::Quoted))?;
        let mut look = Tokens {
            text,
            position: tokens.position,
            depth: 0,
        };
        match look.next() {
            Some(token) if token.kind == Kind::Sign(b',') => tokens.position = look.position,
            _ => return Some(value.range.end),
        }
    }
}

/// What to do with a whole statement that carries no data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outline {
    pub(crate) kind: StatementKind,
    /// The format the statement itself asks for.
    pub(crate) format: Option<String>,
    /// Where an output clause belongs: before FORMAT, or at the end.
    pub(crate) output: usize,
    /// Where the statement ends, without a semicolon at its end.
    pub(crate) end: usize,
    /// It asks to write to, or to read from, a file of the client's.
    pub(crate) names_client_file: bool,
    /// Another statement follows.
    pub(crate) several: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatementKind {
    Empty,
    /// A SELECT, in any of its spellings.
    Select,
    /// SHOW, DESCRIBE, EXPLAIN, EXISTS: reads, with a small answer.
    Look,
    /// Everything that changes something.
    Change,
    /// No statement: a single word, or a sign. (The library takes some, such as `exit`, for commands to a console.)
    Nonsense,
}

/// Reads a whole statement.
pub(crate) fn outline(text: &[u8]) -> Outline {
    let mut outline = Outline {
        kind: StatementKind::Empty,
        format: None,
        output: 0,
        end: 0,
        names_client_file: false,
        several: false,
    };
    let mut ended = false;
    let mut words: Vec<Token> = Vec::new();
    for token in Tokens::new(text).filter(|token| token.depth == 0) {
        if token.kind == Kind::Sign(b';') {
            ended = true;
            continue;
        }
        if ended {
            outline.several = true;
            break;
        }
        outline.end = token.range.end;
        words.push(token);
    }
    outline.output = outline.end;
    let Some(first) = words.first() else {
        return outline;
    };
    outline.kind = kind(text, first, &words);
    outline.names_client_file = words.windows(2).any(|pair| {
        let [first, second] = pair else { return false };
        is(text, first, "INTO") && is(text, second, "OUTFILE")
            || is(text, first, "FROM") && is(text, second, "INFILE")
    });
    let at = words.windows(2).rposition(|pair| matches!(pair, [first, second] if is(text, first, "FORMAT") && second.kind == Kind::Word));
    if let Some(at) = at
        && at > 0
        && let (Some(keyword), Some(name)) = (words.get(at), words.get(at + 1))
        && words
            .get(at + 2)
            .is_none_or(|token| is(text, token, "SETTINGS"))
    {
        outline.output = keyword.range.start;
        outline.format = Some(part(text, name.range.clone()));
    }
    outline
}

fn kind(text: &[u8], first: &Token, words: &[Token]) -> StatementKind {
    let starts = |options: &[&str]| options.iter().any(|word| is(text, first, word));
    if starts(&["SELECT", "FROM"]) || first.kind == Kind::Sign(b'(') {
        StatementKind::Select
    } else if starts(&["WITH"]) {
        let inserts = words.iter().any(|token| is(text, token, "INSERT"));
        if inserts {
            StatementKind::Change
        } else {
            StatementKind::Select
        }
    } else if starts(&["SHOW", "DESCRIBE", "DESC", "EXPLAIN", "EXISTS"]) {
        StatementKind::Look
    } else if words.len() < 2 || first.kind != Kind::Word {
        StatementKind::Nonsense
    } else {
        StatementKind::Change
    }
}

fn is(text: &[u8], token: &Token, word: &str) -> bool {
    token.kind == Kind::Word
        && text
            .get(token.range.clone())
            .is_some_and(|bytes| bytes.eq_ignore_ascii_case(word.as_bytes()))
}

fn part(text: &[u8], range: Range<usize>) -> String {
    String::from_utf8_lossy(text.get(range).unwrap_or_default()).into_owned()
}

/// A name in backticks.
pub(crate) fn quote_name(name: &str) -> String {
    format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
}

/// A string in quotes.
pub(crate) fn quote_text(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
#[path = "sql_tests.rs"]
mod tests;
