//! The names that a source map has for the functions of its script.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use js_source_scopes::{NameComponent, ScopeName, SourceContext, SourcePosition};
use sourcemap::{DecodedMap, Token};

use super::naming::{Classes, MAX_NAME_BYTES, Naming, is_letter};
use super::places::WRITTEN;

/// Names behind this column of a source are not compared with the source: the line is read up to the column for each of them.
const MAX_COLUMN: u32 = 1_000;
/// What is behind the underscore if the source has no name at a place. Babel writes `_class` for a class without a name.
const NO_NAMES: [&str; 3] = ["", "class", "function"];

/// The map of a script.
pub(super) struct MapNames<'m> {
    pub(super) script: &'m str,
    pub(super) context: &'m SourceContext<&'m str>,
    pub(super) map: &'m DecodedMap,
    /// The parts that were looked up, by their start. Many functions can share a part, and a lookup takes longer if many places of the map
    /// have the same position.
    pub(super) parts: RefCell<HashMap<u32, PartName<'m>>>,
}

/// What the map says about a part of a name.
#[derive(Clone, Copy)]
pub(super) struct PartName<'m> {
    original: Option<&'m str>,
    /// Whether the map has a name for exactly the place of the part.
    is_named: bool,
}

impl<'m> MapNames<'m> {
    pub(super) fn name(
        &self,
        classes: &Classes<'_>,
        range: &Range<u32>,
        scope: &ScopeName,
        naming: &Naming,
    ) -> Option<String> {
        let written = classes.written_name(scope, naming);
        if let Some(original) = self.original_name(classes, scope, naming) {
            let is_other = written.as_ref() != Some(&original);
            if is_other
                || scope
                    .components()
                    .any(|part| self.part(part).is_some_and(|part| part.is_named))
            {
                return Some(original);
            }
        }
        // Compilers of other languages put the name at the end of a function.
        let at_end = self.name_at_end(range);
        at_end.or_else(|| written.map(|name| format!("{WRITTEN}{name}")))
    }

    fn original_name(
        &self,
        classes: &Classes<'_>,
        scope: &ScopeName,
        naming: &Naming,
    ) -> Option<String> {
        let name = || classes.joined(scope, |part| self.part(part)?.original);
        match naming {
            Naming::Whole => name(),
            Naming::Field(field) => {
                let written = self.script.get(field.clone())?;
                let start = u32::try_from(field.start).ok();
                let original = start.and_then(|start| self.name_at(start));
                let field = original.unwrap_or(written);
                let private = match written.starts_with('#') && !field.starts_with('#') {
                    true => "#",
                    false => "",
                };
                Some(format!("{}.{private}{field}", name()?))
            }
            Naming::Nothing => None,
        }
    }

    /// Looks up the part of a name that is in the text.
    fn part(&self, part: &NameComponent) -> Option<PartName<'m>> {
        let range = part.range()?;
        let known = self.parts.borrow().get(&range.start).copied();
        if known.is_some() {
            return known;
        }
        let name = |name: Option<&'m str>| name.filter(|name| !self.is_keyword(part, name));
        // Some tools put the name behind the part.
        let named = name(self.name_near(range.start)).or_else(|| name(self.name_near(range.end)));
        let written = || self.script.get(range.start as usize..range.end as usize);
        let shorter = named
            .or_else(written)
            .and_then(|name| self.without_underscore(range.start, name));
        let original = shorter.or(named);
        let is_named = name(self.name_at(range.start)).is_some();
        let found = PartName { original, is_named };
        self.parts.borrow_mut().insert(range.start, found);
        Some(found)
    }

    /// For a class `Cart` whose own code refers to it, esbuild writes `_Cart`. Returns the name that the source has at this place.
    fn without_underscore(&self, offset: u32, name: &'m str) -> Option<&'m str> {
        let shorter = name.strip_prefix('_')?;
        if NO_NAMES.contains(&shorter) {
            return None;
        }
        let (place, token) = self.token(offset)?;
        let (line, column) = token.get_src();
        if token.get_dst() != (place.line, place.column) || column > MAX_COLUMN {
            return None;
        }
        let source = token.get_source_view()?.get_line(line)?;
        // Columns count in UTF-16.
        let mut units = 0;
        let start = source.char_indices().find_map(|(at, letter)| {
            let is_here = units >= column as usize;
            units += letter.len_utf16();
            is_here.then_some(at)
        })?;
        let after = source.get(start..)?.strip_prefix(shorter)?;
        (!after.starts_with(is_letter)).then_some(shorter)
    }

    /// Terser writes `load: async () => {}` for the method `async load() {}`, and calls the key `async`.
    fn is_keyword(&self, part: &NameComponent, name: &str) -> bool {
        let after = part
            .range()
            .and_then(|range| self.script.get(range.end as usize..));
        name == "async"
            && part.text() != name
            && after.is_some_and(|after| after.trim_start().starts_with(':'))
    }

    fn token(&self, offset: u32) -> Option<(SourcePosition, Token<'m>)> {
        let place = self.context.offset_to_position(offset)?;
        let token = self.map.lookup_token(place.line, place.column)?;
        Some((place, token))
    }

    /// Returns the name that the map has for exactly this place.
    fn name_at(&self, offset: u32) -> Option<&'m str> {
        let (place, token) = self.token(offset)?;
        let is_here = token.get_dst() == (place.line, place.column);
        name_of(&token).filter(|_| is_here)
    }

    /// Returns the name that the map has for this place, or for the character before.
    fn name_near(&self, offset: u32) -> Option<&'m str> {
        let (place, token) = self.token(offset)?;
        let (line, column) = token.get_dst();
        if line != place.line || column < place.column.saturating_sub(1) {
            return None;
        }
        // Others name the word `function`, which has the same place in the source.
        let of_word = || {
            let before = self.map.lookup_token(line, column.checked_sub(1)?)?;
            let original = |token: &Token<'m>| (token.get_src_id(), token.get_src());
            name_of(&before).filter(|_| original(&before) == original(&token))
        };
        name_of(&token).or_else(of_word)
    }

    /// Returns the name that the map has for the last character of a function, and for nothing behind it.
    fn name_at_end(&self, function: &Range<u32>) -> Option<String> {
        let (place, last) = self.token(function.end.checked_sub(1)?)?;
        let behind = self.token(function.end).map(|(_, token)| token);
        if last.get_dst() != (place.line, place.column) || behind == Some(last) {
            return None;
        }
        Some(name_of(&last)?.to_owned())
    }
}

/// Returns the name that the map has for a place, unless it is too long. Any number of places may have the same name.
fn name_of<'m>(token: &Token<'m>) -> Option<&'m str> {
    let name = token.get_name();
    name.filter(|name| name.len() <= MAX_NAME_BYTES)
}
