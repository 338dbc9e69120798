//! The options that select events: project, period and filters.

use anyhow::bail;
use clap::Args;
use unjank_foundation::clock::UnixTime;

use super::time_arguments::time;
use crate::query::NamedQuery;

#[derive(Args, Debug)]
pub(super) struct EventFilters {
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

impl EventFilters {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_split_at_the_first_equals_sign() {
        let events = EventFilters {
            project: "default".to_owned(),
            from: None,
            to: None,
            filters: vec!["name=a=b".to_owned()],
        };
        assert_eq!(
            events.ask(UnixTime::default()).unwrap().filters,
            [("name".to_owned(), "a=b".to_owned())]
        );
        let bad = EventFilters {
            filters: vec!["name".to_owned()],
            ..events
        };
        assert!(bad.ask(UnixTime::default()).is_err());
    }
}
