//! Which symbols a frame needs.

use unjank_protocol::Frame;
use unjank_symbols::{LookupKind, SymbolId, map_id_of};

/// The build whose symbols a frame needs, and the kind of its lookup file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymbolNeed {
    pub id: SymbolId,
    pub kind: LookupKind,
}

impl SymbolNeed {
    /// A frame of native code has a build id and an offset. A frame of a script has a build id, a line and a column. A frame of obfuscated
    /// Java has a class, and the id of its mapping as build id or as source file.
    #[must_use]
    pub fn of(frame: &Frame<'_>) -> Option<Self> {
        if !frame.class.is_empty() {
            let id = map_id_of(&frame.file).or_else(|| SymbolId::parse(&frame.build_id))?;
            let kind = LookupKind::Java;
            return Some(Self { id, kind });
        }
        let kind = if frame.offset.is_some_and(|offset| offset > 0) {
            LookupKind::Native
        } else if frame.line > 0 && frame.column > 0 {
            LookupKind::JavaScript
        } else {
            return None;
        };
        Some(Self {
            id: SymbolId::parse(&frame.build_id)?,
            kind,
        })
    }
}

/// Whether a stack has a frame that symbols could improve.
#[must_use]
pub fn needs_symbols(frames: &[Frame<'_>]) -> bool {
    frames.iter().any(|frame| SymbolNeed::of(frame).is_some())
}
