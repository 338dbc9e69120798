//! The options that select events: project, period and filters.

use std::time::Duration;

use anyhow::bail;
use clap::Args;
use unjank_foundation::clock::UnixTime;
use unjank_protocol::{Day, Timestamp};

use crate::query::NamedQuery;

const MINUTE: Duration = Duration::from_secs(60);

#[derive(Args, Debug)]
pub(super) struct Choice {
    /// The project
    #[arg(long, value_name = "PROJECT", default_value = "default")]
    project: String,

    /// Start of the period: 2026-11-20T12:00:00Z, 2026-11-20, or an age such as 90m, 24h, 7d [default: 7 days before the end]
    #[arg(long, value_name = "TIME")]
    from: Option<String>,

    /// End of the period, exclusive [default: now]
    #[arg(long, value_name = "TIME")]
    to: Option<String>,

    /// Only events with this value; repeatable: values of one dimension are alternatives, all dimensions must match
    #[arg(long = "filter", value_name = "DIMENSION=VALUE")]
    filters: Vec<String>,
}

impl Choice {
    pub(super) fn project(&self) -> &str {
        &self.project
    }

    /// Whether no option but the project is set.
    pub(super) fn is_open(&self) -> bool {
        self.from.is_none() && self.to.is_none() && self.filters.is_empty()
    }

    pub(super) fn ask(&self, now: UnixTime) -> anyhow::Result<NamedQuery> {
        let mut ask = NamedQuery::default();
        if let Some(from) = &self.from {
            ask.from = Some(time("--from", from, now)?);
        }
        if let Some(to) = &self.to {
            ask.to = Some(time("--to", to, now)?);
        }
        for filter in &self.filters {
            let Some((name, value)) = filter.split_once('=') else {
                bail!("--filter `{filter}` must have the form dimension=value, such as page=Cart");
            };
            ask.filters.push((name.trim().to_owned(), value.to_owned()));
        }
        Ok(ask)
    }
}

/// Parses a time: RFC 3339, a date, or an age such as `24h`.
pub(super) fn time(name: &str, text: &str, now: UnixTime) -> anyhow::Result<UnixTime> {
    let ago = |letter: char, minutes: u32| {
        let number: u32 = text.strip_suffix(letter)?.parse().ok()?;
        (0..=1_000_000)
            .contains(&number)
            .then(|| now - MINUTE * minutes * number)
    };
    Timestamp::parse(text)
        .map(UnixTime::from)
        .or_else(|| Day::parse(text).map(UnixTime::from))
        .or_else(|| ago('m', 1))
        .or_else(|| ago('h', 60))
        .or_else(|| ago('d', 24 * 60))
        .ok_or_else(|| {
            anyhow::anyhow!(
                "{name} `{text}` is not a time: use a form such as 2026-11-20T12:00:00Z, 2026-11-20 or 24h"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_timestamps_dates_or_ages() {
        let now = Timestamp::parse("2026-11-20T12:00:00Z").unwrap().into();
        let parsed = |text: &str| time("--from", text, now).unwrap().to_string();
        assert_eq!(
            parsed("2026-11-20T10:00:00Z"),
            Timestamp::parse("2026-11-20T10:00:00Z")
                .unwrap()
                .to_string()
        );
        assert_eq!(parsed("2h"), parsed("2026-11-20T10:00:00Z"));
        assert_eq!(parsed("90m"), parsed("2026-11-20T10:30:00Z"));
        assert_eq!(parsed("1d"), parsed("2026-11-19T12:00:00Z"));
        assert_eq!(parsed("2026-11-20"), parsed("2026-11-20T00:00:00Z"));
        for bad in ["yesterday", "-1h", "h", "99999999999999999999d", "1w"] {
            assert!(time("--from", bad, now).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_filter_is_split_at_the_first_equals_sign() {
        let choice = Choice {
            project: "default".to_owned(),
            from: None,
            to: None,
            filters: vec!["name=a=b".to_owned()],
        };
        assert_eq!(
            choice.ask(UnixTime::default()).unwrap().filters,
            [("name".to_owned(), "a=b".to_owned())]
        );
        let bad = Choice {
            filters: vec!["name".to_owned()],
            ..choice
        };
        assert!(bad.ask(UnixTime::default()).is_err());
    }
}
