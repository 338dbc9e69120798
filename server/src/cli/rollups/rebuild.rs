//! `unjank rollups rebuild`: makes hours of roll-ups from raw rows again.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use clap::Args;

use super::{HOUR, USUAL_PATIENCE, note, seconds};
use crate::auditor::{hour, last_closed};
use crate::cli::{runtime, store_in_use};
use crate::clock::Clock;
use crate::config::Shared;
use crate::store::{Failure, LIFE, Part, Period, Rebuilder};

/// How often a long part says how far it is.
const SPEAK: Duration = Duration::from_secs(10);

/// Rebuild roll-ups from raw rows, while the server goes on
///
/// The roll-ups by the hour and by the day are made from raw rows again for whole hours and days (UTC), a month of a table at a time, and swapped in at once. Devices and servers are not held up. While a month is swapped, its newest rows wait for their roll-up for a moment.
///
/// Hours whose raw rows may be gone are refused: --retention-days says how long raw rows are kept. `usage` is made of batches, which are kept for 8 days. Days are rebuilt as a whole, so the first day must be kept as a whole.
///
/// An interrupted rebuild continues when the same command runs again within a day. One rebuild runs at a time. All servers that write to this ClickHouse must have at least this version; do not INSERT by hand into raw tables meanwhile.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  unjank rollups rebuild --from 24h                                   all roll-ups of the last 24 hours
  unjank rollups rebuild --from 2026-11-19 --to 2026-11-20            one day
  unjank rollups rebuild --from 20d --signal spans --signal janks     two signals

`unjank rollups check` says which hours differ.
Also works on a ClickHouse of your own: --clickhouse-url, with the user that the servers write with."
)]
pub(super) struct RebuildArgs {
    /// The beginning: 2026-11-20T12:00:00Z, 2026-11-20, or so long ago as 24h, 7d
    #[arg(long, value_name = "TIME")]
    from: String,

    /// The end, not included [default: the end of the last hour that is over]
    #[arg(long, value_name = "TIME")]
    to: Option<String>,

    /// Only this signal; may repeat: spans, `sdk_health`, usage, …; an unknown one lists them all [default: all]
    #[arg(long = "signal", value_name = "SIGNAL")]
    signals: Vec<String>,
}

/// What was rebuilt.
#[derive(Default)]
struct Done {
    parts: usize,
    rows: u64,
}

pub(super) fn run(shared: &Shared, args: &RebuildArgs) -> anyhow::Result<()> {
    let now = Clock::system().now();
    let period = period(args, now)?;
    let done = runtime()?.block_on(async {
        let store = store_in_use(shared, USUAL_PATIENCE).await?;
        let rebuilder = Rebuilder::begin(&store, now / 1_000_000, LIFE).await;
        let rebuilder = rebuilder.map_err(explained)?;
        let done = all(&rebuilder, args, period).await;
        // What failed says more than what could not be tidied up after it.
        let ended = rebuilder.end().await;
        let done = done?;
        ended?;
        anyhow::Ok(done)
    })?;
    let text = format!(
        "rebuilt: {} months of roll-ups from {} raw rows, {} to {}\n",
        done.parts,
        done.rows,
        hour(period.from),
        hour(period.to)
    );
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(())
}

fn explained(failure: Failure) -> anyhow::Error {
    if failure.to_string().contains("rollup_holds") {
        return anyhow::Error::from(failure).context(
            "the tables that a rebuild needs are not there: upgrade all servers first, or run `unjank migrate`",
        );
    }
    failure.into()
}

fn period(args: &RebuildArgs, now: i64) -> anyhow::Result<Period> {
    let from = seconds("--from", &args.from, now)?;
    let to = match &args.to {
        Some(to) => seconds("--to", to, now)?,
        None => last_closed(now / 1_000_000),
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
            "there is no --signal `{unknown}`; there are: {}",
            all.iter().copied().collect::<Vec<_>>().join(", ")
        );
    }
    Ok(wanted)
}

async fn all(rebuilder: &Rebuilder, args: &RebuildArgs, period: Period) -> anyhow::Result<Done> {
    let signals = signals(rebuilder, args)?;
    let plan = rebuilder
        .plan(&signals, period)
        .context("raw rows are not kept for long enough. Choose a later --from, or other roll-ups with --signal")?;
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
        let said = Mutex::new(Instant::now());
        let progress = |rows, all| tell(part, (rows, all), &said);
        let rebuilt = rebuilder.rebuild(part, &progress).await;
        let rebuilt = rebuilt.with_context(|| format!("{} {}", part.target, part.month))?;
        rebuilder.note_part(&run, part, rebuilt.rows).await?;
        done.parts += 1;
        done.rows += rebuilt.rows;
        note(&format!(
            "{:<22} {}: {} hours, {} raw rows, new rows waited {:.1} s; {} of {of} done{}",
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

fn tell(part: &Part, (rows, all): (u64, u64), said: &Mutex<Instant>) {
    let Ok(mut said) = said.lock() else { return };
    if said.elapsed() >= SPEAK {
        *said = Instant::now();
        let line = format!("{} {}: {rows} of {all} raw rows", part.target, part.month);
        let _unheard = note(&line).is_err();
    }
}

/// By the parts that are done. Nothing for less than a few seconds.
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
        let now = (100 * DAY + 12 * HOUR + 1_800) * 1_000_000;
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
    fn the_time_left_is_said_in_words_that_fit() {
        let said = |elapsed, done, all| time_left(Duration::from_secs(elapsed), done, all);
        assert_eq!(said(1, 1, 2), "");
        assert_eq!(said(10, 1, 4), ", about 30 s left");
        assert_eq!(said(600, 1, 4), ", about 30 min left");
        assert_eq!(said(3_600, 1, 4), ", about 3.0 h left");
    }
}
