//! What happens to stored rows: comparison with the books, rebuilds of roll-ups, erasure, retention, and the space that they use.

pub(super) mod books;
pub(super) mod erase;
pub(super) mod expired_rows;
pub(super) mod mutations;
pub(super) mod rebuild;
pub(super) mod retention;
mod sql_text;
pub(super) mod usage;
