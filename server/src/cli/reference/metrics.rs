//! The page of the metrics, from their declarations.

use super::{code, table};
use crate::metrics::{Label, MetricDescription, Metrics};

const INTRODUCTION: &str = "\
# Metrics

<!-- Generated from server/src/metrics.rs by `make reference`. -->

`GET /metrics` of the admin address returns these metrics in the text format of Prometheus. [Operations](../operations.md#monitoring) \
names the ones to watch, [Troubleshooting](../troubleshooting.md#alerts) explains the alerts that use them.

A histogram has the usual three series: `…_bucket`, `…_sum` and `…_count`. A counter starts at 0 when the server starts. A metric with \
labels has no series until the server has counted something, except for those whose values are listed here.

";

const PROCESS: &str = "
On Linux, the library of Prometheus adds metrics of the process, such as `process_cpu_seconds_total`, `process_resident_memory_bytes` and \
`process_open_fds`.
";

pub(super) fn page() -> String {
    let metrics = Metrics::new().descriptions();
    let rows = metrics.iter().map(row);
    let table = table(["metric", "type", "labels", "meaning"], rows);
    format!("{INTRODUCTION}{table}{PROCESS}")
}

fn row(metric: &MetricDescription) -> [String; 4] {
    let labels: Vec<_> = metric.labels.iter().map(label).collect();
    [
        code(&metric.name),
        metric.kind.to_owned(),
        labels.join("; "),
        metric.help.clone(),
    ]
}

/// Returns a label and its values. A single value, such as the version of this build, is an example at best.
fn label(label: &Label) -> String {
    let name = code(&label.name);
    if label.values.len() < 2 {
        return name;
    }
    let values: Vec<_> = label.values.iter().map(|value| code(value)).collect();
    format!("{name}: {}", values.join(", "))
}
