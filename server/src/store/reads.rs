//! The queryable subjects with their dimensions and measures, and the statements that read them: from roll-ups if they keep all
//! requested dimensions, otherwise from raw rows. `crate::query` resolves queries; only this module has their SQL.

mod aggregate;
mod csv;
mod define;
mod details;
mod needed_symbols;
mod parts;
mod recorded;
mod run;
mod significance;
mod statement;
mod subjects;
mod versions;
mod when;

pub use self::aggregate::{Aggregate, Aggregation, Better, Formula, Measure, Unit};
pub use self::define::{Dimension, Kept, Subject, Time};
pub use self::details::{
    First, JankEvent, Search, SpanPlace, StackDetail, StoredFrame, StoredSpan,
};
pub use self::needed_symbols::{NeededBuild, SymbolQuestion, SymbolState};
pub use self::recorded::{JsonLines, recorded_signals};
pub use self::run::{Distribution, Point, Read, TableRow};
pub use self::significance::{Side, SignificanceTest, Tested};
pub use self::statement::{Base, Filter, Grain, Reading, Sort, Span, Wanted};
pub use self::subjects::{SUBJECTS, subject};
pub use self::versions::SeenVersion;
