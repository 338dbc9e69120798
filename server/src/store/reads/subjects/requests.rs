//! Requests: the spans that describe one, by host and path.
//!
//! Apps describe a request by attributes with the names of OpenTelemetry. A span of kind `network`, or one that is named like
//! `GET /cart`, counts as well, and its name then has the path.
//!
//! Of the spans of OpenTelemetry, only those that wait for an answer count: not those of a server, and not log records, which have no duration. A URL
//! alone does not make a request of a span without a kind, because spans about pages have the URL of the page.

use crate::store::reads::aggregate::Formula::{Is, Percentile, Plus, Ratio};
use crate::store::reads::aggregate::Unit::{Bytes, Count, Microseconds, Share};
use crate::store::reads::aggregate::{Aggregate, Measure};
use crate::store::reads::define::{Dimension, Subject, Time};
use crate::store::reads::details::StoredSpan;

macro_rules! is_request {
    () => {
        "s.kind = 'network' OR (s.duration_us > 0 AND s.attributes['span.kind'] IN ('', 'client') \
         AND (s.attributes['http.request.method'] != '' OR s.attributes['http.response.status_code'] != '' \
         OR s.attributes['url.path'] != '' OR (s.attributes['url.full'] != '' AND s.attributes['span.kind'] = 'client') \
         OR match(s.name, '^(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /')))"
    };
}

/// Whether a span describes a request.
pub(crate) const IS_REQUEST: &str = is_request!();

/// The same for a span that was read.
#[must_use]
pub fn is_request(span: &StoredSpan) -> bool {
    const NAMES: [&str; 3] = [
        "http.request.method",
        "http.response.status_code",
        "url.path",
    ];
    const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    let attribute = |wanted: &str| {
        let mut attributes = span.attributes.iter();
        let found = attributes.find(|(name, _)| name.as_str() == wanted);
        found.map_or("", |(_, value)| value.as_str())
    };
    let kind = attribute("span.kind");
    let is_client = kind == "client";
    let may_be = span.duration_us > 0 && (is_client || kind.is_empty());
    let method = span.name.split_once(" /").map(|(method, _)| method);
    span.kind == "network"
        || may_be
            && (NAMES.into_iter().any(|name| !attribute(name).is_empty())
                || is_client && !attribute("url.full").is_empty()
                || method.is_some_and(|method| METHODS.contains(&method)))
}

/// The spans of requests. They have no roll-up.
pub(super) static REQUESTS: Subject = Subject {
    name: "requests",
    // The join drops spans that describe no request.
    raw: concat!(
        "spans AS s ARRAY JOIN if(",
        is_request!(),
        ", [1], []) AS request"
    ),
    is_from_devices: true,
    time: Time::Instant("start"),
    hourly: None,
    daily: None,
    rollup_join: "",
    lead: None,
    dimensions: REQUESTS_DIMENSIONS,
    aggregates: REQUESTS_AGGREGATES,
    measures: REQUESTS_MEASURES,
};

/// The host of the request that a span describes. Empty if unknown.
pub(crate) const HOST: Dimension = Dimension::raw(
    "host",
    "if(s.attributes['server.address'] != '', s.attributes['server.address'], domain(s.attributes['url.full']))",
);

/// The path of the request, or the template of the path if the app gave one, which groups better. Without a template, segments that are
/// numbers, UUIDs or long hexadecimal numbers become `{id}`: there are many, and they may identify a person. The pattern consumes the
/// slash after a segment, so it is applied twice.
pub(crate) const PATH: Dimension = Dimension::raw(
    "path",
    "multiIf(s.attributes['url.template'] != '', s.attributes['url.template'], \
     replaceRegexpAll(replaceRegexpAll(multiIf( \
     s.attributes['url.path'] != '', extract(s.attributes['url.path'], '^[^?]*'), \
     s.attributes['url.full'] != '', path(s.attributes['url.full']), \
     extract(toString(s.name), '^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/[^? ]*)')), \
     '/(?:[0-9]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9a-fA-F]{16,})(/|$)', '/{id}\\\\1'), \
     '/(?:[0-9]+|[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9a-fA-F]{16,})(/|$)', '/{id}\\\\1'))",
);

pub(crate) const METHOD: Dimension = Dimension::raw(
    "method",
    "if(s.attributes['http.request.method'] != '', s.attributes['http.request.method'], extract(toString(s.name), '^([A-Z]+) /'))",
);

pub(crate) const STATUS_CODE: Dimension =
    Dimension::raw("http_status", "s.attributes['http.response.status_code']");

const REQUESTS_DIMENSIONS: &[Dimension] = &[
    HOST,
    PATH,
    METHOD,
    STATUS_CODE,
    Dimension::raw("status", "s.status"),
    Dimension::raw("page", "s.page"),
    Dimension::raw("network", "s.network"),
];

const REQUESTS_AGGREGATES: &[Aggregate] = &[
    Aggregate::sum("count", "1 / s.sample_rate"),
    Aggregate::sum("samples", "1"),
    Aggregate::sum(
        "failed",
        "if(s.status = 'error' OR toUInt16OrZero(s.attributes['http.response.status_code']) >= 400, 1 / s.sample_rate, 0)",
    ),
    Aggregate::sum(
        "tx_bytes",
        "greatest(toUInt64OrZero(s.attributes['http.request.size']), toUInt64OrZero(s.attributes['http.request.body.size'])) / s.sample_rate",
    ),
    Aggregate::sum(
        "rx_bytes",
        "greatest(toUInt64OrZero(s.attributes['http.response.size']), toUInt64OrZero(s.attributes['http.response.body.size'])) / s.sample_rate",
    ),
    Aggregate::sum("sum_us", "s.duration_us / s.sample_rate"),
    Aggregate::histogram("durations_us", "s.duration_us", "1 / s.sample_rate"),
    Aggregate::distinct("installs", "s.install_id"),
];

const REQUESTS_MEASURES: &[Measure] = &[
    Measure::neutral("count", Count, Is("count")),
    Measure::neutral("samples", Count, Is("samples")),
    Measure::neutral("installs", Count, Is("installs")),
    Measure::lower("bytes", Bytes, Plus("tx_bytes", "rx_bytes")),
    Measure::lower("tx_bytes", Bytes, Is("tx_bytes")),
    Measure::lower("rx_bytes", Bytes, Is("rx_bytes")),
    Measure::lower("failed_share", Share, Ratio("failed", "count", 1.)),
    Measure::neutral("sum_us", Microseconds, Is("sum_us")),
    Measure::lower("mean_us", Microseconds, Ratio("sum_us", "count", 1.)),
    Measure::lower("p50_us", Microseconds, Percentile("durations_us", 0.5)),
    Measure::lower("p95_us", Microseconds, Percentile("durations_us", 0.95)),
];
