//! The functions around places: in the script, or in the sources that a source map contains.

use std::ops::Range;

use js_source_scopes::{
    NameResolver, ScopeIndex, ScopeLookupResult, ScopeName, SourceContext, extract_scope_names,
};
use sourcemap::DecodedMap;

use super::places::Function;

/// In code with more brackets within each other, no functions are read: the parser calls itself for each.
const MAX_DEPTH: usize = 500;

/// The functions of a text. Lines and columns count from 0.
#[derive(Default)]
pub(super) struct Scopes {
    index: Option<ScopeIndex>,
    /// Where a function begins or ends, and the offset of that place in the text.
    starts: Vec<((u32, u32), u32)>,
}

impl Scopes {
    /// Reads the functions of a minified script. Their original names are in the source map.
    pub(super) fn of_script(script: &str, map: &DecodedMap) -> Self {
        let Ok(context) = SourceContext::new(script) else {
            return Self::default();
        };
        let resolver = NameResolver::new(&context, map);
        Self::read(script, &context, |range, name| {
            let written = name.to_string();
            let resolved = resolver.resolve_name(name);
            if resolved != written {
                return resolved;
            }
            // Compilers of other languages put the name at the end of a function.
            name_at_end(&context, map, range).unwrap_or(resolved)
        })
    }

    /// Reads the functions of an original source.
    pub(super) fn of_source(source: &str) -> Self {
        match SourceContext::new(source) {
            Ok(context) if depth(source) <= MAX_DEPTH => {
                Self::read(source, &context, |_, name| name.to_string())
            }
            _ => Self::default(),
        }
    }

    /// Without functions if nobody can parse the text: the places of its map are right all the same.
    fn read(
        text: &str,
        context: &SourceContext<&str>,
        name: impl Fn(&Range<u32>, &ScopeName) -> String,
    ) -> Self {
        let scopes = extract_scope_names(text).unwrap_or_default();
        let named = scopes.into_iter().map(|(range, scope)| {
            let name = scope.map(|scope| name(&range, &scope));
            (range, name.filter(|name| !name.is_empty()))
        });
        let Ok(index) = ScopeIndex::new(named.collect()) else {
            return Self::default();
        };
        let place = |(offset, _)| {
            let place = context.offset_to_position(offset)?;
            Some(((place.line, place.column), offset))
        };
        Self {
            starts: index.iter().filter_map(place).collect(),
            index: Some(index),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    pub(super) fn at(&self, line: u32, column: u32) -> Function<'_> {
        let after = self
            .starts
            .partition_point(|(start, _)| *start <= (line, column));
        let start = after.checked_sub(1).and_then(|last| self.starts.get(last));
        let function = start.zip(self.index.as_ref());
        match function.map(|((_, offset), index)| index.lookup(*offset)) {
            Some(ScopeLookupResult::NamedScope(name)) => Function::Named(name),
            Some(ScopeLookupResult::AnonymousScope) => Function::Anonymous,
            Some(ScopeLookupResult::Unknown) | None => Function::Unknown,
        }
    }
}

/// Returns the name that the map has for the last character of a function, and for nothing behind it.
fn name_at_end(
    context: &SourceContext<&str>,
    map: &DecodedMap,
    function: &Range<u32>,
) -> Option<String> {
    let token_at = |offset| {
        let place = context.offset_to_position(offset)?;
        let token = map.lookup_token(place.line, place.column)?;
        Some((token, (place.line, place.column)))
    };
    let (last, place) = token_at(function.end.checked_sub(1)?)?;
    let behind = token_at(function.end).map(|(token, _)| token);
    if last.get_dst() != place || behind == Some(last) {
        return None;
    }
    Some(last.get_name()?.to_owned())
}

/// Returns how many brackets are within each other. Those in texts count, too, so the result may be too large.
fn depth(source: &str) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        most = most.max(depth);
    }
    most
}
