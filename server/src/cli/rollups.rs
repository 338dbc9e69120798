//! `unjank rollups`: checks roll-ups against raw rows, and rebuilds them.

mod rebuild;

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use unjank_foundation::clock::UnixTime;

use super::output::unless_closed;
use super::time_arguments::time;
use super::{DEFAULT_WAIT, runtime, store_in_use};
use crate::auditor::{hour, last_closed};
use crate::config::Shared;
use crate::store::{Book, ClickHouse, Difference, PAGES, Page, Period};

/// How long a difference must persist.
const SECOND_LOOK: Duration = Duration::from_secs(5);
const HOUR: i64 = 3_600;
const DAY: i64 = 86_400;

/// Roll-ups: compare them with their raw rows, and rebuild them
#[derive(Args, Debug)]
pub(super) struct RollupsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Check(CheckArgs),
    Rebuild(rebuild::RebuildArgs),
}

/// Compare the books: acknowledged events, stored rows, hourly and daily roll-ups
///
/// Four books are compared, for each project and signal:
///   arrivals   events counted as stored (table `outcomes`) and raw rows, by hour of arrival
///   batches    events of batches and their outcomes, by hour of arrival
///   hours      raw rows and the hourly roll-up, by the hour of the events
///   days       the hourly roll-up (or raw rows, if there is none) and the daily roll-up
///
/// The command compares whole hours and days, and only as far back as both sides are kept. Events that are not rolled up yet do not count as a difference. A difference is printed only if it persists five seconds later. Exit codes: 0 balanced, 1 different or failed.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  unjank rollups check                                  the last 24 hours of all projects
  unjank rollups check --from 7d --signal spans         one signal, a week
  unjank rollups check --from 2026-11-01 --to 2026-11-08 --project shop

Also works with your own ClickHouse: --clickhouse-url."
)]
struct CheckArgs {
    /// Start of the period: 2026-11-20T12:00:00Z, 2026-11-20, or an age such as 24h, 7d [default: 24 hours before the end]
    #[arg(long, value_name = "TIME")]
    from: Option<String>,

    /// End of the period, exclusive [default: the end of the last complete hour]
    #[arg(long, value_name = "TIME")]
    to: Option<String>,

    /// Only this project
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,

    /// Only this signal: spans, janks, `sdk_health`, …; an unknown name lists them all
    #[arg(long, value_name = "SIGNAL")]
    signal: Option<String>,
}

/// The result of a check.
#[derive(Default)]
struct Checked {
    differences: Vec<Difference>,
    hours: BTreeSet<i64>,
    signals: BTreeSet<&'static str>,
    events: u64,
}

pub(super) fn run(shared: &Shared, args: &RollupsArgs) -> anyhow::Result<ExitCode> {
    let args = match &args.command {
        Command::Check(args) => args,
        Command::Rebuild(args) => {
            return rebuild::run(shared, args).map(|()| ExitCode::SUCCESS);
        }
    };
    let now = shared.now();
    let period = period(args, now)?;
    let pages = pages(args)?;
    let checked = runtime()?.block_on(async {
        let store = store_in_use(shared, DEFAULT_WAIT).await?;
        check(
            &store,
            &pages,
            period,
            args.project.as_deref(),
            now.as_secs(),
        )
        .await
    })?;
    let text = table(&checked, args.to.is_none());
    let written = std::io::stdout().lock().write_all(text.as_bytes());
    unless_closed(written.map_err(Into::into))?;
    Ok(if checked.differences.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Parses a time to seconds since the epoch.
fn seconds(name: &str, text: &str, now: UnixTime) -> anyhow::Result<i64> {
    Ok(time(name, text, now)?.as_secs())
}

fn period(args: &CheckArgs, now: UnixTime) -> anyhow::Result<Period> {
    let closed = last_closed(now.as_secs());
    let parse = |name, text: &Option<String>| {
        let text = text.as_ref();
        text.map(|text| seconds(name, text, now)).transpose()
    };
    let to = parse("--to", &args.to)?.unwrap_or(closed);
    let from = parse("--from", &args.from)?.unwrap_or(to - DAY);
    anyhow::ensure!(
        from.div_euclid(HOUR) < to.div_euclid(HOUR),
        "no whole hour lies between {} and {}",
        hour(from),
        hour(to)
    );
    Ok(Period { from, to })
}

fn pages(args: &CheckArgs) -> anyhow::Result<Vec<&'static Page>> {
    let wanted = |page: &&Page| {
        args.signal
            .as_ref()
            .is_none_or(|signal| signal == page.signal)
    };
    let pages: Vec<_> = PAGES.iter().filter(wanted).collect();
    let signals: BTreeSet<_> = PAGES.iter().map(|page| page.signal).collect();
    anyhow::ensure!(
        !pages.is_empty(),
        "unknown --signal: use one of {}",
        signals.into_iter().collect::<Vec<_>>().join(", ")
    );
    Ok(pages)
}

async fn check(
    store: &ClickHouse,
    pages: &[&'static Page],
    period: Period,
    project: Option<&str>,
    now: i64,
) -> anyhow::Result<Checked> {
    let kept = store.kept().await?;
    let mut checked = Checked::default();
    let mut day = period.from;
    while day < period.to {
        let next = (day - day.rem_euclid(DAY) + DAY).min(period.to);
        if period.to - period.from > 2 * DAY {
            note(&format!("comparing {}", hour(day)))?;
        }
        for page in pages {
            let part = kept.covered(
                page,
                Period {
                    from: day,
                    to: next,
                },
                now,
            );
            let compared = store.compare_page(page, part, project, now).await;
            let compared =
                compared.with_context(|| format!("{} {}", page.signal, page.book.as_str()))?;
            checked.add(page, part, compared.events);
            checked.differences.extend(compared.differences);
        }
        day = next;
    }
    if !checked.differences.is_empty() {
        note(&format!(
            "{} hours or days differ: checking again in {} s",
            checked.differences.len(),
            SECOND_LOOK.as_secs()
        ))?;
        tokio::time::sleep(SECOND_LOOK).await;
        let again = store.recheck(&checked.differences, now).await?;
        checked.differences.retain(|one| again.contains(one));
    }
    Ok(checked)
}

fn note(text: &str) -> std::io::Result<()> {
    writeln!(std::io::stderr(), "{text}")
}

impl Checked {
    fn add(&mut self, page: &Page, part: Period, events: u64) {
        if part.from >= part.to {
            return;
        }
        self.signals.insert(page.signal);
        let mut at = part.from;
        while at < part.to {
            self.hours.insert(at);
            at += HOUR;
        }
        if page.book == Book::Hours {
            self.events += events;
        }
    }
}

/// `is_recent`: the period ends with the last complete hour.
fn table(checked: &Checked, is_recent: bool) -> String {
    if checked.differences.is_empty() {
        let missing = match is_recent {
            true => "; the current hour is not included",
            false => "",
        };
        return format!(
            "balanced: {} hours of {} signals, {} rows compared{missing}\n",
            checked.hours.len(),
            checked.signals.len(),
            checked.events
        );
    }
    let mut text = format!(
        "{:<20} {:<16} {:<9} {:<20} {:>14} {:>14} {:>14}\n",
        "PROJECT", "SIGNAL", "BOOKS", "BEGIN", "EXPECTED", "FOUND", "DIFFERENCE"
    );
    for one in &checked.differences {
        let line = format!(
            "{:<20} {:<16} {:<9} {:<20} {:>14} {:>14} {:>+14}\n",
            one.project,
            one.page.signal,
            one.page.book.as_str(),
            hour(one.at),
            one.expected,
            one.found,
            one.found - one.expected
        );
        text.push_str(&line);
    }
    text
}
