//! Closed sets of names that are text in the handlers: those that are refused when they are not in the set.

use unjank_protocol::Signal;
use utoipa::openapi::Type;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, SchemaType};

use crate::store::control::{
    Action, ChannelKind, DeviceKeyAlgorithm, DeviceTokens, IncidentState, NotificationState, Role,
    Severity,
};

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

/// What stands at the other end of a channel.
pub(in crate::http) fn channel_kind() -> Object {
    one_of(ChannelKind::ALL.iter().map(|kind| kind.as_str()))
}

/// How bad something is.
pub(in crate::http) fn severity() -> Object {
    one_of(Severity::ALL.iter().map(|severity| severity.as_str()))
}

/// Where a notification stands.
pub(in crate::http) fn notification_state() -> Object {
    one_of(NotificationState::ALL.iter().map(|state| state.as_str()))
}

/// Whether an incident goes on.
pub(in crate::http) fn incident_state() -> Object {
    one_of(IncidentState::ALL.iter().map(|state| state.as_str()))
}

/// The signals that there are.
pub(in crate::http) fn signal() -> Object {
    let known = Signal::ALL.iter().filter(|one| **one != Signal::Other);
    one_of(known.map(|signal| signal.as_str()))
}

/// Whether devices must bring tokens.
pub(in crate::http) fn device_tokens() -> Object {
    one_of(DeviceTokens::ALL.iter().map(|one| one.as_str()))
}

/// The same in a change: `null` leaves it as it is.
pub(in crate::http) fn device_tokens_or_null() -> Object {
    let names = DeviceTokens::ALL.iter().map(|one| Some(one.as_str()));
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .enum_values(Some(names.chain([None])))
        .description(Some(
            "`required`: ingest keys alone no longer open, once the project has an active device key. `optional`: they do.",
        ))
        .build()
}

/// Events per second by signal. `sdk_health` has no limit, since it says what became of the others.
pub(in crate::http) fn signal_quotas() -> Object {
    quotas_of(SchemaType::new(Type::Object))
}

/// The same in a change: `null` leaves them as they are.
pub(in crate::http) fn signal_quotas_or_null() -> Object {
    quotas_of(SchemaType::from_iter([Type::Object, Type::Null]))
}

fn quotas_of(kind: SchemaType) -> Object {
    let quota = ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::Integer, Type::Null]))
        .minimum(Some(0))
        .maximum(Some(i64::MAX))
        .build();
    let limitable = |one: &&Signal| !matches!(one, Signal::SdkHealth | Signal::Other);
    let signals = Signal::ALL.iter().filter(limitable);
    signals
        .fold(ObjectBuilder::new(), |object, signal| {
            object.property(signal.as_str(), quota.clone())
        })
        .schema_type(kind)
        .additional_properties(Some(AdditionalProperties::FreeForm(false)))
        .description(Some(
            "Events per second by signal. 0 holds a signal back altogether; what is missing or `null` has no limit.",
        ))
        .build()
}
