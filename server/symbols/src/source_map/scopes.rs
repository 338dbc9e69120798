//! The functions around places: in the script, or in the sources that a source map contains.

use std::cell::RefCell;
use std::ops::Range;
use std::{io, panic, thread};

use js_source_scopes::{
    ScopeIndex, ScopeLookupResult, ScopeName, SourceContext, extract_scope_names,
};
use sourcemap::DecodedMap;

use super::depth::is_deeper;
use super::map_names::MapNames;
use super::naming::{Classes, MAX_NAME_BYTES, Naming, with_methods_for_blocks};
use super::places::Function;
use crate::error::ConvertError;

/// In code that nests more deeply, no functions are read: the reader calls itself for each bracket and operator.
const MAX_DEPTH: usize = 1000;
/// The stack of the reader. Code of the maximum depth takes a fraction of it.
const STACK_BYTES: usize = 64 << 20;
/// The least memory of a process that converts files. The whole stack counts as its memory, and the rest of the work needs as much.
pub const MIN_MEMORY_BYTES: u64 = 2 * STACK_BYTES as u64;

/// The functions of a text. Lines and columns count from 0.
#[derive(Default)]
pub(super) struct Scopes {
    index: Option<ScopeIndex>,
    /// Where a function begins or ends, and the offset of that place in the text.
    starts: Vec<((u32, u32), u32)>,
}

impl Scopes {
    /// Reads the functions of a minified script. Their original names are in the source map.
    pub(super) fn of_script(script: &str, map: &DecodedMap) -> Result<Self, ConvertError> {
        let Ok(context) = SourceContext::new(script) else {
            return Ok(Self::default());
        };
        let names = MapNames {
            script,
            context: &context,
            map,
            parts: RefCell::default(),
        };
        Self::read(script, &context, |classes, range, scope, naming| {
            names.name(classes, range, scope, naming)
        })
    }

    /// Reads the functions of an original source.
    pub(super) fn of_source(source: &str) -> Result<Self, ConvertError> {
        match SourceContext::new(source) {
            Ok(context) => Self::read(source, &context, |classes, _, scope, naming| {
                classes.written_name(scope, naming)
            }),
            Err(_too_large) => Ok(Self::default()),
        }
    }

    fn read(
        text: &str,
        context: &SourceContext<&str>,
        name: impl Fn(&Classes<'_>, &Range<u32>, &ScopeName, &Naming) -> Option<String>,
    ) -> Result<Self, ConvertError> {
        let scopes = scopes_of(text).map_err(ConvertError::Thread)?;
        let classes = Classes::of(text, &scopes);
        let named = scopes.into_iter().map(|(range, scope)| {
            let name = scope.and_then(|scope| {
                let naming = classes.naming(&range, &scope);
                name(&classes, &range, &scope, &naming)
            });
            let is_usable = |name: &String| (1..=MAX_NAME_BYTES).contains(&name.len());
            (range, name.filter(is_usable))
        });
        let Ok(index) = ScopeIndex::new(named.collect()) else {
            return Ok(Self::default());
        };
        let place = |(offset, _)| {
            let place = context.offset_to_position(offset)?;
            Some(((place.line, place.column), offset))
        };
        Ok(Self {
            starts: index.iter().filter_map(place).collect(),
            index: Some(index),
        })
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

/// Reads the functions of a text. There are none if nobody can parse the text: the places of its map are right all the same.
fn scopes_of(text: &str) -> io::Result<js_source_scopes::Scopes> {
    if is_deeper(text, MAX_DEPTH) {
        return Ok(Vec::new());
    }
    let text = with_methods_for_blocks(text);
    let scopes = with_stack(STACK_BYTES, || extract_scope_names(&text).ok())?;
    Ok(scopes.unwrap_or_default())
}

/// Runs some work in a thread that has the stack for it. Fails if there is no memory for the stack, and panics if the work does.
fn with_stack<T: Send>(bytes: usize, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|threads| {
        let thread = thread::Builder::new().stack_size(bytes);
        let done = thread.spawn_scoped(threads, work)?.join();
        Ok(done.unwrap_or_else(|panicked| panic::resume_unwind(panicked)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_for_which_there_is_no_memory_is_an_error() {
        assert_eq!(with_stack(STACK_BYTES, || 7).unwrap(), 7);
        assert!(with_stack(usize::MAX / 4, || 7).is_err());
    }

    #[test]
    #[should_panic(expected = "of the reader")]
    fn a_panic_of_the_reader_goes_on() {
        let done = with_stack(STACK_BYTES, || -> usize { panic!("a fault of the reader") });
        assert!(done.is_err());
    }
}
