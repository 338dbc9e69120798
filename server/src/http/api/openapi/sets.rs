//! Closed sets of names that are plain text in the handlers. Other names are rejected.

use unjank_database::{
    Action, ChannelKind, DeviceKeyAlgorithm, DeviceTokens, IncidentState, NotificationState, Role,
    Severity,
};
use unjank_protocol::Signal;
use utoipa::openapi::Type;
use utoipa::openapi::schema::{AdditionalProperties, Object, ObjectBuilder, SchemaType};

fn one_of(names: impl Iterator<Item = &'static str>) -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::new(Type::String))
        .enum_values(Some(names))
        .build()
}

/// The roles in a project.
pub(crate) fn role() -> Object {
    one_of(Role::ALL.iter().map(|role| role.as_str()))
}

/// The algorithms of keys for device tokens.
pub(crate) fn algorithm() -> Object {
    one_of(DeviceKeyAlgorithm::ALL.iter().map(|one| one.as_str()))
}

/// The actions in the audit log.
pub(crate) fn action() -> Object {
    one_of(Action::ALL.iter().map(|action| action.as_str()))
}

/// The kinds of channels.
pub(crate) fn channel_kind() -> Object {
    one_of(ChannelKind::ALL.iter().map(|kind| kind.as_str()))
}

/// The severities of incidents.
pub(crate) fn severity() -> Object {
    one_of(Severity::ALL.iter().map(|severity| severity.as_str()))
}

/// The states of a notification.
pub(crate) fn notification_state() -> Object {
    one_of(NotificationState::ALL.iter().map(|state| state.as_str()))
}

/// The states of an incident.
pub(crate) fn incident_state() -> Object {
    one_of(IncidentState::ALL.iter().map(|state| state.as_str()))
}

/// The known signals.
pub(crate) fn signal() -> Object {
    let known = Signal::ALL.iter().filter(|one| **one != Signal::Other);
    one_of(known.map(|signal| signal.as_str()))
}

/// Whether devices must send tokens.
pub(crate) fn device_tokens() -> Object {
    one_of(DeviceTokens::ALL.iter().map(|one| one.as_str()))
}

/// Like `device_tokens`, in a change: `null` leaves the setting unchanged.
pub(crate) fn device_tokens_or_null() -> Object {
    let names = DeviceTokens::ALL.iter().map(|one| Some(one.as_str()));
    ObjectBuilder::new()
        .schema_type(SchemaType::from_iter([Type::String, Type::Null]))
        .enum_values(Some(names.chain([None])))
        .description(Some(
            "`required`: an ingest key alone is not accepted if the project has an active device key. `optional`: an ingest key is enough.",
        ))
        .build()
}

/// Events per second by signal. `sdk_health` has no limit, because it counts the losses of the other signals.
pub(crate) fn signal_quotas() -> Object {
    quotas_of(SchemaType::new(Type::Object))
}

/// Like `signal_quotas`, in a change: `null` leaves the quotas unchanged.
pub(crate) fn signal_quotas_or_null() -> Object {
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
            "Events per second by signal. 0 blocks a signal. A signal that is missing or `null` has no limit.",
        ))
        .build()
}
