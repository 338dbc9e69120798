//! The digest as plain text, for mail and chat, and its table of traffic as CSV.

use std::fmt::Write as _;

use super::amount::amount;
use super::{Digest, Lost, users};

/// How many installs and users the text lists. The tables have all of them.
const LISTED: usize = 10;

impl Digest {
    /// Formats the subject of the mail, which is also the title of the digest.
    #[must_use]
    pub fn subject(&self) -> String {
        let Self { project, day, .. } = self;
        let (worse, new) = (self.regressions.len(), self.new_groups.len());
        format!("unjank: {project} on {day}: {worse} regressions, {new} new jank groups")
    }
}

/// Formats the digest as plain text.
#[must_use]
pub fn digest_text(digest: &Digest) -> String {
    let mut text = format!("{}\n", digest.subject());
    for (title, lines) in sections(digest) {
        let _infallible = write!(text, "\n{title}\n");
        for line in lines {
            let _infallible = writeln!(text, "  {line}");
        }
    }
    text
}

/// Returns the sections: a title, and the lines below it.
pub(super) fn sections(digest: &Digest) -> Vec<(&'static str, Vec<String>)> {
    let regressions = digest.regressions.iter().map(|one| {
        format!(
            "{} {} {}: {} -> {} (+{:.0} %, {:.0} samples)",
            one.signal,
            one.what,
            one.measure,
            amount(one.before, &one.unit),
            amount(one.now, &one.unit),
            one.change * 100.0,
            one.samples,
        )
    });
    let groups = digest.new_groups.iter().map(|one| {
        format!(
            "{} ({}): {:.0} times on {:.0} installs",
            one.title, one.category, one.count, one.installs
        )
    });
    let traffic = digest.traffic.iter().take(LISTED).map(|one| {
        format!(
            "{}: {} in {:.0} requests",
            short(&one.install_id),
            amount(one.bytes, "bytes"),
            one.requests
        )
    });
    vec![
        (
            "Worse than the day before by 10 % or more",
            or_nothing(regressions.collect()),
        ),
        (
            "Jank groups not seen in the four weeks before",
            or_nothing(groups.collect()),
        ),
        (
            "Installs with the most traffic",
            or_nothing(traffic.collect()),
        ),
        (
            "Users with the most traffic",
            or_nothing(users::lines(digest, LISTED)),
        ),
        ("Lost events and cost of measuring", health(digest)),
    ]
}

fn or_nothing(lines: Vec<String>) -> Vec<String> {
    if lines.is_empty() {
        return vec!["none".to_owned()];
    }
    lines
}

fn health(digest: &Digest) -> Vec<String> {
    let health = &digest.health;
    let mut lines = vec![
        format!(
            "{:.0} installs sent {:.0} events, in {}",
            health.installs,
            health.events_accepted,
            amount(health.upload_bytes, "bytes")
        ),
        format!(
            "the SDK used {} per install",
            amount(health.overhead_us_per_install, "us")
        ),
    ];
    let line = |lost: &Lost, how: &str| {
        format!("{how}: {:.0} {} ({})", lost.count, lost.signal, lost.reason)
    };
    lines.extend(health.not_stored.iter().map(|one| line(one, "not stored")));
    lines.extend(
        health
            .dropped
            .iter()
            .map(|one| line(one, "lost on devices")),
    );
    lines
}

/// Shortens an id to its first characters.
fn short(id: &str) -> String {
    id.chars().take(8).collect()
}

/// Formats the traffic of all installs as CSV. Ids are UUIDs and the rest are numbers, so nothing needs quotes.
pub(crate) fn traffic_csv(digest: &Digest) -> String {
    let mut table = "install_id,bytes,requests\r\n".to_owned();
    for one in &digest.traffic {
        let _infallible = write!(
            table,
            "{},{:.0},{:.0}\r\n",
            one.install_id, one.bytes, one.requests
        );
    }
    table
}
