//! The resource of OTLP: app, device, install and session. Names are those of the semantic conventions 1.44 (resources `service`,
//! `telemetry`, `os`, `device`, `app`, `browser`, `deployment`), and the older ones in use.

use sha2::{Digest, Sha256};
use unjank_foundation::ids::{hashed_id, id_of};
use unjank_protocol::{Resource, Text, whole_number};
use unjank_remote_config::version_and_build;
use uuid::Uuid;

use super::attribute_values::{SAMPLE_RATE, cut, id, sample_rate};
use super::message::{Inner, Short, message};
use super::value::{Any, KeyValue};

message! {
    /// What reports.
    OtlpResource<'a> {
        1 attributes: Short<KeyValue<'a>>,
    }
}

message! {
    /// The library that made spans, logs or metrics.
    Scope<'a> {
        1 name: Text<'a>,
        2 version: Text<'a>,
        3 attributes: Short<KeyValue<'a>>,
    }
}

/// The beginning of the names that attributes of a scope have among those of an event.
const OF_SCOPE: &str = "otel.scope.";
/// The schema of the names that the events use, with the version of the semantic conventions.
const SCHEMA_URL: &str = "otel.scope.schema_url";
/// Attributes of a scope that would have the names of its fields.
const FIELDS_OF_SCOPE: [&str; 3] = ["name", "version", "schema_url"];

impl<'a> Scope<'a> {
    /// Gives the attributes the names that they have among those of an event.
    pub(super) fn prefix_names(&mut self) {
        let attributes = &mut self.attributes.0;
        attributes.retain(|one| !FIELDS_OF_SCOPE.contains(&one.key.as_str()));
        for KeyValue { key, .. } in attributes {
            if !key.starts_with(OF_SCOPE) {
                *key = format!("{OF_SCOPE}{}", key.as_str()).into();
            }
        }
    }

    /// Adds the first schema that is known as an attribute: that of the scope, else that of its resource.
    pub(super) fn add_schema<'s>(&mut self, schemas: impl IntoIterator<Item = &'s Text<'a>>)
    where
        'a: 's,
    {
        let mut schemas = schemas.into_iter();
        if let Some(schema) = schemas.find(|schema| !schema.is_empty()) {
            self.attributes.0.push(KeyValue {
                key: SCHEMA_URL.into(),
                value: Any(schema.clone()),
            });
        }
    }

    pub(super) fn cut_texts(&mut self) {
        cut(&mut self.name);
        cut(&mut self.version);
        cut_all(&mut self.attributes.0);
    }
}

fn cut_all(attributes: &mut [KeyValue<'_>]) {
    for KeyValue { key, value } in attributes {
        cut(key);
        cut(&mut value.0);
    }
}

/// A resource as the batches have it.
#[derive(Clone, Default)]
pub(super) struct Sender<'a> {
    pub(super) resource: Resource<'a>,
    pub(super) session_id: Uuid,
    pub(super) sample_rate: Option<f64>,
    /// The attributes for which a batch has no field. Each event gets them.
    pub(super) others: Vec<(Text<'a>, Text<'a>)>,
}

impl<'a> Sender<'a> {
    pub(super) fn new(Inner(resource): Inner<OtlpResource<'a>>) -> Self {
        let mut attributes = resource.attributes.0;
        cut_all(&mut attributes);
        let mut sender = Self::default();
        let own = &mut sender.resource;
        own.install_id = install_id(&attributes);
        let has_build = attributes.iter().any(|one| one.key.as_str() == BUILD);
        let (mut language, mut distribution) = (Text::default(), None);
        let (mut os_type, mut model_id, mut platform) =
            (Text::default(), Text::default(), Text::default());
        for KeyValue { key, value } in attributes {
            let value = value.0;
            match key.as_str() {
                "service.name" => own.app_id = value,
                "service.version" => own.app_version = value,
                BUILD => match whole_number(value.trim()) {
                    Some(build) => own.build = build,
                    None => sender.others.push((key, value)),
                },
                "deployment.environment.name" | "deployment.environment" => match mode(&value) {
                    Some(mode) => own.mode = mode.into(),
                    None => sender.others.push((key, value)),
                },
                "os.name" => own.os_name = value,
                "os.type" => os_type = value,
                "os.version" => own.os_version = value,
                "device.model.name" => own.device_model = value,
                "device.model.identifier" => model_id = value,
                "device.manufacturer" => own.device_manufacturer = value,
                "browser.language" => own.locale = value,
                "browser.platform" => platform = value,
                name if INSTALL_IDS.contains(&name) => {}
                "user.id" | "enduser.id" => own.user_id = value,
                "session.id" => sender.session_id = id(&value),
                "telemetry.sdk.name" => own.sdk_name = value,
                "telemetry.sdk.language" => language = value,
                "telemetry.sdk.version" => own.sdk_version = value,
                SAMPLE_RATE => sender.sample_rate = sample_rate(&value),
                "telemetry.distro.name" => distribution = Some(value),
                _ => sender.others.push((key, value)),
            }
        }
        if !has_build {
            split_build(own);
        }
        if own.app_id.is_empty() {
            // The name that the specification gives to a service without one.
            own.app_id = "unknown_service".into();
        }
        if own.device_model.is_empty() {
            own.device_model = model_id;
        }
        for other in [os_type, platform] {
            if own.os_name.is_empty() {
                own.os_name = other;
            }
        }
        own.sdk_name = match distribution {
            Some(name) => name,
            None if language.is_empty() => std::mem::take(&mut own.sdk_name),
            None => format!("{}-{language}", own.sdk_name).into(),
        };
        sender
    }
}

const BUILD: &str = "app.build_id";

/// opentelemetry-swift writes the build after the version: `4.12.0 (41200)`.
fn split_build(resource: &mut Resource<'_>) {
    if let Some((version, build)) = version_and_build(&resource.app_version) {
        resource.build = build;
        resource.app_version = version.to_owned().into();
    }
}

/// The names of the id of an install, the best first.
const INSTALL_IDS: [&str; 3] = ["app.installation.id", "device.id", "service.instance.id"];

/// The best id that a resource has, or the hash of all its attributes.
fn install_id(attributes: &[KeyValue<'_>]) -> Uuid {
    let sent = INSTALL_IDS.iter().find_map(|name| {
        let of_name = attributes.iter().filter(|one| one.key.as_str() == *name);
        of_name.rev().find_map(|one| id_of(&one.value.0))
    });
    if let Some(sent) = sent {
        return sent;
    }
    let mut digest = Sha256::new();
    for KeyValue { key, value } in attributes {
        digest.update(key.as_bytes());
        digest.update(value.0.as_bytes());
    }
    hashed_id(&digest.finalize())
}

/// What an app runs for, by the names that people use for environments.
fn mode(environment: &str) -> Option<&'static str> {
    match environment.to_ascii_lowercase().as_str() {
        "production" | "prod" => Some("production"),
        "test" | "testing" | "staging" => Some("test"),
        "development" | "dev" => Some("development"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::BUILD;
    use crate::otlp::Kind;
    use crate::otlp::bounds::{of, text};

    #[test]
    fn the_build_after_a_version_is_the_build_unless_one_is_named() {
        let in_brackets = text("service.version", "4.12.0 (41200)");
        let plain = text("service.version", "4.12.0");
        for (attributes, version, build) in [
            (vec![in_brackets.clone()], "4.12.0", 41_200),
            (vec![plain, text(BUILD, "7")], "4.12.0", 7),
            (
                vec![in_brackets.clone(), text(BUILD, "7")],
                "4.12.0 (41200)",
                7,
            ),
            (vec![text(BUILD, "debug"), in_brackets], "4.12.0 (41200)", 0),
        ] {
            let span = json!({"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13", "name": "tap"});
            let request = json!({"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"spans": [span]}]}]});
            of(Kind::Traces, &request, |read| {
                let batches = read.unwrap().batches;
                let resource = &batches[0].resource;
                let read = (resource.app_version.as_str(), resource.build);
                assert_eq!(read, (version, build), "{request}");
            });
        }
    }
}
