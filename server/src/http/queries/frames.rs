//! Frames of stacks in answers, with their links to source lines.

use serde::Serialize;
use unjank_foundation::source_links::{AppBuild, CodeLocation, SourceLinks};
use utoipa::ToSchema;

use crate::store::reads::{StackDetail, StoredFrame};

/// A frame of a stack.
#[derive(Serialize, ToSchema)]
pub(super) struct FrameBody {
    /// `class.function`, or the known part of it.
    label: String,
    class: String,
    module: String,
    /// The build of the module, as the device sent it. Empty if unknown.
    build_id: String,
    /// The offset in the module. 0 if unknown.
    offset: u64,
    function: String,
    file: String,
    /// 0 if unknown.
    line: u32,
    origin: Origin,
    /// The address of the source line, by the project's source links.
    source_url: Option<String>,
}

/// How a frame was derived from the reported frame.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = FrameOrigin)]
enum Origin {
    /// The reported frame itself.
    Reported,
    /// A symbol file named the function.
    Called,
    /// The compiler inlined the function into that of the next frame.
    Inlined,
    /// A symbol file names several functions or lines for the reported frame, of which one ran. The frame names all of the functions; its
    /// file and line are empty if they differ.
    Ambiguous,
}

impl From<u8> for Origin {
    fn from(stored: u8) -> Self {
        match stored {
            1 => Self::Called,
            2 => Self::Inlined,
            3 => Self::Ambiguous,
            _ => Self::Reported,
        }
    }
}

impl FrameBody {
    fn new(frame: &StoredFrame, links: &SourceLinks, app: AppBuild<'_>) -> Self {
        let location = CodeLocation {
            class: &frame.class,
            file: &frame.file,
            line: frame.line,
        };
        Self {
            label: frame.label(),
            class: frame.class.clone(),
            module: frame.module.clone(),
            build_id: frame.build_id.clone(),
            offset: frame.offset,
            function: frame.function.clone(),
            file: frame.file.clone(),
            line: frame.line,
            origin: frame.origin.into(),
            source_url: links.url(location, app).ok(),
        }
    }
}

/// The builds whose symbols a stack lacks. Their ids are in lower case, without dashes.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct LackedSymbols {
    /// Builds without a symbol file.
    missing_symbols: Vec<String>,
    /// Builds whose symbol file does not belong to them.
    mismatched_symbols: Vec<String>,
}

impl LackedSymbols {
    pub(crate) fn of(stack: Option<&StackDetail>) -> Self {
        stack.map_or_else(Self::default, |stack| Self {
            missing_symbols: stack.missing.clone(),
            mismatched_symbols: stack.mismatched.clone(),
        })
    }
}

/// Returns the frames of a stack that occurred in `app`.
pub(crate) fn frames(
    stack: Option<&StackDetail>,
    links: &SourceLinks,
    app: AppBuild<'_>,
) -> Vec<FrameBody> {
    let frames = stack.map_or(&[][..], |stack| &stack.frames);
    let frames = frames.iter();
    frames
        .map(|frame| FrameBody::new(frame, links, app))
        .collect()
}
