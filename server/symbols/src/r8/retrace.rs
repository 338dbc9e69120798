//! Obfuscated frames to original ones, by the rules of R8's own retrace.

use std::collections::BTreeSet;
use std::ops::Range;

use super::source_file::source_file;
use super::tables::{LineRange, Lines, Note, Tables};
use crate::{JavaFrame, Location, MAX_LOCATIONS, Origin};

/// The maximum number of alternatives of a frame. R8 merges dozens of functions into one; a list of all of them would help nobody.
const MAX_ALTERNATIVES: usize = 8;
/// A frame that may stand for more lines than this gets no line.
const MAX_POSSIBLE_LINES: u64 = MAX_ALTERNATIVES as u64;
/// The maximum number of lines of the mapping about one name. Real methods have thousands.
const MAX_RANGES: usize = 100_000;
/// The range from 0 to this has all lines of a method.
const LAST_LINE: u32 = 65_535;

/// What the line above means for a frame of a stack.
#[derive(Clone, Default)]
struct Context {
    /// The descriptor of the obfuscated exception whose first frame this is.
    thrown: Option<String>,
    /// The line of the outline that this frame called.
    outline_line: Option<u32>,
}

/// Returns the locations of each frame, innermost first. A frame that R8 added (an outline, or a method that nobody wrote) has none. A
/// frame of a class that the mapping does not have is `None`.
///
/// `thrown` is the class of the exception, obfuscated, if the stack is that of an exception: some inlined code shows only in these.
pub(crate) fn retrace(
    tables: &Tables<'_>,
    frames: &[JavaFrame<'_>],
    thrown: Option<&str>,
) -> Vec<Option<Vec<Location>>> {
    let mut context = Context {
        thrown: thrown.map(|class| format!("L{};", class.replace('.', "/"))),
        outline_line: None,
    };
    let retrace = |reported: &JavaFrame<'_>| {
        let context_now = std::mem::take(&mut context);
        let (class, methods) = tables.class(reported.class)?;
        let frame = Frame {
            tables,
            reported: *reported,
            class,
        };
        let ranges = tables.method(methods, reported.function);
        let methods = ranges.map(|ranges| methods_of(tables, ranges));
        let narrowed = methods.and_then(|methods| frame.narrow(&methods, context_now.outline_line));
        let Some(narrowed) = narrowed else {
            return Some(vec![frame.unchanged()]);
        };
        context.outline_line = narrowed.outline_line();
        let alternatives = frame.alternatives(&narrowed, context_now.thrown.as_deref());
        Some(frame.joined(&alternatives))
    };
    frames.iter().map(retrace).collect()
}

/// Several methods of a class may have got one name. Splits the lines of the mapping by method.
fn methods_of(tables: &Tables<'_>, ranges: Range<u32>) -> Vec<Vec<LineRange>> {
    let ranges = ranges.map_while(|row| tables.range(row));
    let ranges: Vec<LineRange> = ranges.take(MAX_RANGES).collect();
    let mut methods: Vec<Vec<LineRange>> = Vec::new();
    for place in places(&ranges) {
        let signature = |ranges: &[LineRange]| ranges.last().map(|range| range.signature);
        match methods.last_mut() {
            Some(method) if signature(method) == signature(place) => method.extend(place),
            _ => methods.push(place.to_vec()),
        }
    }
    let outermost = |method: Option<&Vec<LineRange>>| Some(method?.last()?.signature);
    if outermost(methods.first()) == outermost(methods.last()) {
        return vec![ranges];
    }
    methods
}

/// Splits ranges by place: functions that are inlined into each other are one place.
fn places(mut ranges: &[LineRange]) -> impl Iterator<Item = &[LineRange]> {
    std::iter::from_fn(move || {
        let (place, others) = ranges.split_at_checked(inlined_together(ranges))?;
        ranges = others;
        Some(place)
    })
}

/// Returns the number of ranges at the start that are one place: functions inlined into each other, innermost first.
fn inlined_together(ranges: &[LineRange]) -> usize {
    let Some(lines) = ranges.first().and_then(|range| range.obfuscated) else {
        return 1;
    };
    let is_same = |range: &&LineRange| range.obfuscated == Some(lines);
    ranges.iter().take_while(is_same).count().max(1)
}

/// Returns the ranges at a line. If `or_without_lines`, that may be the first range that is for all lines.
fn ranges_at(method: &[LineRange], line: u32, or_without_lines: bool) -> &[LineRange] {
    let contains = |range: &LineRange| range.obfuscated.is_some_and(|lines| lines.contain(line));
    if let Some(first) = method.iter().position(contains) {
        let found = method.get(first..).unwrap_or_default();
        return found.get(..inlined_together(found)).unwrap_or_default();
    }
    let without = |range: &LineRange| range.obfuscated.is_none();
    match method.iter().position(without) {
        Some(first) if or_without_lines => method.get(first..=first).unwrap_or_default(),
        _ => &[],
    }
}

/// Whether a range stands for several original lines, of which a frame does not tell which one ran.
fn has_unclear_line(range: &LineRange) -> bool {
    let Some(original) = range.original.filter(|lines| lines.count() > 1) else {
        return false;
    };
    range.obfuscated.map(Lines::count) != Some(original.count())
}

/// The ranges of one method that a frame may be in.
struct Candidate {
    ranges: Vec<LineRange>,
    is_synthesized: bool,
    is_outline: bool,
}

impl Candidate {
    fn new(method: &[LineRange], ranges: Vec<LineRange>) -> Option<Self> {
        let outermost = method.last()?;
        Some(Self {
            ranges,
            is_synthesized: outermost.is_synthesized || outermost.is_outline,
            is_outline: outermost.is_outline,
        })
    }

    fn is_ambiguous(&self) -> bool {
        let Some((first, others)) = self.ranges.split_first() else {
            return false;
        };
        let elsewhere =
            |other: &LineRange| other.obfuscated.is_none() || other.obfuscated != first.obfuscated;
        self.ranges.iter().any(has_unclear_line) || others.iter().any(elsewhere)
    }
}

/// The methods that a frame may be in.
struct Narrowed {
    candidates: Vec<Candidate>,
    /// The obfuscated line, if it is known.
    line: Option<u32>,
}

impl Narrowed {
    fn is_ambiguous(&self) -> bool {
        match self.candidates.as_slice() {
            [one] => one.is_ambiguous(),
            _ => true,
        }
    }

    fn outline_line(&self) -> Option<u32> {
        self.line
            .filter(|_| self.candidates.iter().any(|candidate| candidate.is_outline))
    }
}

/// A function and a line. 0: the line is unknown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Called<'d> {
    class: &'d str,
    function: &'d str,
    line: u32,
}

struct Frame<'d, 'f> {
    tables: &'f Tables<'d>,
    reported: JavaFrame<'f>,
    /// The original class.
    class: &'d str,
}

impl<'d> Frame<'d, '_> {
    /// The method is not in the mapping, so that it kept its name.
    fn unchanged(&self) -> Location {
        let called = Called {
            class: self.class,
            function: self.reported.function,
            line: self.reported.line,
        };
        self.location(called, Origin::Called)
    }

    /// Finds the methods that the frame may be in. `None` if its line is outside of all of them.
    fn narrow(&self, methods: &[Vec<LineRange>], outline_line: Option<u32>) -> Option<Narrowed> {
        if self.reported.line > 0 {
            let line = Some(self.reported.line);
            let without_lines = |method: &[LineRange]| {
                let ranges = method.iter().filter(|range| range.obfuscated.is_none());
                ranges.copied().collect()
            };
            return self
                .select_at(methods, self.reported.line, outline_line)
                .or_else(|| self.select(methods, line, outline_line, &without_lines));
        }
        let first = |method: &[LineRange]| ranges_at(method, 0, true).to_vec();
        let found = self.select(methods, None, outline_line, &first);
        found.or_else(|| {
            // Every method that has the name is possible, in any of its lines.
            let candidates = methods.iter().filter_map(|method| {
                let ranges = match method.as_slice() {
                    [one] if one.obfuscated.is_some_and(is_all) => method.clone(),
                    _ => method.last().map(without_line).into_iter().collect(),
                };
                Candidate::new(method, ranges)
            });
            Some(Narrowed {
                candidates: candidates.collect(),
                line: None,
            })
        })
    }

    fn select_at(
        &self,
        methods: &[Vec<LineRange>],
        line: u32,
        outline_line: Option<u32>,
    ) -> Option<Narrowed> {
        let at_line = |method: &[LineRange]| ranges_at(method, line, false).to_vec();
        self.select(methods, Some(line), outline_line, &at_line)
    }

    fn select(
        &self,
        methods: &[Vec<LineRange>],
        line: Option<u32>,
        outline_line: Option<u32>,
        choose: &dyn Fn(&[LineRange]) -> Vec<LineRange>,
    ) -> Option<Narrowed> {
        let mut candidates = Vec::new();
        for method in methods {
            let ranges = choose(method);
            let Some(outermost) = ranges.last() else {
                continue;
            };
            let call_site = outline_line.and_then(|line| self.call_site(outermost, line));
            if let Some(call_site) = call_site {
                return self.select_at(methods, call_site, None);
            }
            candidates.extend(Candidate::new(method, ranges));
        }
        (!candidates.is_empty()).then_some(Narrowed { candidates, line })
    }

    /// If the range is the call of an outline, returns the line that stands for this line of the outline.
    fn call_site(&self, range: &LineRange, outline_line: u32) -> Option<u32> {
        self.tables.notes(range).find_map(|note| match note {
            Note::OutlineCallSite(lines) => {
                let line = lines.iter().find(|(from, _)| *from == outline_line);
                Some(line.map_or(outline_line, |(_, to)| *to))
            }
            Note::Rewrite { .. } => None,
        })
    }

    /// Returns the functions that the frame may stand for, innermost first. With one alternative, there is no doubt.
    fn alternatives(&self, narrowed: &Narrowed, thrown: Option<&str>) -> Vec<Vec<Called<'d>>> {
        let mut alternatives: Vec<Vec<Called<'_>>> = (narrowed.candidates.iter())
            .flat_map(|candidate| self.alternatives_in(candidate, narrowed, thrown))
            .collect();
        alternatives.retain(|called| !called.is_empty());
        alternatives.sort_unstable();
        alternatives.dedup();
        alternatives.truncate(MAX_ALTERNATIVES);
        alternatives
    }

    fn alternatives_in(
        &self,
        candidate: &Candidate,
        narrowed: &Narrowed,
        thrown: Option<&str>,
    ) -> Vec<Vec<Called<'d>>> {
        let mut alternatives = Vec::new();
        for place in places(&candidate.ranges) {
            let kept = place.len() - usize::from(candidate.is_synthesized);
            let removed = self.removed(place, thrown);
            let called = |lines: Vec<Option<u32>>| {
                let called = place.iter().zip(lines).take(kept).skip(removed);
                let called = called.map(|(range, line)| self.called(range, line));
                called.collect()
            };
            let lines = possible_lines(place, narrowed);
            alternatives.extend(lines.into_iter().map(called));
        }
        alternatives
    }

    /// Returns the number of inlined functions that do not show in the stack of this exception.
    fn removed(&self, place: &[LineRange], thrown: Option<&str>) -> usize {
        let applies = |classes: &[u32]| {
            let mut classes = classes.iter().map(|class| self.tables.text(*class));
            classes.all(|class| Some(class) == thrown)
        };
        let notes = place.iter().flat_map(|range| self.tables.notes(range));
        let counts = notes.filter_map(|note| match note {
            Note::Rewrite { thrown, removed } => applies(&thrown).then_some(removed as usize),
            Note::OutlineCallSite(_) => None,
        });
        let removed = counts.fold(0, usize::saturating_add);
        // R8 takes a rule that removes more than there is for a mistake.
        if removed > place.len() { 0 } else { removed }
    }

    /// `line` is `None` if the mapping does not change lines.
    fn called(&self, range: &LineRange, line: Option<u32>) -> Called<'d> {
        Called {
            class: range
                .class
                .map_or(self.class, |class| self.tables.text(class)),
            function: self.tables.text(range.function),
            line: line.unwrap_or(self.reported.line),
        }
    }

    /// Joins the alternatives level by level, so that a function that is in all of them is certain.
    fn joined(&self, alternatives: &[Vec<Called<'d>>]) -> Vec<Location> {
        let depths = || alternatives.iter().map(Vec::len);
        let depth = depths().max().unwrap_or_default();
        let everywhere = depths().min().unwrap_or_default();
        let mut locations = Vec::new();
        for level in 0..depth {
            let mut known = BTreeSet::new();
            let called = (alternatives.iter())
                .filter_map(|alternative| alternative.get(level))
                .filter(|called| known.insert(**called));
            let called: Vec<Called<'_>> = called.copied().collect();
            let origin = match called.len() {
                1 if level < everywhere && level + 1 == depth => Origin::Called,
                1 if level < everywhere => Origin::Inlined,
                _ => Origin::Ambiguous,
            };
            let called = (0..).zip(called);
            locations.extend(called.map(|(alternative, called)| Location {
                alternative,
                ..self.location(called, origin)
            }));
        }
        locations.truncate(MAX_LOCATIONS);
        locations
    }

    fn location(&self, called: Called<'_>, origin: Origin) -> Location {
        let known = self.tables.source_file(called.class);
        let outer = || self.tables.source_file(self.class);
        Location {
            class: called.class.to_owned(),
            function: called.function.to_owned(),
            file: source_file(
                called.class,
                known,
                known.or_else(outer),
                self.reported.file,
            ),
            line: called.line,
            origin,
            alternative: 0,
        }
    }
}

fn is_all(lines: Lines) -> bool {
    lines.from == 0 && lines.to == LAST_LINE
}

fn without_line(range: &LineRange) -> LineRange {
    LineRange {
        obfuscated: None,
        original: None,
        ..*range
    }
}

/// Returns the lines of functions that are inlined into each other, innermost first; several times if the innermost line is unclear.
fn possible_lines(place: &[LineRange], narrowed: &Narrowed) -> Vec<Vec<Option<u32>>> {
    let is_ambiguous = narrowed.is_ambiguous();
    let lines = |first: Option<Option<u32>>| -> Vec<Option<u32>> {
        let known = place
            .iter()
            .map(|range| original_line(range, narrowed.line, is_ambiguous));
        let skipped = usize::from(first.is_some());
        first.into_iter().chain(known.skip(skipped)).collect()
    };
    let unclear = place.first().filter(|range| has_unclear_line(range));
    let possible = unclear.and_then(|range| range.original);
    match (possible, narrowed.line) {
        (Some(possible), Some(_)) if possible.count() <= MAX_POSSIBLE_LINES => (possible.from
            ..=possible.to)
            .map(|line| lines(Some(Some(line))))
            .collect(),
        (Some(_), _) => vec![lines(Some(Some(0)))],
        (None, _) => vec![lines(None)],
    }
}

/// Returns the original line at an obfuscated line, 0 if it is unknown, `None` if it is the same.
fn original_line(range: &LineRange, line: Option<u32>, is_ambiguous: bool) -> Option<u32> {
    let single = range.original.filter(|lines| lines.count() == 1);
    if let Some(single) = single {
        let is_shown = line.is_some() || !is_ambiguous;
        return Some(if is_shown { single.from } else { 0 });
    }
    let Some(line) = line else {
        let first = range.original.or(range.obfuscated);
        let first = first.filter(|_| !is_ambiguous).map(|lines| lines.from);
        return Some(first.unwrap_or_default());
    };
    let obfuscated = range.obfuscated.filter(|lines| lines.contain(line));
    match (obfuscated, range.original) {
        (Some(obfuscated), Some(original)) => {
            Some(original.from.saturating_add(line - obfuscated.from))
        }
        (Some(_), None) => Some(line),
        (None, _) => None,
    }
}
