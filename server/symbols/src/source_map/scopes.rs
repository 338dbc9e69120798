//! The functions around places: in the script, or in the sources that a source map contains.

use std::ops::Range;
use std::thread;

use js_source_scopes::{
    ScopeIndex, ScopeLookupResult, ScopeName, SourceContext, extract_scope_names,
};
use sourcemap::DecodedMap;

use super::depth::is_deeper;
use super::map_names::MapNames;
use super::naming::{Classes, Naming, with_methods_for_blocks, written_name};
use super::places::Function;

/// In code that nests more deeply, no functions are read: the reader calls itself for each bracket and operator.
const MAX_DEPTH: usize = 1000;
/// The stack of the reader. Code of the maximum depth takes a fraction of it.
const STACK_BYTES: usize = 64 << 20;

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
        let names = MapNames {
            script,
            context: &context,
            map,
        };
        Self::read(script, &context, |range, scope, naming| {
            names.name(range, scope, naming)
        })
    }

    /// Reads the functions of an original source.
    pub(super) fn of_source(source: &str) -> Self {
        match SourceContext::new(source) {
            Ok(context) => Self::read(source, &context, |_, scope, naming| {
                written_name(source, scope, naming)
            }),
            Err(_too_large) => Self::default(),
        }
    }

    fn read(
        text: &str,
        context: &SourceContext<&str>,
        name: impl Fn(&Range<u32>, &ScopeName, &Naming) -> Option<String>,
    ) -> Self {
        let scopes = scopes_of(text);
        let classes = Classes::of(text, &scopes);
        let named = scopes.into_iter().map(|(range, scope)| {
            let name = scope.and_then(|scope| {
                let naming = classes.naming(&range, &scope);
                name(&range, &scope, &naming)
            });
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
            Some(ScopeLookupResult::NamedScope(name)) => Function::of_text(name),
            Some(ScopeLookupResult::AnonymousScope) => Function::Anonymous,
            Some(ScopeLookupResult::Unknown) | None => Function::Unknown,
        }
    }
}

/// Reads the functions of a text in a thread that has the stack for it. There are none if nobody can parse the text: the places of its map are
/// right all the same.
fn scopes_of(text: &str) -> js_source_scopes::Scopes {
    if is_deeper(text, MAX_DEPTH) {
        return Vec::new();
    }
    let text = with_methods_for_blocks(text);
    thread::scope(|threads| {
        let reader = thread::Builder::new().stack_size(STACK_BYTES);
        let scopes = reader.spawn_scoped(threads, || extract_scope_names(&text).ok());
        let scopes = scopes.ok().and_then(|scopes| scopes.join().ok());
        scopes.flatten().unwrap_or_default()
    })
}
