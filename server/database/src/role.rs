//! The roles of people, tokens and keys in projects.

use super::text_enum::text_enum;

text_enum! {
    /// A role in a project. Each role includes the rights of those before it.
    Role { Viewer = "viewer", Editor = "editor", Admin = "admin" }
}
