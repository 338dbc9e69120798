//! The queryable subjects with their dimensions and measures, and the statements that read them: from roll-ups if they keep all
//! requested dimensions, otherwise from raw rows. `crate::query` resolves queries; only this module has their SQL.

mod aggregate;
mod attributes;
mod csv;
mod define;
mod details;
mod functions;
mod janks_during_spans;
mod json_lines;
mod known_attributes;
mod needed_symbols;
mod nested_spans;
mod parts;
mod rates;
mod reading;
mod run;
mod session_events;
mod sessions;
mod significance;
mod single_starts;
mod statement;
mod subjects;
mod time_conditions;
mod trace_sizes;
mod versions;

pub use self::aggregate::{Aggregate, Aggregation, Better, Formula, Measure, Unit};
pub use self::define::{Dimension, Kept, Subject, Time};
pub use self::details::{
    First, JankEvent, Search, SpanPlace, StackDetail, StoredFrame, StoredSpan,
};
pub use self::json_lines::{JsonLines, recorded_signals};
pub use self::known_attributes::KnownAttribute;
pub use self::needed_symbols::{NeededBuild, SymbolQuestion, SymbolState};
pub use self::nested_spans::{NestedSpan, NestedSpans};
pub use self::reading::{Base, Filter, Grain, Reading, Sort, Span, Wanted};
pub use self::run::{Distribution, Point, Read, TableRow};
pub use self::session_events::{
    SessionFrames, SessionJank, SessionPageLoad, SessionPoint, SessionRedraws, SessionSpan,
    SessionStart, SpanChoice,
};
pub use self::sessions::{FoundSession, Hours, LONGEST_SESSION, SessionFacts, timed_signals};
pub use self::significance::{
    LEAST_INSTALLS, Side, SignificanceTest, Tested, have_same_test, ratio_p,
};
pub use self::single_starts::{FirstStarts, StoredStart};
pub use self::subjects::requests::is_request;
pub use self::subjects::{SUBJECTS, dimension_names, subject};
pub use self::trace_sizes::TraceSize;
pub use self::versions::{ReachedVersion, SeenVersion};
