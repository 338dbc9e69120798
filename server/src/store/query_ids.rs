//! The ids of queries, by which `system.processes` finds those that a crash has left behind.

use uuid::Uuid;

use super::range_number::Number;

/// The prefix of the query ids of all attempts at a fold or a range.
pub(super) fn attempts_at(number: Number) -> String {
    format!("unjank-{number}-")
}

/// A LIKE pattern for the query ids of a log: in a number, the log follows twelve digits of time.
pub(super) fn attempts_of(log_id: Uuid) -> String {
    format!("unjank-____________{:08x}%", Number::log_bits(log_id))
}

/// A unique query id.
pub(super) fn query_id(number: Number, what: &str) -> String {
    format!("{}{what}-{}", attempts_at(number), Uuid::new_v4())
}
