//! What a metric is, for the reference page: its name, type, labels and meaning.

use prometheus::core::Collector;
use prometheus::proto::{Metric, MetricType};

/// A metric without its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricDescription {
    pub name: String,
    /// The type in the text format of Prometheus, such as `counter`.
    pub kind: &'static str,
    pub labels: Vec<Label>,
    pub help: String,
}

/// A label of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    pub name: String,
    /// The values that the label has in a server that has just started.
    pub values: Vec<String>,
}

impl MetricDescription {
    /// Describes a metric. Returns `None` for a collector without a metric, which the server does not have.
    pub(super) fn of(metric: &dyn Collector) -> Option<Self> {
        let family = metric.collect().into_iter().next()?;
        let descriptors = metric.desc();
        let names = &descriptors.first()?.variable_labels;
        let labels = names.iter().map(|name| Label {
            name: name.clone(),
            values: values_of(name, family.get_metric()),
        });
        Some(Self {
            name: family.name().to_owned(),
            kind: match family.get_field_type() {
                MetricType::COUNTER => "counter",
                MetricType::GAUGE => "gauge",
                MetricType::HISTOGRAM => "histogram",
                MetricType::SUMMARY => "summary",
                MetricType::UNTYPED => "untyped",
            },
            labels: labels.collect(),
            help: family.help().to_owned(),
        })
    }
}

/// Returns the different values of a label, sorted.
fn values_of(label: &str, metrics: &[Metric]) -> Vec<String> {
    let pairs = metrics.iter().flat_map(Metric::get_label);
    let own = pairs.filter(|pair| pair.name() == label);
    let mut values: Vec<_> = own.map(|pair| pair.value().to_owned()).collect();
    values.sort_unstable();
    values.dedup();
    values
}

#[cfg(test)]
mod tests {
    use super::super::Metrics;

    #[test]
    fn metrics_without_a_value_are_described() {
        let metrics = Metrics::new().descriptions();
        let of = |name: &str| metrics.iter().find(|metric| metric.name == name).unwrap();
        let requests = of("unjank_ingest_requests_total");
        assert_eq!(requests.kind, "counter");
        let labels = requests.labels.iter().map(|label| label.name.as_str());
        let mut labels: Vec<_> = labels.collect();
        labels.sort_unstable();
        assert_eq!(labels, ["code", "status"]);
        let files = of("unjank_symbols_files_total");
        let [label] = files.labels.as_slice() else {
            panic!("{files:?}");
        };
        assert_eq!(label.values, ["added", "refused"]);
        assert_eq!(of("unjank_log_sync_seconds").kind, "histogram");
    }
}
