//! What all routes share: access, bodies, problems, and the parts of the OpenAPI document.

pub(super) mod body;
pub(super) mod client_address;
pub(super) mod cookies;
pub(super) mod ids;
pub(super) mod json_value;
pub(super) mod object;
pub(super) mod openapi;
pub(super) mod problem;
pub(super) mod problem_codes;
pub(super) mod revisions;
pub(super) mod roles;
pub(super) mod turns;
