//! A month in which only versions, hours and weekdays change. Every alert that fires is false.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::Result;

use super::simulate::Course;
use super::{Bench, rules};
use crate::console;
use crate::fleet::{BATCHES, DAY, Fleet, MONDAY, OTHERS, Releases, SPANS, Stretch};

pub(super) struct Month {
    pub(super) days: u64,
    /// Minutes between two evaluations.
    pub(super) step: u64,
    pub(super) sessions: u64,
    pub(super) rules: usize,
}

/// Number of days that are filled before the evaluated ones.
const BEFORE: u64 = 8;
/// Release times of the versions, in days after the start.
const RELEASES: [f64; 5] = [2.4, 9.4, 16.6, 23.5, 31.4];
/// Maximum number of false alarms.
const TARGET: usize = 1;

/// Returns the report, whether few enough alerts fired, and the number of evaluations.
pub(super) async fn report(bench: &Bench, month: &Month) -> Result<(String, bool, u64)> {
    let project = fill(bench, month).await?;
    bench.simulator.roll_up()?;
    let mut rules = rules::fifty(&bench.templates);
    rules.truncate(month.rules);
    // Evaluations are further apart than `for_minutes`, so every alert fires without a wait.
    rules
        .iter_mut()
        .for_each(|rule| rule["for_minutes"] = 0.into());
    let from = MONDAY + BEFORE as f64 * DAY;
    let course = Course {
        from,
        to: from + month.days as f64 * DAY,
        step: month.step,
    };
    let happened = bench.simulator.run(&project, &rules, course)?;
    let of = |what: &str| {
        happened
            .transitions
            .iter()
            .filter(|one| one.what == what)
            .count()
    };
    let fired = of("fired");
    let releases = RELEASES
        .iter()
        .filter(|day| **day > BEFORE as f64 && **day < (BEFORE + month.days) as f64);
    let mut text = format!(
        "{} rules over {} days without a change, with {} roll-outs, evaluated every {} minutes ({} evaluations): fired {fired} times (target: ≤ {TARGET}), \
         reported a mix shift {} times.\n\n",
        rules.len(),
        month.days,
        releases.count(),
        month.step,
        happened.evaluations,
        of("mix_shift")
    );
    let mut by_rule: BTreeMap<(&str, &str), (usize, &str)> = BTreeMap::new();
    for one in &happened.transitions {
        let entry = by_rule
            .entry((&one.rule, &one.what))
            .or_insert((0, &one.summary));
        entry.0 += 1;
        console::say(&format!(
            "{:.2} d {} {:?}: {}",
            one.minutes_after(from) / 1_440.0,
            one.what,
            one.group,
            one.summary
        ));
    }
    for ((rule, what), (times, summary)) in
        by_rule.iter().filter(|((_, what), _)| *what != "resolved")
    {
        writeln!(text, "- {rule}: {what} {times} times, such as: {summary}")?;
    }
    Ok((text, fired <= TARGET, happened.evaluations))
}

/// Fills the evaluated days and those before.
async fn fill(bench: &Bench, month: &Month) -> Result<String> {
    let fleet = Fleet {
        seed: 7,
        installs: month.sessions * 3,
        releases: Releases::Gradual(RELEASES.iter().map(|day| MONDAY + day * DAY).collect()),
        slow_down: None,
        added: None,
    };
    let mut tables = vec![SPANS];
    tables.extend(OTHERS);
    tables.push(BATCHES);
    let weeks = (0..(BEFORE + month.days).div_ceil(7)).map(|week| Stretch {
        part: week,
        begin: MONDAY + week as f64 * 7.0 * DAY,
        seconds: 7.0 * DAY,
        sessions: month.sessions * 7,
    });
    fleet
        .fill(&bench.clickhouse, &tables, &weeks.collect::<Vec<_>>())
        .await
}
