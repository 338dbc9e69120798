//! What people are told without asking: incidents, and once a day how the project does.

pub mod notify;
