//! The names that a source map has for the functions of its script.

use std::ops::Range;

use js_source_scopes::{NameComponent, ScopeName, SourceContext, SourcePosition};
use sourcemap::{DecodedMap, Token};

use super::naming::{Naming, joined, written_name};
use super::places::WRITTEN;

/// The map of a script.
pub(super) struct MapNames<'m> {
    pub(super) script: &'m str,
    pub(super) context: &'m SourceContext<&'m str>,
    pub(super) map: &'m DecodedMap,
}

impl<'m> MapNames<'m> {
    pub(super) fn name(
        &self,
        range: &Range<u32>,
        scope: &ScopeName,
        naming: &Naming,
    ) -> Option<String> {
        let written = written_name(self.script, scope, naming);
        if let Some(original) = self.original_name(scope, naming) {
            let is_other = written.as_ref() != Some(&original);
            if is_other || scope.components().any(|part| self.is_named(part)) {
                return Some(original);
            }
        }
        // Compilers of other languages put the name at the end of a function.
        let at_end = self.name_at_end(range);
        at_end.or_else(|| written.map(|name| format!("{WRITTEN}{name}")))
    }

    fn original_name(&self, scope: &ScopeName, naming: &Naming) -> Option<String> {
        let name = || joined(self.script, scope, |part| self.original(part));
        match naming {
            Naming::Whole => Some(name()),
            Naming::Field(field) => {
                let written = self.script.get(field.clone())?;
                let start = u32::try_from(field.start).ok();
                let original = start.and_then(|start| self.name_at(start));
                let field = original.unwrap_or(written);
                let private = match written.starts_with('#') && !field.starts_with('#') {
                    true => "#",
                    false => "",
                };
                Some(format!("{}.{private}{field}", name()))
            }
            Naming::Nothing => None,
        }
    }

    /// Returns the name that the map has at a part of a name. Some tools put it behind the part.
    fn original(&self, part: &NameComponent) -> Option<&'m str> {
        let range = part.range()?;
        let name = |offset| {
            let name = self.name_near(offset)?;
            (!self.is_keyword(part, name)).then_some(name)
        };
        name(range.start).or_else(|| name(range.end))
    }

    /// Whether the map has a name for exactly the place of a part.
    fn is_named(&self, part: &NameComponent) -> bool {
        let name = part.range().and_then(|range| self.name_at(range.start));
        name.is_some_and(|name| !self.is_keyword(part, name))
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
        token.get_name().filter(|_| is_here)
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
            before
                .get_name()
                .filter(|_| original(&before) == original(&token))
        };
        token.get_name().or_else(of_word)
    }

    /// Returns the name that the map has for the last character of a function, and for nothing behind it.
    fn name_at_end(&self, function: &Range<u32>) -> Option<String> {
        let (place, last) = self.token(function.end.checked_sub(1)?)?;
        let behind = self.token(function.end).map(|(_, token)| token);
        if last.get_dst() != (place.line, place.column) || behind == Some(last) {
            return None;
        }
        Some(last.get_name()?.to_owned())
    }
}
