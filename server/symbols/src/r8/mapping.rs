//! Reads a mapping into tables.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use proguard::{LineMapping, ProguardRecord};
use serde::Deserialize;

use super::tables::{LineRange, Lines, Note, Written};
use crate::words::TextWriter;

pub(super) fn read(data: &[u8]) -> Written {
    let mut reader = Reader::default();
    for line in lines(data) {
        reader.read(line);
    }
    reader.finish()
}

/// Longer lines are skipped. A file of one line could otherwise take as much memory as it likes.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Returns the lines of a mapping.
pub(super) fn lines(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    // Editors of Windows put a byte order mark in front.
    let data = data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data);
    data.split(|byte| matches!(byte, b'\n' | b'\r'))
        .filter(|line| !line.is_empty() && line.len() <= MAX_LINE_BYTES)
}

/// A comment in which R8 notes something about the class or method above.
#[derive(Deserialize)]
#[serde(tag = "id")]
enum Comment<'d> {
    #[serde(rename = "sourceFile")]
    SourceFile {
        #[serde(borrow, rename = "fileName")]
        file_name: Cow<'d, str>,
    },
    #[serde(rename = "com.android.tools.r8.synthesized")]
    Synthesized,
    #[serde(rename = "com.android.tools.r8.outline")]
    Outline,
    #[serde(rename = "com.android.tools.r8.outlineCallsite")]
    OutlineCallSite { positions: BTreeMap<String, u32> },
    #[serde(rename = "com.android.tools.r8.rewriteFrame")]
    RewriteFrame {
        conditions: Vec<String>,
        actions: Vec<String>,
    },
    #[serde(other)]
    Other,
}

/// The original of a method.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Method<'d> {
    class: Option<&'d str>,
    name: &'d str,
    types: (&'d str, &'d str),
}

#[derive(Default)]
struct Class<'d> {
    original: &'d str,
    /// By obfuscated name, in the order of the mapping.
    methods: BTreeMap<&'d str, Vec<LineRange>>,
}

#[derive(Default)]
struct Reader<'d> {
    classes: BTreeMap<&'d str, Class<'d>>,
    files: BTreeMap<&'d str, Cow<'d, str>>,
    signatures: HashMap<Method<'d>, u32>,
    texts: TextWriter<'d>,
    /// The obfuscated name of the class whose lines follow.
    class: Option<&'d str>,
    /// The obfuscated name of the method that the last line was about.
    current: Option<&'d str>,
    written: Written,
}

impl<'d> Reader<'d> {
    fn read(&mut self, line: &'d [u8]) {
        let comment = line.trim_ascii_start().strip_prefix(b"#");
        if let Some(comment) = comment {
            let comment = comment.trim_ascii_start();
            if comment.starts_with(b"{")
                && let Ok(comment) = serde_json::from_slice(comment)
            {
                self.annotate(comment);
            }
            return;
        }
        match ProguardRecord::try_parse(line) {
            Ok(ProguardRecord::Class {
                original,
                obfuscated,
            }) => self.start_class(original, obfuscated),
            Ok(ProguardRecord::Method {
                ty,
                original,
                obfuscated,
                arguments,
                original_class,
                line_mapping,
            }) => {
                let method = Method {
                    class: original_class,
                    name: original,
                    types: (ty, arguments),
                };
                self.add_method(&method, obfuscated, line_mapping);
            }
            Ok(ProguardRecord::Field { .. }) => self.current = None,
            // Other tools write lines of their own.
            Ok(ProguardRecord::Header { .. } | ProguardRecord::R8Header(_)) | Err(_) => {}
        }
    }

    fn start_class(&mut self, original: &'d str, obfuscated: &'d str) {
        self.current = None;
        self.class = Some(obfuscated);
        self.classes.entry(obfuscated).or_default().original = original;
    }

    fn add_method(&mut self, method: &Method<'d>, obfuscated: &'d str, lines: Option<LineMapping>) {
        // The parser of the file leaves spaces at the end of a line.
        let obfuscated = obfuscated.trim_end();
        let signatures = u32::try_from(self.signatures.len()).unwrap_or(u32::MAX);
        let mut range = LineRange {
            obfuscated: lines.and_then(|lines| span(lines.startline, lines.endline)),
            original: lines.and_then(|lines| {
                let from = lines.original_startline;
                span(from, lines.original_endline.or(from))
            }),
            class: method.class.map(|class| self.name(class)),
            function: self.name(method.name),
            signature: *self.signatures.entry(*method).or_insert(signatures),
            is_synthesized: false,
            is_outline: false,
            notes: (0, 0),
        };
        let is_caller = lines.is_some_and(|lines| {
            lines.original_startline.is_some() && lines.original_endline.is_none()
        });
        let last = self.current.replace(obfuscated);
        let Some(class) = self.class.and_then(|class| self.classes.get_mut(class)) else {
            self.current = None;
            return;
        };
        let ranges = class.methods.entry(obfuscated).or_default();
        let inlined = ranges.last_mut().filter(|inlined| {
            let is_same_place =
                range.obfuscated.is_some() && inlined.obfuscated == range.obfuscated;
            is_caller && last == Some(obfuscated) && is_same_place
        });
        if let Some(inlined) = inlined {
            // Notes on methods are about the outermost one of a place.
            range.is_synthesized = std::mem::take(&mut inlined.is_synthesized);
            range.is_outline = std::mem::take(&mut inlined.is_outline);
        }
        ranges.push(range);
    }

    /// Adds what R8 notes about the class or method above.
    fn annotate(&mut self, comment: Comment<'d>) {
        match comment {
            Comment::SourceFile { file_name } => {
                let class = self.class.and_then(|class| self.classes.get(class));
                if let Some(class) = class {
                    self.files.entry(class.original).or_insert(file_name);
                }
            }
            Comment::Synthesized => {
                if let Some(range) = self.last_range() {
                    range.is_synthesized = true;
                }
            }
            Comment::Outline => {
                if let Some(range) = self.last_range() {
                    range.is_outline = true;
                }
            }
            Comment::OutlineCallSite { positions } => {
                let lines = positions.iter();
                let lines = lines.filter_map(|(from, to)| Some((from.parse().ok()?, *to)));
                self.add_note(&Note::OutlineCallSite(lines.collect()));
            }
            Comment::RewriteFrame {
                conditions,
                actions,
            } => {
                if let Some(note) = self.rewrite(&conditions, &actions) {
                    self.add_note(&note);
                }
            }
            Comment::Other => {}
        }
    }

    fn last_range(&mut self) -> Option<&mut LineRange> {
        let class = self.classes.get_mut(self.class?)?;
        class.methods.get_mut(self.current?)?.last_mut()
    }

    fn rewrite(&mut self, conditions: &[String], actions: &[String]) -> Option<Note> {
        fn argument<'t>(text: &'t str, function: &str) -> Option<&'t str> {
            text.strip_prefix(function)?
                .strip_prefix('(')?
                .strip_suffix(')')
        }
        // A rule with a condition that is not known here never applies.
        let thrown: Option<Vec<&str>> = (conditions.iter())
            .map(|condition| argument(condition, "throws"))
            .collect();
        let removed: Option<Vec<u32>> = (actions.iter())
            .map(|action| argument(action, "removeInnerFrames")?.parse().ok())
            .collect();
        let removed = removed?.into_iter().fold(0, u32::saturating_add);
        let thrown = thrown?.into_iter();
        let thrown = thrown.map(|class| self.text(Cow::Owned(class.to_owned())));
        Some(Note::Rewrite {
            thrown: thrown.collect(),
            removed,
        })
    }

    fn add_note(&mut self, note: &Note) {
        let start = self.written.notes.len();
        let words = note.words();
        let ends = [start, start + words.len()].map(|end| u32::try_from(end).unwrap_or(u32::MAX));
        let Some(range) = self.last_range() else {
            return;
        };
        let first = match range.notes {
            (0, 0) => ends[0],
            (first, _) => first,
        };
        range.notes = (first, ends[1]);
        self.written.notes.extend(words);
    }

    /// Returns the place of a text in the file.
    fn text(&mut self, text: Cow<'d, str>) -> u32 {
        self.texts.add(text)
    }

    fn name(&mut self, name: &'d str) -> u32 {
        self.text(Cow::Borrowed(name))
    }

    fn finish(mut self) -> Written {
        for (obfuscated, class) in std::mem::take(&mut self.classes) {
            let first = self.methods();
            for (name, ranges) in class.methods {
                self.write_method(name, ranges);
            }
            let row = [
                self.name(obfuscated),
                self.name(class.original),
                first,
                self.methods(),
            ];
            self.written.classes.extend(row);
        }
        for (class, file) in std::mem::take(&mut self.files) {
            let row = [self.name(class), self.text(file)];
            self.written.files.extend(row);
        }
        self.written.texts = self.texts.into_bytes();
        self.written
    }

    fn write_method(&mut self, name: &'d str, mut ranges: Vec<LineRange>) {
        spread_flags(&mut ranges);
        let ranges = without_repetitions(&ranges);
        let first = self.ranges();
        let words = ranges.iter().flat_map(LineRange::words);
        self.written.ranges.extend(words);
        let row = [self.name(name), first, self.ranges()];
        self.written.methods.extend(row);
    }

    fn methods(&self) -> u32 {
        rows(&self.written.methods, super::tables::METHOD)
    }

    fn ranges(&self) -> u32 {
        rows(&self.written.ranges, super::tables::RANGE)
    }
}

fn rows(words: &[u32], columns: usize) -> u32 {
    u32::try_from(words.len() / columns).unwrap_or(u32::MAX)
}

/// Removes repetitions of functions that are inlined into each other. Tools that join mappings repeat them.
fn without_repetitions(ranges: &[LineRange]) -> Vec<LineRange> {
    let is_place = |one: &LineRange, next: &LineRange| {
        one.obfuscated.is_some() && one.obfuscated == next.obfuscated
    };
    let kept = |place: &[LineRange]| {
        let same = |one: &LineRange, other: &LineRange| {
            let notes = other.notes;
            LineRange { notes, ..*one } == *other
        };
        period(place, same)
    };
    let places = ranges.chunk_by(is_place);
    places
        .flat_map(|place| place.get(..kept(place)).unwrap_or_default())
        .copied()
        .collect()
}

/// Real code inlines a dozen levels. In longer lists, nobody looks for repetitions.
const MAX_REPEATED: usize = 1_000;

/// Returns the length of the shortest start of which the whole list is a repetition.
fn period<T>(list: &[T], same: impl Fn(&T, &T) -> bool) -> usize {
    if list.len() > MAX_REPEATED {
        return list.len();
    }
    let repeats = |length: &usize| {
        let shifted = list.iter().skip(*length).zip(list);
        list.len().is_multiple_of(*length)
            && shifted.into_iter().all(|(one, other)| same(one, other))
    };
    (1..list.len()).find(repeats).unwrap_or(list.len())
}

/// A line of a mapping about a method: its lines, its obfuscated name, and its original.
type MethodLine<'d> = (LineMapping, &'d str, Method<'d>);

/// Whether a mapping repeats functions that are inlined into each other.
pub(super) fn has_repetitions(data: &[u8]) -> bool {
    let repeats = |place: &[MethodLine<'_>]| period(place, PartialEq::eq) < place.len();
    let mut place: Vec<MethodLine<'_>> = Vec::new();
    for line in lines(data) {
        let next = match ProguardRecord::try_parse(line) {
            Ok(ProguardRecord::Method {
                ty,
                original,
                obfuscated,
                arguments,
                original_class: class,
                line_mapping: Some(lines),
            }) if lines.startline.is_some() => {
                let (name, types) = (original, (ty, arguments));
                Some((lines, obfuscated.trim_end(), Method { class, name, types }))
            }
            Ok(ProguardRecord::Header { .. } | ProguardRecord::R8Header(_)) => continue,
            _ => None,
        };
        let is_same_place = next.zip(place.last()).is_some_and(|(next, last)| {
            (next.0.startline, next.0.endline, next.1) == (last.0.startline, last.0.endline, last.1)
        });
        if !is_same_place {
            if repeats(&place) {
                return true;
            }
            place.clear();
        }
        place.extend(next);
    }
    repeats(&place)
}

/// R8 notes at one line of a method what is true for all of its lines.
fn spread_flags(ranges: &mut [LineRange]) {
    let mut flags: HashMap<u32, (bool, bool)> = HashMap::new();
    let noted = |range: &&LineRange| range.is_synthesized || range.is_outline;
    for range in ranges.iter().filter(noted) {
        let flags = flags.entry(range.signature).or_default();
        flags.0 |= range.is_synthesized;
        flags.1 |= range.is_outline;
    }
    for range in ranges {
        if let Some((is_synthesized, is_outline)) = flags.get(&range.signature) {
            range.is_synthesized = *is_synthesized;
            range.is_outline = *is_outline;
        }
    }
}

/// Reads a range of lines. Old versions of R8 wrote the ends in the wrong order, or 0 as the end.
fn span(from: Option<usize>, to: Option<usize>) -> Option<Lines> {
    let line = |line: usize| u32::try_from(line).unwrap_or(u32::MAX);
    let (from, to) = (line(from?), line(to?));
    Some(match to {
        0 => Lines { from, to: from },
        _ => Lines {
            from: from.min(to),
            to: from.max(to),
        },
    })
}
