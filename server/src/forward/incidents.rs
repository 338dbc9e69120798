//! Incidents as log records of OTLP: one for the beginning and one for the end.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message as _;
use serde_json::Value;

use super::attributes::AttributeList;
use super::{Kind, Piece};

/// What a log record says about an incident.
#[derive(Clone, Debug)]
pub struct ForwardedIncident {
    pub id: String,
    pub rule: String,
    pub title: String,
    /// `info`, `warning` or `critical`.
    pub severity: &'static str,
    pub owner: String,
    pub summary: String,
    /// The address of its page.
    pub link: String,
    pub started_at_us: i64,
    pub resolved_at_us: Option<i64>,
    /// The values of the rule's dimensions.
    pub group: Value,
    pub evidence: Value,
}

/// The most incidents of a request. Each takes a few KiB.
const REQUEST_INCIDENTS: usize = 100;

/// Returns incidents as requests.
#[must_use]
pub fn encode_incidents(project: &str, incidents: &[ForwardedIncident]) -> Vec<Piece> {
    let mut resource = AttributeList::default();
    resource.text("service.name", "unjank");
    resource.text("service.version", env!("CARGO_PKG_VERSION"));
    resource.text("unjank.project", project);
    let resource = Resource {
        attributes: resource.into_inner(),
        ..Resource::default()
    };
    let requests = incidents.chunks(REQUEST_INCIDENTS);
    requests.map(|some| request(&resource, some)).collect()
}

fn request(resource: &Resource, incidents: &[ForwardedIncident]) -> Piece {
    let request = ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: Some(resource.clone()),
            scope_logs: vec![ScopeLogs {
                scope: Some(InstrumentationScope {
                    name: "unjank.incidents".to_owned(),
                    ..InstrumentationScope::default()
                }),
                log_records: incidents.iter().map(record).collect(),
                ..ScopeLogs::default()
            }],
            ..ResourceLogs::default()
        }],
    };
    Piece {
        kind: Kind::Incidents,
        body: request.encode_to_vec(),
        events: incidents.len() as u64,
        has_keys: false,
    }
}

fn record(incident: &ForwardedIncident) -> LogRecord {
    let at = incident.resolved_at_us.unwrap_or(incident.started_at_us);
    let nanos = u64::try_from(at).unwrap_or_default() * 1_000;
    let is_open = incident.resolved_at_us.is_none();
    let severity = match incident.severity {
        "critical" if is_open => SeverityNumber::Error,
        "warning" if is_open => SeverityNumber::Warn,
        _ => SeverityNumber::Info,
    };
    let state = if is_open { "opened" } else { "resolved" };
    LogRecord {
        time_unix_nano: nanos,
        observed_time_unix_nano: nanos,
        severity_number: severity as i32,
        event_name: format!("unjank.incident.{state}"),
        body: Some(AnyValue {
            value: Some(Any::StringValue(incident.summary.clone())),
        }),
        attributes: attributes(incident).into_inner(),
        ..LogRecord::default()
    }
}

fn attributes(incident: &ForwardedIncident) -> AttributeList {
    let mut list = AttributeList::default();
    for (name, value) in [
        ("id", &incident.id),
        ("rule.id", &incident.rule),
        ("title", &incident.title),
        ("owner", &incident.owner),
        ("url", &incident.link),
    ] {
        list.text(&format!("unjank.incident.{name}"), value);
    }
    list.text("unjank.incident.severity", incident.severity);
    each(&mut list, "unjank.incident.group", &incident.group);
    let evidence = &incident.evidence;
    for name in ["metric", "numbers", "sides"] {
        let of_rule = name == "metric";
        let prefix = format!(
            "unjank.incident.{}",
            if of_rule { "metric" } else { "evidence" }
        );
        each(&mut list, &prefix, &evidence[name]);
    }
    for name in ["unit", "window_minutes", "question"] {
        scalar(
            &mut list,
            &format!("unjank.incident.evidence.{name}"),
            &evidence[name],
        );
    }
    list
}

/// Adds the texts and numbers of an object, each as an attribute.
fn each(list: &mut AttributeList, prefix: &str, object: &Value) {
    for (name, value) in object.as_object().into_iter().flatten() {
        scalar(list, &format!("{prefix}.{name}"), value);
    }
}

fn scalar(list: &mut AttributeList, key: &str, value: &Value) {
    match value {
        Value::String(text) => list.text(key, text),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => list.number(key, whole),
            (None, Some(number)) => list.float(key, number),
            (None, None) => {}
        },
        _ => {}
    }
}
