//! Waits until all acknowledged batches have reached ClickHouse.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::Client;

use crate::clickhouse::ClickHouse;
use crate::store;

/// Gauge of the records that the server's log still holds.
const PENDING: &str = "unjank_log_pending_records";
/// Gauge of the stored rows that are not rolled up yet.
const UNFOLDED: &str = "unjank_writer_unfolded_rows";
const POLL: Duration = Duration::from_millis(250);
/// How long the tables must not have grown while the gauges are 0: the server updates them only now and then, and holds new
/// records for a second to batch them.
const QUIET: Duration = Duration::from_millis(2_500);
/// The same if the server has no gauge.
const QUIET_WITHOUT_GAUGE: Duration = Duration::from_secs(6);

/// Waits until the server's log is empty: until the gauges are 0, if `admin_url` is set and the server has them, and until the
/// tables stop growing. Returns how long that took.
pub(crate) async fn wait(
    admin_url: Option<&str>,
    clickhouse: &ClickHouse,
    timeout: Duration,
) -> Result<Duration> {
    let begun = Instant::now();
    let mut rows = 0;
    let mut quiet_since = begun;
    while begun.elapsed() < timeout {
        let gauge_value = match admin_url {
            Some(url) => pending(url).await,
            None => Ok(None),
        };
        let (quiet, obstacle) = match gauge_value {
            Ok(Some(0.0)) => (QUIET, None),
            Ok(Some(records)) => (
                QUIET,
                Some(format!(
                    "{records} log records or rows still wait to be stored or rolled up"
                )),
            ),
            Ok(None) => (QUIET_WITHOUT_GAUGE, None),
            // A restarting server will answer again soon.
            Err(error) => (QUIET, Some(format!("{error:#}"))),
        };
        if let Some(obstacle) = obstacle {
            quiet_since = Instant::now();
            if begun.elapsed() + POLL >= timeout {
                bail!("{}", too_slow(timeout, &obstacle));
            }
        } else {
            let now = store::all_rows(clickhouse).await?;
            if now != rows {
                (rows, quiet_since) = (now, Instant::now());
            } else if quiet_since.elapsed() > quiet {
                return Ok(quiet_since.saturating_duration_since(begun));
            }
        }
        tokio::time::sleep(POLL).await;
    }
    bail!("{}", too_slow(timeout, "its tables are still growing"))
}

fn too_slow(timeout: Duration, obstacle: &str) -> String {
    format!(
        "the server has not drained its log within {} s: {obstacle}. Check the server's own log: can it reach ClickHouse? To wait longer, \
         raise --drain-timeout",
        timeout.as_secs()
    )
}

/// Returns the log records and rows still to be processed, or `None` if the server does not have the gauge.
async fn pending(admin_url: &str) -> Result<Option<f64>> {
    let text = metrics(admin_url).await?;
    let pending = gauge(&text, PENDING);
    Ok(pending.map(|records| records + gauge(&text, UNFOLDED).unwrap_or_default()))
}

/// Returns the server's metrics in the Prometheus text format.
pub(crate) async fn metrics(admin_url: &str) -> Result<String> {
    let url = format!("{}/metrics", admin_url.trim_end_matches('/'));
    let client = Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(5))
        .build()?;
    let response = client.get(&url).send().await.context("fetching metrics")?;
    let response = response.error_for_status().context("fetching metrics")?;
    Ok(response.text().await?)
}

/// Returns the value of a metric in the Prometheus text format, summed over its labels.
pub(crate) fn gauge(text: &str, name: &str) -> Option<f64> {
    let values = text.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let value = if rest.starts_with('{') {
            rest.rsplit_once('}')?.1
        } else {
            rest.starts_with(' ').then_some(rest)?
        };
        value.split_whitespace().next()?.parse::<f64>().ok()
    });
    values.reduce(|sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_are_parsed_with_and_without_labels_and_longer_names_are_ignored() {
        let text = "# TYPE unjank_log_pending_records gauge\nunjank_log_pending_records 12\n\
                    unjank_log_pending_records_total 99\n";
        assert_eq!(gauge(text, PENDING), Some(12.0));
        let text =
            "unjank_log_pending_records{log=\"a\"} 1\nunjank_log_pending_records{log=\"b\"} 2\n";
        assert_eq!(gauge(text, PENDING), Some(3.0));
        assert_eq!(gauge("other 1\n", PENDING), None);
    }
}
