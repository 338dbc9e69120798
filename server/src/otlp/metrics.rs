//! Data points of OTLP as metrics.
//!
//! A gauge and a sum are one value each. A histogram is one value per bucket with the number of its measurements, so percentiles are those
//! of the measurements, within the width of a bucket. A cumulative histogram repeats all measurements since the start with each report;
//! its percentiles would be those of the past, so it is refused with what to set instead.

use unjank_protocol::{Attributes, Metric, Text};

use super::attribute_values::cut;
use super::attributes::Known;
use super::distribution::{Bucket, explicit, exponential, fitted};
use super::message::{Inner, List, Raw, Short, message};
use super::resource::{Scope, Sender};
use super::scalars::{
    Count, Double, DoubleList, Enum, Fixed, FixedList, Signed, SignedFixed, WholeList,
};
use super::spans::time;
use super::{Event, Found, Reject, Room, Unreadable, bytes_of};

message! {
    OtlpMetric<'a> {
        1 name: Text<'a>,
        3 unit: Text<'a>,
        5 gauge: Option<Raw<'a>>,
        7 sum: Option<Raw<'a>>,
        9 histogram: Option<Raw<'a>>,
        10 exponential_histogram: Option<Raw<'a>>,
        11 summary: Option<Raw<'a>>,
    }
}

message! {
    /// `Gauge`, `Sum`, `Histogram`, `ExponentialHistogram` or `Summary`.
    Points<'a> {
        1 data_points: List<Raw<'a>>,
        2 aggregation_temporality: Enum,
    }
}

message! {
    NumberPoint<'a> {
        3 time_unix_nano: Fixed,
        4 as_double: Option<Double>,
        6 as_int: Option<SignedFixed>,
        7 attributes: Known<'a>,
        8 flags: Count,
    }
}

message! {
    HistogramPoint<'a> {
        3 time_unix_nano: Fixed,
        4 count: Fixed,
        5 sum: Option<Double>,
        6 bucket_counts: FixedList,
        7 explicit_bounds: DoubleList,
        9 attributes: Known<'a>,
        11 min: Option<Double>,
        12 max: Option<Double>,
    }
}

message! {
    ExponentialPoint<'a> {
        1 attributes: Known<'a>,
        3 time_unix_nano: Fixed,
        4 count: Fixed,
        5 sum: Option<Double>,
        6 scale: Signed,
        7 zero_count: Fixed,
        8 positive: Inner<Buckets>,
        9 negative: Inner<Buckets>,
        12 min: Option<Double>,
        13 max: Option<Double>,
    }
}

message! {
    Buckets {
        1 offset: Signed,
        2 bucket_counts: WholeList,
    }
}

message! {
    SummaryPoint<'a> {
        3 time_unix_nano: Fixed,
        4 count: Fixed,
        5 sum: Double,
        6 quantile_values: Short<Quantile>,
        7 attributes: Known<'a>,
    }
}

message! {
    Quantile {
        1 quantile: Double,
        2 value: Double,
    }
}

const CUMULATIVE: u64 = 2;
/// The flag of a data point that says that nothing was measured.
const NO_RECORDED_VALUE: u64 = 1;

/// The samples of a metric. Takes room for them before it copies what they share.
pub(super) fn points<'a>(
    item: Raw<'a>,
    scope: &Scope<'a>,
    sender: &Sender<'a>,
    room: &mut Room,
) -> Result<Vec<Result<Found<'a>, Reject>>, Unreadable> {
    let (metric, points, data) = match decoded(item) {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(Vec::new()),
        Err(reject) => {
            room.take(1, 0)?;
            return Ok(vec![Err(reject)]);
        }
    };
    let is_distribution = matches!(data, Data::Histogram | Data::Exponential);
    let is_cumulative = is_distribution && points.aggregation_temporality.0 == CUMULATIVE;
    let mut found = Vec::new();
    for point in points.data_points.items()? {
        // A point without a value costs as much as one with a value.
        room.take(1, 0)?;
        if is_cumulative {
            found.push(Err(cumulative(&metric.name)));
            continue;
        }
        match data.samples(point) {
            // Nothing was measured, so there is nothing to store or to reject.
            Ok((_, Samples { values, .. })) if values.is_empty() => {}
            Ok((attributes, samples)) => {
                found.extend(metric.with(attributes, &samples, (scope, sender), room)?);
            }
            Err(reject) => found.push(Err(reject)),
        }
    }
    Ok(found)
}

type Decoded<'a> = (OtlpMetric<'a>, Points<'a>, Data);

/// A metric and its data points. `None` if it has none.
fn decoded(item: Raw<'_>) -> Result<Option<Decoded<'_>>, Reject> {
    let mut metric: OtlpMetric<'_> = item.decode()?;
    cut(&mut metric.name);
    cut(&mut metric.unit);
    let all = [
        (metric.gauge, Data::Number),
        (metric.sum, Data::Number),
        (metric.histogram, Data::Histogram),
        (metric.exponential_histogram, Data::Exponential),
        (metric.summary, Data::Summary),
    ];
    let Some((raw, data)) = all.into_iter().find_map(|(raw, data)| Some((raw?, data))) else {
        return Ok(None);
    };
    let points = raw.decode()?;
    Ok(Some((metric, points, data)))
}

impl<'a> OtlpMetric<'a> {
    /// The samples of one data point.
    fn with(
        &self,
        mut known: Known<'a>,
        samples: &Samples,
        (scope, sender): (&Scope<'a>, &Sender<'a>),
        room: &mut Room,
    ) -> Result<Vec<Result<Found<'a>, Reject>>, Unreadable> {
        known.keep_place();
        known.keep_exception();
        known.keep_event_name();
        if !self.unit.is_empty() {
            known.others.push(("unit".into(), self.unit.clone()));
        }
        let event = Metric {
            name: self.name.clone(),
            time: time(samples.time),
            value: 0.,
            min: None,
            max: None,
            count: None,
            network: known.take_network(),
            uptime_ms: 0,
            attributes: known.attributes(scope, sender),
            page: known.page,
            sample_rate: 1.,
        };
        let shared = [
            event.name.len(),
            event.page.len(),
            known.user_id.as_ref().map_or(0, |id| id.len()),
        ];
        let bytes = bytes_of(&event.attributes) + shared.iter().sum::<usize>();
        let values = samples.values.len();
        room.take(values - 1, bytes.saturating_mul(values))?;
        let found = samples.values.iter().map(|sample| {
            Ok(Found {
                event: Event::Metric(Box::new(sample.of(&event))),
                session_id: known.session_id,
                user_id: known.user_id.clone(),
            })
        });
        Ok(found.collect())
    }
}

fn cumulative(name: &str) -> Reject {
    let name: String = name.chars().take(100).collect();
    let detail = format!(
        "the histogram `{name}` is cumulative: set OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE=delta in the app"
    );
    Reject::new("cumulative_histogram", detail)
}

#[derive(Clone, Copy)]
enum Data {
    Number,
    Histogram,
    Exponential,
    Summary,
}

struct Samples {
    time: Fixed,
    values: Vec<Sample>,
}

/// A value that stands for `count` measurements.
struct Sample {
    value: f64,
    range: Option<(f64, f64)>,
    count: u64,
    /// The share of measurements below the value, as summaries have it.
    quantile: Option<f64>,
}

impl Sample {
    fn of<'a>(&self, event: &Metric<'a>) -> Metric<'a> {
        let mut event = event.clone();
        event.value = self.value;
        if let Some((min, max)) = self.range {
            (event.min, event.max) = (Some(min), Some(max));
        }
        event.count = Some(self.count);
        if let Some(quantile) = self.quantile {
            let Attributes(attributes) = &mut event.attributes;
            attributes.insert(0, ("quantile".into(), quantile.to_string().into()));
        }
        event
    }
}

impl Data {
    fn samples(self, raw: Raw<'_>) -> Result<(Known<'_>, Samples), Reject> {
        let one = |value| Sample {
            value,
            range: None,
            count: 1,
            quantile: None,
        };
        let (attributes, time, values) = match self {
            Self::Number => {
                let point: NumberPoint<'_> = raw.decode()?;
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "metrics are floating-point numbers"
                )]
                let whole = point.as_int.map(|number| number.0 as f64);
                let value = point.as_double.map(|number| number.0).or(whole);
                if value.is_none() && point.flags.0 & NO_RECORDED_VALUE == 0 {
                    return Err(unmeasured("a data point has no value"));
                }
                let values = value.map(one).into_iter().collect();
                (point.attributes, point.time_unix_nano, values)
            }
            Self::Histogram => {
                let point: HistogramPoint<'_> = raw.decode()?;
                let (min, max) = range(point.min, point.max);
                let sum = point.sum.map(|one| one.0);
                let (bounds, counts) = (&point.explicit_bounds.0, &point.bucket_counts.0);
                let buckets = if counts.is_empty() && bounds.is_empty() {
                    Vec::new()
                } else {
                    explicit(bounds, counts, min, max).ok_or_else(buckets_do_not_match)?
                };
                let count = counts.iter().copied().fold(point.count.0, u64::max);
                let values = spread(&buckets, sum, count)?;
                (point.attributes, point.time_unix_nano, values)
            }
            Self::Exponential => {
                let point: ExponentialPoint<'_> = raw.decode()?;
                let of = |buckets: &Buckets, sign| {
                    exponential(
                        point.scale.0,
                        buckets.offset.0,
                        &buckets.bucket_counts.0,
                        sign,
                    )
                };
                let mut buckets = of(&point.negative.0, -1.);
                buckets.extend((point.zero_count.0 > 0).then_some(Bucket {
                    low: 0.,
                    high: 0.,
                    count: point.zero_count.0,
                }));
                buckets.extend(of(&point.positive.0, 1.));
                let (min, max) = range(point.min, point.max);
                for bucket in &mut buckets {
                    let min = min.unwrap_or(bucket.low);
                    let max = max.unwrap_or(bucket.high);
                    bucket.low = bucket.low.max(min.min(bucket.high));
                    bucket.high = bucket.high.min(max.max(bucket.low));
                }
                let values = spread(&buckets, point.sum.map(|one| one.0), point.count.0)?;
                (point.attributes, point.time_unix_nano, values)
            }
            Self::Summary => {
                let point: SummaryPoint<'_> = raw.decode()?;
                let pairs = point.quantile_values.0.iter();
                let mut values: Vec<_> = pairs
                    .map(|pair| Sample {
                        quantile: Some(pair.quantile.0),
                        ..one(pair.value.0)
                    })
                    .collect();
                if values.is_empty() {
                    values = spread(&[], Some(point.sum.0), point.count.0)?;
                }
                (point.attributes, point.time_unix_nano, values)
            }
        };
        Ok((attributes, Samples { time, values }))
    }
}

/// The smallest and the largest measurement, as far as they are possible.
fn range(min: Option<Double>, max: Option<Double>) -> (Option<f64>, Option<f64>) {
    let known = |number: Option<Double>| number.map(|one| one.0).filter(|one| one.is_finite());
    match (known(min), known(max)) {
        (Some(min), Some(max)) if min > max => (None, None),
        range => range,
    }
}

/// A value for each bucket, or the mean if there are no buckets. None if nothing was measured.
fn spread(buckets: &[Bucket], sum: Option<f64>, count: u64) -> Result<Vec<Sample>, Reject> {
    if buckets.is_empty() && count == 0 {
        return Ok(Vec::new());
    }
    if buckets.is_empty() {
        let no_sum = || unmeasured("a data point has a count, but neither buckets nor a sum");
        #[expect(
            clippy::cast_precision_loss,
            reason = "a mean of so many values is not exact"
        )]
        let mean = sum.ok_or_else(no_sum)? / count as f64;
        return Ok(vec![Sample {
            value: mean,
            range: None,
            count,
            quantile: None,
        }]);
    }
    let values = fitted(buckets, sum).into_iter().zip(buckets);
    let samples = values.map(|((value, count), bucket)| Sample {
        value,
        range: Some((bucket.low, bucket.high)),
        count,
        quantile: None,
    });
    Ok(samples.collect())
}

fn unmeasured(detail: &str) -> Reject {
    Reject::new("invalid_event", detail)
}

fn buckets_do_not_match() -> Reject {
    let detail = "a histogram has one bucket more than bounds, and its bounds go up";
    Reject::new("invalid_event", detail)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::otlp::Kind;
    use crate::otlp::bounds::of;

    /// The values and counts of the rows of a data point, and why it was rejected.
    fn rows(data: &str, point: &Value) -> (Vec<(f64, Option<u64>)>, Vec<String>) {
        let metric =
            json!({"name": "load", data: {"aggregationTemporality": 1, "dataPoints": [point]}});
        let request = json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]});
        of(Kind::Metrics, &request, |read| {
            let request = read.unwrap();
            let metrics = request.batches.iter().flat_map(|batch| &batch.metrics);
            let rejects = request.undecoded.into_iter();
            (
                metrics.map(|metric| (metric.value, metric.count)).collect(),
                rejects.map(|(_, reject)| reject.detail).collect(),
            )
        })
    }

    #[test]
    fn a_data_point_with_measurements_has_rows_or_a_reason() {
        let without_sum = "a data point has a count, but neither buckets nor a sum";
        let mean = (vec![(2., Some(5))], vec![]);
        let nothing = (vec![], vec![]);
        let rejected = |reason: &str| (vec![], vec![reason.to_owned()]);
        for (data, point, expected) in [
            ("summary", json!({"count": 5, "sum": 10}), mean.clone()),
            ("summary", json!({"count": 0}), nothing.clone()),
            ("histogram", json!({"count": 5, "sum": 10}), mean.clone()),
            ("histogram", json!({"count": 5}), rejected(without_sum)),
            (
                "histogram",
                json!({"bucketCounts": [5], "sum": 10}),
                mean.clone(),
            ),
            (
                "histogram",
                json!({"bucketCounts": [5]}),
                rejected(without_sum),
            ),
            ("histogram", json!({"count": 0, "sum": 0}), nothing.clone()),
            ("exponentialHistogram", json!({"count": 5, "sum": 10}), mean),
            (
                "exponentialHistogram",
                json!({"count": 5}),
                rejected(without_sum),
            ),
            ("gauge", json!({}), rejected("a data point has no value")),
            ("gauge", json!({"flags": 1}), nothing.clone()),
            ("sum", json!({"flags": 1}), nothing),
        ] {
            assert_eq!(rows(data, &point), expected, "{data} {point}");
        }
    }
}
