//! Closed sets of names that are text in the handlers: those that are refused when they are not in the set.

use utoipa::openapi::Type;
use utoipa::openapi::schema::{Object, ObjectBuilder, SchemaType};

use crate::store::control::{Action, DeviceKeyAlgorithm, Role};

fn one_of(names: impl Iterator<Item = &'static str>) -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .enum_values(Some(names))
        .build()
}

/// What somebody may do in a project.
pub(in crate::http) fn role() -> Object {
    one_of(Role::ALL.iter().map(|role| role.as_str()))
}

/// How device tokens are signed.
pub(in crate::http) fn algorithm() -> Object {
    one_of(DeviceKeyAlgorithm::ALL.iter().map(|one| one.as_str()))
}

/// What is written to the audit log.
pub(in crate::http) fn action() -> Object {
    one_of(Action::ALL.iter().map(|action| action.as_str()))
}
