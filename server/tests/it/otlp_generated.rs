//! Generated requests of OpenTelemetry, of the published types of OTLP. `otlp_payloads` sends them.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
    Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary, SummaryDataPoint,
    exponential_histogram_data_point::Buckets, metric::Data, number_data_point,
    summary_data_point::ValueAtQuantile,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span, Status,
    span::{Event, Link},
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::server::NOW;

/// The server's time in nanoseconds.
const TIME: u64 = NOW.unsigned_abs() * 1_000;

fn value() -> impl Strategy<Value = Option<AnyValue>> {
    let leaf = prop_oneof![
        ".{0,12}".prop_map(Value::StringValue),
        any::<bool>().prop_map(Value::BoolValue),
        any::<i64>().prop_map(Value::IntValue),
        (-1e9..1e9).prop_map(Value::DoubleValue),
        vec(any::<u8>(), 0..9).prop_map(Value::BytesValue),
    ];
    let any = leaf.prop_recursive(3, 12, 4, |inner| {
        let inner = inner.prop_map(|value| AnyValue { value: Some(value) });
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|values| Value::ArrayValue(ArrayValue { values })),
            vec(("[a-z]{1,4}", inner), 0..4).prop_map(|pairs| {
                let values = pairs.into_iter().map(|(key, value)| pair(key, Some(value)));
                Value::KvlistValue(KeyValueList {
                    values: values.collect(),
                })
            }),
        ]
    });
    option::weighted(0.9, any.prop_map(|value| AnyValue { value: Some(value) }))
}

fn pair(key: String, value: Option<AnyValue>) -> KeyValue {
    KeyValue {
        key,
        value,
        ..KeyValue::default()
    }
}

const NAMES: [&str; 26] = [
    "service.name",
    "service.version",
    "app.build_id",
    "app.installation.id",
    "os.name",
    "device.model.name",
    "session.id",
    "user.id",
    "telemetry.sdk.language",
    "deployment.environment.name",
    "app.screen.name",
    "thread.name",
    "network.connection.type",
    "network.connection.subtype",
    "code.function.name",
    "code.line.number",
    "http.request.method",
    "url.full",
    "http.method",
    "http.url",
    "http.host",
    "exception.type",
    "exception.message",
    "exception.stacktrace",
    "event.name",
    "metrickit.diagnostic.hang.hang_duration",
];

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    let key = prop_oneof![
        proptest::sample::select(&NAMES[..]).prop_map(str::to_owned),
        "[a-z.]{0,9}"
    ];
    vec(
        (key, value()).prop_map(|(key, value)| pair(key, value)),
        0..9,
    )
}

fn resource() -> impl Strategy<Value = Option<Resource>> {
    let resource = attributes().prop_map(|attributes| Resource {
        attributes,
        ..Resource::default()
    });
    option::weighted(0.9, resource)
}

fn scope() -> impl Strategy<Value = Option<InstrumentationScope>> {
    let scope = (".{0,9}", ".{0,4}", attributes());
    option::of(
        scope.prop_map(|(name, version, attributes)| InstrumentationScope {
            name,
            version,
            attributes,
            ..InstrumentationScope::default()
        }),
    )
}

fn id(bytes: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        9 => vec(any::<u8>(), bytes),
        1 => vec(any::<u8>(), 0..20),
        1 => Just(vec![0; bytes]),
    ]
}

fn nanos() -> impl Strategy<Value = u64> {
    prop_oneof![9 => TIME..TIME + 1_000_000_000, 1 => any::<u64>()]
}

fn span() -> impl Strategy<Value = Span> {
    let event =
        (nanos(), ".{0,9}", attributes()).prop_map(|(time_unix_nano, name, attributes)| Event {
            time_unix_nano,
            name,
            attributes,
            ..Event::default()
        });
    let link = (id(16), id(8), attributes()).prop_map(|(trace_id, span_id, attributes)| Link {
        trace_id,
        span_id,
        attributes,
        ..Link::default()
    });
    let status = (".{0,9}", 0..4).prop_map(|(message, code)| Status { message, code });
    let ids = (id(16), id(8), id(8), "(ot=th:[0-9a-f]{1,14})?");
    let shape = (".{0,12}", 0..7, nanos(), nanos(), 0..3_u32);
    let lists = (
        attributes(),
        vec(event, 0..3),
        vec(link, 0..3),
        option::of(status),
    );
    (ids, shape, lists).prop_map(|(ids, shape, lists)| Span {
        trace_id: ids.0,
        span_id: ids.1,
        parent_span_id: ids.2,
        trace_state: ids.3,
        name: shape.0,
        kind: shape.1,
        start_time_unix_nano: shape.2,
        end_time_unix_nano: shape.3,
        dropped_attributes_count: shape.4,
        dropped_events_count: shape.4,
        dropped_links_count: shape.4,
        attributes: lists.0,
        events: lists.1,
        links: lists.2,
        status: lists.3,
        ..Span::default()
    })
}

pub(crate) fn traces() -> impl Strategy<Value = ExportTraceServiceRequest> {
    let of_scope =
        (scope(), vec(span(), 0..5), "(https://a.b/1)?").prop_map(|(scope, spans, schema_url)| {
            ScopeSpans {
                scope,
                spans,
                schema_url,
            }
        });
    let of_resource =
        (resource(), vec(of_scope, 0..3)).prop_map(|(resource, scope_spans)| ResourceSpans {
            resource,
            scope_spans,
            ..ResourceSpans::default()
        });
    vec(of_resource, 0..4).prop_map(|resource_spans| ExportTraceServiceRequest { resource_spans })
}

pub(crate) fn logs() -> impl Strategy<Value = ExportLogsServiceRequest> {
    let name = prop_oneof![
        Just("device.anr".to_owned()),
        Just("metrickit.diagnostic.hang".to_owned()),
        ".{0,9}"
    ];
    let record = (
        name,
        nanos(),
        nanos(),
        0..25,
        value(),
        attributes(),
        id(16),
        id(8),
    );
    let record = record.prop_map(|all| LogRecord {
        event_name: all.0,
        time_unix_nano: all.1,
        observed_time_unix_nano: all.2,
        severity_number: all.3,
        body: all.4,
        attributes: all.5,
        trace_id: all.6,
        span_id: all.7,
        ..LogRecord::default()
    });
    let of_scope = (scope(), vec(record, 0..5)).prop_map(|(scope, log_records)| ScopeLogs {
        scope,
        log_records,
        ..ScopeLogs::default()
    });
    let of_resource =
        (resource(), vec(of_scope, 0..3)).prop_map(|(resource, scope_logs)| ResourceLogs {
            resource,
            scope_logs,
            ..ResourceLogs::default()
        });
    vec(of_resource, 0..4).prop_map(|resource_logs| ExportLogsServiceRequest { resource_logs })
}

fn number() -> impl Strategy<Value = NumberDataPoint> {
    let value = prop_oneof![
        (-1e9..1e9).prop_map(number_data_point::Value::AsDouble),
        any::<i64>().prop_map(number_data_point::Value::AsInt),
    ];
    (nanos(), option::of(value), attributes()).prop_map(|(time_unix_nano, value, attributes)| {
        NumberDataPoint {
            time_unix_nano,
            value,
            attributes,
            ..NumberDataPoint::default()
        }
    })
}

fn histogram() -> impl Strategy<Value = HistogramDataPoint> {
    let shape = (vec(-1e3..1e3, 0..6), vec(0..99_u64, 0..7), any::<u64>());
    let range = (
        option::of(-1e3..1e3),
        option::of(-1e3..1e3),
        option::of(-1e3..1e3),
    );
    (nanos(), attributes(), shape, range).prop_map(|(time_unix_nano, attributes, shape, range)| {
        let mut explicit_bounds = shape.0;
        explicit_bounds.sort_by(f64::total_cmp);
        let mut bucket_counts = shape.1;
        if bucket_counts.len() > 1 {
            bucket_counts.resize(explicit_bounds.len() + 1, 1);
        }
        HistogramDataPoint {
            time_unix_nano,
            attributes,
            count: shape.2,
            sum: range.0,
            min: range.1,
            max: range.2,
            bucket_counts,
            explicit_bounds,
            ..HistogramDataPoint::default()
        }
    })
}

fn exponential() -> impl Strategy<Value = ExponentialHistogramDataPoint> {
    let buckets = || {
        let buckets = (any::<i32>(), vec(0..9_u64, 0..40));
        option::of(buckets.prop_map(|(offset, bucket_counts)| Buckets {
            offset,
            bucket_counts,
        }))
    };
    let shape = (-11..21, any::<u64>(), 0..9_u64, option::of(-1e3..1e3));
    (nanos(), attributes(), shape, buckets(), buckets()).prop_map(
        |(time_unix_nano, attributes, shape, positive, negative)| ExponentialHistogramDataPoint {
            time_unix_nano,
            attributes,
            scale: shape.0,
            count: shape.1,
            zero_count: shape.2,
            sum: shape.3,
            positive,
            negative,
            ..ExponentialHistogramDataPoint::default()
        },
    )
}

fn summary() -> impl Strategy<Value = SummaryDataPoint> {
    let pairs = vec((0.0..1.0, -1e9..1e9), 0..4);
    (nanos(), attributes(), pairs).prop_map(|(time_unix_nano, attributes, pairs)| {
        let pairs = pairs.into_iter();
        SummaryDataPoint {
            time_unix_nano,
            attributes,
            quantile_values: pairs
                .map(|(quantile, value)| ValueAtQuantile { quantile, value })
                .collect(),
            ..SummaryDataPoint::default()
        }
    })
}

pub(crate) fn metrics() -> impl Strategy<Value = ExportMetricsServiceRequest> {
    let data = prop_oneof![
        vec(number(), 0..4).prop_map(|data_points| Data::Gauge(Gauge { data_points })),
        (vec(number(), 0..4), 0..3).prop_map(|(data_points, aggregation_temporality)| Data::Sum(
            Sum {
                data_points,
                aggregation_temporality,
                is_monotonic: true
            }
        )),
        (vec(histogram(), 0..4), 0..3).prop_map(|(data_points, aggregation_temporality)| {
            Data::Histogram(Histogram {
                data_points,
                aggregation_temporality,
            })
        }),
        (vec(exponential(), 0..4), 0..3).prop_map(|(data_points, aggregation_temporality)| {
            Data::ExponentialHistogram(ExponentialHistogram {
                data_points,
                aggregation_temporality,
            })
        }),
        vec(summary(), 0..4).prop_map(|data_points| Data::Summary(Summary { data_points })),
    ];
    let metric = (".{0,9}", ".{0,4}", option::weighted(0.9, data));
    let metric = metric.prop_map(|(name, unit, data)| Metric {
        name,
        unit,
        data,
        ..Metric::default()
    });
    let of_scope = (scope(), vec(metric, 0..4)).prop_map(|(scope, metrics)| ScopeMetrics {
        scope,
        metrics,
        ..ScopeMetrics::default()
    });
    let of_resource =
        (resource(), vec(of_scope, 0..3)).prop_map(|(resource, scope_metrics)| ResourceMetrics {
            resource,
            scope_metrics,
            ..ResourceMetrics::default()
        });
    vec(of_resource, 0..4)
        .prop_map(|resource_metrics| ExportMetricsServiceRequest { resource_metrics })
}
