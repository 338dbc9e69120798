//! From the ingest log to ClickHouse, each row exactly once: the writer, its ledger, the proof of what is stored, and what was refused.

pub(super) mod clickhouse_destination;
pub(super) mod dead_letter;
pub(super) mod dead_letter_header;
pub(super) mod delivery;
pub(super) mod destination;
pub(super) mod lease;
pub(super) mod ledger;
pub(super) mod tally;
pub(super) mod writer;
