//! What can be asked of the stored signals, and how it is read: subjects with their dimensions and measures, from roll-ups where
//! these keep what is asked for, else from the raw rows. `crate::query` decides what is asked; the SQL stands here.

mod aggregate;
mod csv;
mod define;
mod details;
mod parts;
mod recorded;
mod run;
mod significance;
mod statement;
mod subjects;
mod versions;
mod when;

pub use self::aggregate::{Aggregate, Better, Fold, Formula, Measure, Unit};
pub use self::define::{Dimension, Kept, Subject, Time};
pub use self::details::{First, JankEvent, Search, SpanPlace, StoredFrame, StoredSpan};
pub use self::recorded::{JsonLines, recorded_signals};
pub use self::run::{Distribution, Point, Read, TableRow};
pub use self::significance::{Contest, Contestant, Tested};
pub use self::statement::{Base, Filter, Grain, Reading, Sort, Span, Wanted};
pub use self::subjects::{SUBJECTS, subject};
pub use self::versions::SeenVersion;
