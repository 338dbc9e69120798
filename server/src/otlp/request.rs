//! The outermost messages of a request.

use unjank_protocol::Text;

use super::message::{Inner, List, Part, Raw, message};
use super::resource::{OtlpResource, Scope};

message! {
    /// `ExportTraceServiceRequest`, `ExportLogsServiceRequest` or `ExportMetricsServiceRequest`: their numbers are the same.
    Export<'a> {
        #[serde(alias = "resourceSpans", alias = "resourceLogs", alias = "resourceMetrics")]
        1 resources: List<Part<'a, OfResource<'a>>>,
    }
}

message! {
    /// `ResourceSpans`, `ResourceLogs` or `ResourceMetrics`.
    OfResource<'a> {
        1 resource: Inner<OtlpResource<'a>>,
        #[serde(alias = "scopeSpans", alias = "scopeLogs", alias = "scopeMetrics")]
        2 scopes: List<Part<'a, OfScope<'a>>>,
        3 schema_url: Text<'a>,
    }
}

message! {
    /// `ScopeSpans`, `ScopeLogs` or `ScopeMetrics`.
    OfScope<'a> {
        1 scope: Inner<Scope<'a>>,
        #[serde(alias = "spans", alias = "logRecords", alias = "metrics")]
        2 items: List<Raw<'a>>,
        3 schema_url: Text<'a>,
    }
}
