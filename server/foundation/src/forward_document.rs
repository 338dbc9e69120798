//! What a project forwards to another collector, as it is saved.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a project forwards to another collector, without its headers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
#[schema(as = ForwardSetting)]
pub struct ForwardDocument {
    /// The address of the collector, as in `OTEL_EXPORTER_OTLP_ENDPOINT`: the server adds `/v1/traces` and `/v1/logs`. Empty: nothing
    /// is forwarded.
    #[schema(max_length = 500, example = "https://collector.example.com")]
    pub endpoint: String,
    /// A span is forwarded if one of the rules matches it. At most 20.
    #[schema(max_items = 20)]
    pub spans: Vec<SpanRule>,
    /// Whether the beginnings and ends of incidents are forwarded, as log records.
    pub incidents: bool,
    pub compression: Compression,
}

/// How requests to the collector are compressed, as in `OTEL_EXPORTER_OTLP_COMPRESSION`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = ForwardCompression)]
pub enum Compression {
    #[default]
    Gzip,
    None,
}

/// Selects spans. All conditions must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ForwardSpanRule)]
pub struct SpanRule {
    /// The name of the span. `*` matches any characters, `?` one.
    #[schema(min_length = 1, max_length = 200, example = "checkout*")]
    pub name: String,
    /// Only spans that took at least this long.
    #[serde(default)]
    #[schema(maximum = 86_400_000)]
    pub min_duration_ms: u64,
    /// Only spans with the status `error`.
    #[serde(default)]
    pub only_errors: bool,
}
