//! `unjank rollups rebuild`: rebuilds hours of roll-ups from raw rows.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;
use unjank_foundation::clock::UnixTime;

use super::{DEFAULT_WAIT, HOUR, note, seconds};
use crate::auditor::{hour, last_closed};
use crate::cli::{runtime, store_in_use};
use crate::config::Shared;
use crate::store::{Failure, LIFE, Part, Period, Rebuilder};

/// Interval of progress messages.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(10);

/// Rebuild roll-ups from raw rows while the server keeps running
///
/// Hourly and daily roll-ups are rebuilt from raw rows for whole hours and days (UTC), one month of a table at a time, and swapped in atomically. Devices and servers are not blocked. While a month is swapped, its newest rows are rolled up with a short delay.
///
/// Hours whose raw rows may be gone are rejected: --retention-days sets how long raw rows are kept. `usage` is rebuilt from batches, which are kept for 8 days. Days are rebuilt as a whole, so the raw rows of the whole first day must still be stored.
///
/// If a rebuild is interrupted, running the same command within a day resumes it. Only one rebuild can run at a time. All servers that write to this ClickHouse must have at least this version. Do not INSERT into raw tables by hand during a rebuild.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  unjank rollups rebuild --from 24h                                   all roll-ups of the last 24 hours
  unjank rollups rebuild --from 2026-11-19 --to 2026-11-20            one day
  unjank rollups rebuild --from 20d --signal spans --signal janks     two signals

`unjank rollups check` lists the hours that differ.
Also works with your own ClickHouse: --clickhouse-url, with the ClickHouse user of the servers."
)]
pub(super) struct RebuildArgs {
    /// Start of the period: 2026-11-20T12:00:00Z, 2026-11-20, or an age such as 24h, 7d
    #[arg(long, value_name = "TIME")]
    from: String,

    /// End of the period, exclusive [default: the end of the last complete hour]
    #[arg(long, value_name = "TIME")]
    to: Option<String>,

    /// Only this signal; repeatable: spans, `sdk_health`, usage, …; an unknown name lists them all [default: all]
    #[arg(long = "signal", value_name = "SIGNAL")]
    signals: Vec<String>,
}

/// The result of a rebuild.
#[derive(Default)]
struct Done {
    parts: usize,
    rows: u64,
}

pub(super) fn run(shared: &Shared, args: &RebuildArgs) -> anyhow::Result<()> {
    let now = shared.now();
    let period = period(args, now)?;
    let done = runtime()?.block_on(async {
        let store = store_in_use(shared, DEFAULT_WAIT).await?;
        let rebuilder = Rebuilder::begin(&store, now.as_secs(), LIFE).await;
        let rebuilder = rebuilder.map_err(with_advice)?;
        let done = all(&rebuilder, args, period).await;
        // A failure of the rebuild is more relevant than one of the cleanup.
        let ended = rebuilder.end().await;
        let done = done?;
        ended?;
        anyhow::Ok(done)
    })?;
    let text = format!(
        "rebuilt: {} parts, each a month of a roll-up, from {} raw rows, {} to {}\n",
        done.parts,
        done.rows,
        hour(period.from),
        hour(period.to)
    );
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn with_advice(failure: Failure) -> anyhow::Error {
    if failure.to_string().contains("rollup_holds") {
        return anyhow::Error::from(failure).context(
            "the tables for rebuilds do not exist: upgrade all servers first, or run `unjank migrate`",
        );
    }
    failure.into()
}

fn period(args: &RebuildArgs, now: UnixTime) -> anyhow::Result<Period> {
    let from = seconds("--from", &args.from, now)?;
    let to = match &args.to {
        Some(to) => seconds("--to", to, now)?,
        None => last_closed(now.as_secs()),
    };
    let from = from - from.rem_euclid(HOUR);
    let to = to + (-to).rem_euclid(HOUR);
    anyhow::ensure!(
        from < to,
        "no hour lies between {} and {}",
        hour(from),
        hour(to)
    );
    Ok(Period { from, to })
}

fn signals<'r>(
    rebuilder: &'r Rebuilder,
    args: &'r RebuildArgs,
) -> anyhow::Result<BTreeSet<&'r str>> {
    let targets = rebuilder.targets().into_iter();
    let all: BTreeSet<&str> = targets.map(|(signal, _)| signal).collect();
    if args.signals.is_empty() {
        return Ok(all);
    }
    let wanted: BTreeSet<&str> = args.signals.iter().map(String::as_str).collect();
    if let Some(unknown) = wanted.difference(&all).next() {
        anyhow::bail!(
            "unknown --signal `{unknown}`: use one of {}",
            all.iter().copied().collect::<Vec<_>>().join(", ")
        );
    }
    Ok(wanted)
}

async fn all(rebuilder: &Rebuilder, args: &RebuildArgs, period: Period) -> anyhow::Result<Done> {
    let signals = signals(rebuilder, args)?;
    let plan = rebuilder
        .plan(&signals, period)
        .context("raw rows of the period are no longer stored: choose a later --from, or other roll-ups with --signal")?;
    let names: Vec<&str> = signals.into_iter().collect();
    let run = format!("{}/{} {}", period.from, period.to, names.join(","));
    let finished = rebuilder.finished(&run).await?;
    let (of, mut done) = (plan.len(), Done::default());
    let left: Vec<&Part> = plan
        .iter()
        .filter(|part| !finished.contains(&(part.target.clone(), part.month)))
        .collect();
    if left.len() < of {
        note(&format!(
            "continuing an interrupted rebuild: {} of {of} parts are done",
            of - left.len()
        ))?;
    }
    let began = Instant::now();
    for (place, part) in left.iter().enumerate() {
        let last_message = Mutex::new(Instant::now());
        let progress = |rows, all| report_progress(part, rows, all, &last_message);
        let rebuilt = rebuilder.rebuild(part, &progress).await;
        let rebuilt = rebuilt.with_context(|| format!("{} {}", part.target, part.month))?;
        rebuilder.note_part(&run, part, rebuilt.rows).await?;
        done.parts += 1;
        done.rows += rebuilt.rows;
        note(&format!(
            "{:<22} {}: {} hours, {} raw rows, new rows delayed {:.1} s; {} of {of} done{}",
            part.target,
            part.month,
            part.hours(),
            rebuilt.rows,
            rebuilt.held.as_secs_f64(),
            of - left.len() + place + 1,
            time_left(began.elapsed(), place + 1, left.len())
        ))?;
    }
    rebuilder.note_end(&run).await?;
    Ok(done)
}

fn report_progress(part: &Part, rows: u64, all: u64, last_message: &Mutex<Instant>) {
    let Ok(mut last_message) = last_message.lock() else {
        return;
    };
    if last_message.elapsed() >= PROGRESS_INTERVAL {
        *last_message = Instant::now();
        let line = format!("{} {}: {rows} of {all} raw rows", part.target, part.month);
        let _unheard = note(&line).is_err();
    }
}

/// Extrapolates from the finished parts. Empty for less than a few seconds.
fn time_left(elapsed: Duration, done: usize, all: usize) -> String {
    let left = elapsed.as_secs_f64() / done as f64 * (all - done) as f64;
    match left {
        left if left < 3.0 => String::new(),
        left if left < 120.0 => format!(", about {left:.0} s left"),
        left if left < 7_200.0 => format!(", about {:.0} min left", left / 60.0),
        left => format!(", about {:.1} h left", left / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::DAY;
    use super::*;

    #[test]
    fn hours_are_rebuilt_as_a_whole() {
        let args = RebuildArgs {
            from: "90m".to_owned(),
            to: None,
            signals: Vec::new(),
        };
        let now = UnixTime::from_secs(100 * DAY + 12 * HOUR + 1_800);
        let period = period(&args, now).unwrap();
        assert_eq!(period.from, 100 * DAY + 11 * HOUR);
        assert_eq!(period.to, 100 * DAY + 12 * HOUR);
        let args = RebuildArgs {
            to: Some("3d".to_owned()),
            ..args
        };
        assert!(super::period(&args, now).is_err());
    }

    #[test]
    fn the_time_left_has_a_suitable_unit() {
        let text = |elapsed, done, all| time_left(Duration::from_secs(elapsed), done, all);
        assert_eq!(text(1, 1, 2), "");
        assert_eq!(text(10, 1, 4), ", about 30 s left");
        assert_eq!(text(600, 1, 4), ", about 30 min left");
        assert_eq!(text(3_600, 1, 4), ", about 3.0 h left");
    }
}
