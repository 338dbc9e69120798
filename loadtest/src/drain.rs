//! Waits until what was acknowledged has reached ClickHouse.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::Client;

use crate::clickhouse::ClickHouse;
use crate::store;

/// The gauge that says how much the server's log still holds.
const PENDING: &str = "unjank_log_pending_records";
const POLL: Duration = Duration::from_millis(250);
/// Without the gauge: the log counts as drained when no row has come for so long.
const QUIET: Duration = Duration::from_secs(6);

/// Waits for the server's log to be empty: by its own word when `admin_url` is given and the gauge is there, else until
/// the tables stop growing. Answers how long it took.
pub(crate) async fn wait(
    admin_url: Option<&str>,
    clickhouse: &ClickHouse,
    timeout: Duration,
) -> Result<Duration> {
    let begun = Instant::now();
    let mut rows = 0;
    let mut grown_at = Instant::now();
    let mut last_word = "the admin listener did not answer".to_owned();
    while begun.elapsed() < timeout {
        let word = match admin_url {
            Some(url) => pending(url).await,
            None => Ok(None),
        };
        match word {
            Ok(Some(0.0)) => return Ok(begun.elapsed()),
            Ok(Some(records)) => last_word = format!("its log still holds {records} records"),
            Ok(None) => {
                let now = store::all_rows(clickhouse).await?;
                if now != rows {
                    (rows, grown_at) = (now, Instant::now());
                } else if grown_at.elapsed() > QUIET {
                    return Ok(begun.elapsed());
                }
                last_word = "its tables still grow".to_owned();
                tokio::time::sleep(POLL).await;
            }
            // A server that restarts answers again soon.
            Err(error) => last_word = format!("{error:#}"),
        }
        tokio::time::sleep(POLL).await;
    }
    bail!(
        "the server has not drained its log within {} s: {last_word}. Can it reach ClickHouse? Its own log tells. \
         Wait longer with --drain-timeout",
        timeout.as_secs()
    )
}

/// The gauge's value; none when the server does not have it.
async fn pending(admin_url: &str) -> Result<Option<f64>> {
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
    let text = response
        .error_for_status()
        .context("asking for metrics")?
        .text()
        .await?;
    Ok(gauge(&text, PENDING))
}

/// The value of a metric in the Prometheus text format, summed over its labels.
fn gauge(text: &str, name: &str) -> Option<f64> {
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
