//! What any part of the server may use: time, background tasks, shares of a bounded resource, fingerprints, ids, and the documents of a
//! project's settings. Nothing here knows events, HTTP or a database.

pub mod clock;
pub mod expressions;
pub mod fingerprint;
pub mod forward_document;
pub mod holm;
pub mod ids;
pub mod link_template;
pub mod secret;
pub mod shares;
pub mod source_links;
pub mod task;
pub mod trace_links;
