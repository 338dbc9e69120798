//! How events get to the server: the background thread, batches, the backlog on disk, uploads, and the remote configuration.

pub(super) mod back_off;
pub(super) mod backlog;
pub(super) mod batch;
pub(super) mod budget;
pub(super) mod exchange;
pub(super) mod form;
pub(super) mod losses;
pub(super) mod modules;
pub(super) mod pending;
pub(super) mod problem;
pub(super) mod remote;
pub(super) mod spill;
pub(super) mod transport;
pub(super) mod transport_choice;
pub(super) mod uplink;
pub(super) mod verdict;
pub(super) mod worker;
