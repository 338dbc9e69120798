//! How deeply a text nests.
//!
//! The reader of functions calls itself for each bracket, operator and `else` around a place, and the operating system ends a process without
//! stack. This reader goes through the text once, without a grammar. It guesses what `/` means and where a statement ends, so the depth is an
//! estimate. It is rather too large than too small.

use std::mem;

/// A regular expression is not longer than this.
const MAX_PATTERN_BYTES: usize = 16 << 10;

/// A value follows these words.
const PREFIXES: [&[u8]; 16] = [
    b"async",
    b"await",
    b"case",
    b"class",
    b"delete",
    b"extends",
    b"function",
    b"in",
    b"instanceof",
    b"new",
    b"of",
    b"return",
    b"throw",
    b"typeof",
    b"void",
    b"yield",
];
/// A statement follows these words, or their brackets.
const STATEMENTS: [&[u8]; 6] = [b"do", b"else", b"for", b"if", b"while", b"with"];
/// These words at the start of a line, or behind a block, continue what is before them.
const CONTINUING: [&[u8]; 6] = [b"catch", b"else", b"finally", b"in", b"instanceof", b"of"];

/// Whether something in the text is within more than `most` brackets, operators and statements.
pub(super) fn is_deeper(text: &str, most: usize) -> bool {
    let mut reader = Reader {
        rest: text.as_bytes(),
        levels: vec![Level::default()],
        depth: 0,
        last: Last::Operator,
    };
    while reader.read_one() {
        if reader.depth > most {
            return true;
        }
    }
    false
}

/// What is between two brackets.
#[derive(Default)]
struct Level {
    /// The operators and brackets of the expression up to here.
    of_expression: usize,
    /// The statements that are parts of each other, without brackets between them.
    of_statement: usize,
    body: Body,
    /// Whether the next curly bracket begins the body of a class.
    is_class_head: bool,
    /// Whether a value is assigned. In the body of a class, this tells `a = {} * b` from `a() {} *b() {}`.
    is_assignment: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Body {
    #[default]
    Other,
    Template,
    Class,
}

/// What was read last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A symbol behind which a value begins, or nothing.
    Operator,
    /// A word behind which a value begins.
    Prefix,
    /// The word `class`.
    Class,
    /// The dot in front of a property, whose name may be any word.
    Dot,
    Name,
    Value,
    Semicolon,
    RoundBracket,
    CurlyBracket,
}

struct Reader<'t> {
    rest: &'t [u8],
    /// The outermost first.
    levels: Vec<Level>,
    /// The sum of all levels.
    depth: usize,
    last: Last,
}

impl Reader<'_> {
    /// Reads a word, a symbol or a text. `false` at the end.
    fn read_one(&mut self) -> bool {
        let is_new_line = self.skip_blanks();
        let code = self.rest;
        let Some((&first, after)) = code.split_first() else {
            return false;
        };
        let word = word_at(code);
        if let Some(word) = word
            && self.last == Last::Dot
        {
            self.read(word.len(), Last::Name);
            return true;
        }
        self.end_statement(word, is_new_line);
        if let Some(word) = word {
            self.word(word);
            return true;
        }
        // A member with the name `class`.
        if self.last == Last::Class && first != b'{' {
            self.set_class_head(false);
        }
        match first {
            b'(' | b'[' => self.open(1, Body::Other),
            b'{' => {
                let body = match self.set_class_head(false) {
                    true => Body::Class,
                    false => Body::Other,
                };
                self.open(1, body);
            }
            b')' | b']' | b'}' => self.close(first),
            b'`' => {
                // The value in front of a template is a function that is called.
                if !self.is_value_next() {
                    self.add_to_expression();
                }
                self.template(1);
            }
            b'.' if code.starts_with(b"...") => {
                self.add_to_expression();
                self.read(3, Last::Operator);
            }
            b',' => {
                self.end_expression();
                self.read(1, Last::Operator);
            }
            b';' => self.read(1, Last::Semicolon),
            b'"' | b'\'' => self.read(text_length(code).unwrap_or(1), Last::Value),
            b'/' => {
                let pattern = self.is_value_next().then(|| pattern_length(code));
                match pattern.flatten() {
                    Some(length) => self.read(length, Last::Value),
                    None => self.symbol(first, after),
                }
            }
            symbol => self.symbol(symbol, after),
        }
        true
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
    }

    fn read(&mut self, bytes: usize, last: Last) {
        self.skip(bytes);
        self.last = last;
    }

    /// Skips blanks and comments. Returns whether a line ended.
    fn skip_blanks(&mut self) -> bool {
        let from = self.rest;
        loop {
            self.rest = self.rest.trim_ascii_start();
            let comment = match self.rest {
                [b'/', b'/', line @ ..] => {
                    let end = (0..line.len()).find(|at| is_line_end(line, *at));
                    end.map_or(self.rest.len(), |end| end + 2)
                }
                [b'/', b'*', comment @ ..] => {
                    let end = comment.windows(2).position(|end| end == b"*/");
                    end.map_or(self.rest.len(), |end| end + 4)
                }
                other => match blank(other, 0) {
                    0 => break,
                    bytes => bytes,
                },
            };
            self.skip(comment);
        }
        let skipped = from.len() - self.rest.len();
        (0..skipped).any(|at| is_line_end(from, at))
    }

    /// Ends the statement before a word or symbol that does not continue it.
    fn end_statement(&mut self, word: Option<&[u8]>, is_new_line: bool) {
        let is_block = matches!(self.last, Last::Semicolon | Last::CurlyBracket);
        if word.is_some_and(|word| CONTINUING.contains(&word)) {
            if is_block && word == Some(&b"else"[..]) {
                self.end_expression();
            }
            return;
        }
        let is_other_line = is_new_line && word.is_some();
        match self.last {
            Last::Semicolon => self.end_all(),
            Last::CurlyBracket if word.is_some() || self.is_between_members() => self.end_all(),
            Last::Name | Last::Value if is_other_line => self.end_all(),
            // What follows may be the statement that belongs to `if (…)`.
            Last::RoundBracket if is_other_line => self.end_expression(),
            _ if word == Some(&b"case"[..]) => self.end_all(),
            _ => {}
        }
    }

    /// Whether a bracket that was closed was the body of a method of a class.
    fn is_between_members(&self) -> bool {
        let level = self.levels.last();
        level.is_some_and(|level| level.body == Body::Class && !level.is_assignment)
    }

    /// Notes whether the head of a class is open. Returns whether it was.
    fn set_class_head(&mut self, is_open: bool) -> bool {
        let level = self.levels.last_mut();
        level.is_some_and(|level| mem::replace(&mut level.is_class_head, is_open))
    }

    fn end_expression(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            self.depth -= mem::take(&mut level.of_expression);
        }
    }

    fn end_all(&mut self) {
        self.end_expression();
        if let Some(level) = self.levels.last_mut() {
            self.depth -= mem::take(&mut level.of_statement);
            level.is_assignment = false;
        }
    }

    fn add_to_expression(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.of_expression += 1;
            self.depth += 1;
        }
    }

    fn word(&mut self, word: &[u8]) {
        if STATEMENTS.contains(&word) {
            if let Some(level) = self.levels.last_mut() {
                level.of_statement += 1;
                self.depth += 1;
            }
            return self.read(word.len(), Last::Prefix);
        }
        if PREFIXES.contains(&word) {
            self.add_to_expression();
            if word == b"class" {
                self.set_class_head(true);
                return self.read(word.len(), Last::Class);
            }
            return self.read(word.len(), Last::Prefix);
        }
        self.read(word.len(), Last::Name);
    }

    fn open(&mut self, bytes: usize, body: Body) {
        self.add_to_expression();
        self.levels.push(Level {
            body,
            ..Level::default()
        });
        self.read(bytes, Last::Operator);
    }

    fn close(&mut self, bracket: u8) {
        self.end_all();
        let closed = match self.levels.len() {
            0 | 1 => None,
            _ => self.levels.pop(),
        };
        let is_curly = bracket == b'}';
        if is_curly && closed.is_some_and(|level| level.body == Body::Template) {
            return self.template(1);
        }
        let last = match is_curly {
            true => Last::CurlyBracket,
            false => Last::RoundBracket,
        };
        self.read(1, last);
    }

    /// Reads the text of a template from this byte on, up to its end or to an expression in it.
    fn template(&mut self, from: usize) {
        let mut at = from;
        loop {
            match self.rest.get(at..).unwrap_or_default() {
                [b'\\', _, ..] => at += 2,
                [b'$', b'{', ..] => return self.open(at + 2, Body::Template),
                [b'`', ..] => return self.read(at + 1, Last::Value),
                [_, ..] => at += 1,
                [] => return self.read(at, Last::Value),
            }
        }
    }

    fn symbol(&mut self, symbol: u8, after: &[u8]) {
        let is_twice = after.first() == Some(&symbol);
        match symbol {
            b'\\' => self.read(2, Last::Operator),
            // It may be behind a value as well as before one.
            b'+' | b'-' if is_twice => {
                self.add_to_expression();
                self.read(2, Last::Value);
            }
            // The last letter of `===` counts, and each one of `!!`.
            _ => {
                if !is_twice || matches!(symbol, b'!' | b'~') {
                    self.add_to_expression();
                }
                if symbol == b'='
                    && let Some(level) = self.levels.last_mut()
                {
                    level.is_assignment = true;
                    level.is_class_head = false;
                }
                let last = match symbol {
                    b'.' => Last::Dot,
                    _ => Last::Operator,
                };
                self.read(1, last);
            }
        }
    }

    /// Whether a `/` begins a regular expression.
    fn is_value_next(&self) -> bool {
        matches!(
            self.last,
            Last::Operator | Last::Prefix | Last::Class | Last::Semicolon | Last::CurlyBracket
        )
    }
}

/// Whether a line ends at this place of the code.
fn is_line_end(code: &[u8], at: usize) -> bool {
    matches!(
        code.get(at..),
        Some([b'\n' | b'\r', ..] | [0xe2, 0x80, 0xa8 | 0xa9, ..])
    )
}

/// The word at the start of the code, with the `#` of a private name.
fn word_at(code: &[u8]) -> Option<&[u8]> {
    let is_letter =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..=0xff);
    let private = usize::from(code.starts_with(b"#"));
    let is_in_word = |at| code.get(at).is_some_and(|byte| is_letter(*byte)) && blank(code, at) == 0;
    let end = (private..).find(|at| !is_in_word(*at))?;
    code.get(..end).filter(|_| end > private)
}

/// The length of the blank beyond ASCII at this place of the code: an end of a line, a space that does not break, or the mark at the start of a file.
fn blank(code: &[u8], at: usize) -> usize {
    match code.get(at..) {
        Some([0xe2, 0x80, 0xa8 | 0xa9, ..] | [0xef, 0xbb, 0xbf, ..]) => 3,
        Some([0xc2, 0xa0, ..]) => 2,
        _ => 0,
    }
}

/// The length of the text in quotes at the start of the code. `None` if it does not end in its line.
fn text_length(code: &[u8]) -> Option<usize> {
    let quote = code.first()?;
    let mut at = 1;
    loop {
        match code.get(at..)? {
            [] | [b'\n', ..] => return None,
            [b'\\', _, ..] => at += 2,
            [byte, ..] => {
                at += 1;
                if byte == quote {
                    return Some(at);
                }
            }
        }
    }
}

/// The length of the regular expression at the start of the code. `None` if it does not end in its line.
fn pattern_length(code: &[u8]) -> Option<usize> {
    let (mut at, mut is_in_set) = (1, false);
    while at < MAX_PATTERN_BYTES {
        if is_line_end(code, at) {
            return None;
        }
        match code.get(at..)? {
            [] => return None,
            [b'\\', _, ..] => at += 1,
            [b'[', ..] => is_in_set = true,
            [b']', ..] => is_in_set = false,
            [b'/', ..] if !is_in_set => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests;
