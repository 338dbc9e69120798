//! Waits until what was acknowledged has reached ClickHouse.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::Client;

use crate::clickhouse::ClickHouse;
use crate::store;

/// The gauge that says how much the server's log still holds.
const PENDING: &str = "unjank_log_pending_records";
/// And the one that says what its roll-ups do not hold yet.
const UNFOLDED: &str = "unjank_writer_unfolded_rows";
const POLL: Duration = Duration::from_millis(250);
/// How long the tables must not have grown while the gauge says 0: it is set only now and then, and new records wait a
/// second for company.
const QUIET: Duration = Duration::from_millis(2_500);
/// The same without the gauge.
const QUIET_WITHOUT_WORD: Duration = Duration::from_secs(6);

/// Waits for the server's log to be empty: by its own word when `admin_url` is given and the gauge is there, and until the
/// tables stop growing. Answers how long it took until then.
pub(crate) async fn wait(
    admin_url: Option<&str>,
    clickhouse: &ClickHouse,
    timeout: Duration,
) -> Result<Duration> {
    let begun = Instant::now();
    let mut rows = 0;
    let mut quiet_since = begun;
    while begun.elapsed() < timeout {
        let word = match admin_url {
            Some(url) => pending(url).await,
            None => Ok(None),
        };
        let (quiet, obstacle) = match word {
            Ok(Some(0.0)) => (QUIET, None),
            Ok(Some(records)) => (
                QUIET,
                Some(format!(
                    "{records} records of its log or rows wait to be stored or rolled up"
                )),
            ),
            Ok(None) => (QUIET_WITHOUT_WORD, None),
            // A server that restarts answers again soon.
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
    bail!("{}", too_slow(timeout, "its tables still grow"))
}

fn too_slow(timeout: Duration, obstacle: &str) -> String {
    format!(
        "the server has not drained its log within {} s: {obstacle}. Can it reach ClickHouse? Its own log tells. Wait longer \
         with --drain-timeout",
        timeout.as_secs()
    )
}

/// The gauge's value; none when the server does not have it.
async fn pending(admin_url: &str) -> Result<Option<f64>> {
    let text = metrics(admin_url).await?;
    let pending = gauge(&text, PENDING);
    Ok(pending.map(|records| records + gauge(&text, UNFOLDED).unwrap_or_default()))
}

/// The server's metrics, in the Prometheus text format.
pub(crate) async fn metrics(admin_url: &str) -> Result<String> {
    let url = format!("{}/metrics", admin_url.trim_end_matches('/'));
    let client = Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(5))
        .build()?;
    let response = client
        .get(&url)
        .send()
        .await
        .context("asking for metrics")?;
    let response = response.error_for_status().context("asking for metrics")?;
    Ok(response.text().await?)
}

/// The value of a metric in the Prometheus text format, summed over its labels.
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
    fn a_gauge_is_read_with_and_without_labels_and_not_confused_with_a_longer_name() {
        let text = "# TYPE unjank_log_pending_records gauge\nunjank_log_pending_records 12\n\
                    unjank_log_pending_records_total 99\n";
        assert_eq!(gauge(text, PENDING), Some(12.0));
        let text =
            "unjank_log_pending_records{log=\"a\"} 1\nunjank_log_pending_records{log=\"b\"} 2\n";
        assert_eq!(gauge(text, PENDING), Some(3.0));
        assert_eq!(gauge("other 1\n", PENDING), None);
    }
}
