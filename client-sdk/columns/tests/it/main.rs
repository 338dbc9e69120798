//! The columnar form of whole batches, by its public functions.
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod documented;
mod golden;
mod hostile;
mod made;
mod malformed;
mod round_trip;
