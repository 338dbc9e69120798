//! The daily digest: a UTC day compared with the day before. The numbers come from the query engine. They are not tested for
//! significance, unlike those of alert rules.

mod amount;
mod html;
mod text;
mod users;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use unjank_foundation::clock::{DAY, UnixTime};
use unjank_protocol::Day;
use utoipa::ToSchema;

use crate::query::{NamedQuery, QueryError};
use crate::store::ClickHouse;
use crate::store::reads::TableRow;

pub(super) use self::html::digest_html;
pub use self::text::digest_text;
pub(super) use self::text::traffic_csv;
pub(super) use self::users::users_csv;
pub use self::users::{TrafficWithoutUser, UserTraffic};

/// One project's day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Digest {
    pub project: String,
    /// A UTC day: `2026-11-20`.
    #[schema(format = Date)]
    pub day: String,
    /// Measures that got worse by 10 % or more, worst first.
    pub regressions: Vec<Regression>,
    /// Jank groups that did not occur in the four weeks before.
    pub new_groups: Vec<NewGroup>,
    /// The hundred installs with the most traffic.
    pub traffic: Vec<InstallTraffic>,
    /// The hundred users with the most traffic.
    #[serde(default)]
    pub users: Vec<UserTraffic>,
    /// The traffic of installs without a user; missing if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_user: Option<TrafficWithoutUser>,
    pub health: Health,
}

/// A measure that got worse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Regression {
    pub signal: String,
    /// The span, page or kind of start.
    pub what: String,
    pub measure: String,
    /// `us`, `ms` or `share`.
    pub unit: String,
    pub before: f64,
    pub now: f64,
    /// The relative change: 0.1 is 10 % more.
    pub change: f64,
    pub samples: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = NewJankGroup)]
pub struct NewGroup {
    pub group_id: String,
    pub title: String,
    pub category: String,
    pub count: f64,
    pub installs: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InstallTraffic {
    pub install_id: String,
    pub bytes: f64,
    pub requests: f64,
}

/// Lost events, and the cost of measuring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = DigestHealth)]
pub struct Health {
    /// Installs that sent something.
    pub installs: f64,
    pub events_accepted: f64,
    /// Events that the server did not store, by signal and reason.
    pub not_stored: Vec<Lost>,
    /// Events that devices dropped before sending, by signal and reason.
    pub dropped: Vec<Lost>,
    /// The CPU time of the SDK per install, as measured by itself.
    pub overhead_us_per_install: f64,
    pub upload_bytes: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = LostEvents)]
pub struct Lost {
    pub signal: String,
    pub reason: String,
    pub count: f64,
}

/// With fewer samples, a measure varies by chance.
const FEWEST: u64 = 100;
const LEAST_CHANGE: f64 = 0.1;
const MOST_REGRESSIONS: usize = 10;
const MOST_NEW_GROUPS: usize = 10;
const LOOK_BACK: Duration = Duration::from_secs(28 * 86_400);

/// The comparisons with the day before: signal, dimension, measure and unit.
const COMPARED: [[&str; 4]; 4] = [
    ["spans", "name", "p95_us", "us"],
    ["page_loads", "page", "t3_p75_ms", "ms"],
    ["frame_windows", "page", "jank_share", "share"],
    ["app_starts", "kind", "p75_ms", "ms"],
];

/// Queries the digest of a day.
pub async fn digest_of(
    clickhouse: &ClickHouse,
    project: &str,
    day: Day,
    now: UnixTime,
) -> Result<Digest, QueryError> {
    let asking = Asking {
        clickhouse,
        project,
        begin: day.into(),
        now,
    };
    let (users, without_user) = asking.users().await?;
    Ok(Digest {
        project: project.to_owned(),
        day: day.to_string(),
        regressions: asking.regressions().await?,
        new_groups: asking.new_groups().await?,
        traffic: asking.traffic().await?,
        users,
        without_user,
        health: asking.health().await?,
    })
}

struct Asking<'a> {
    clickhouse: &'a ClickHouse,
    project: &'a str,
    /// The start of the day.
    begin: UnixTime,
    now: UnixTime,
}

impl Asking<'_> {
    fn about(&self, by: &[&str], measures: &[&str]) -> NamedQuery {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        NamedQuery {
            from: Some(self.begin),
            to: Some(self.begin + DAY),
            by: owned(by),
            measures: owned(measures),
            ..NamedQuery::default()
        }
    }

    async fn rows(&self, signal: &str, ask: NamedQuery) -> Result<Vec<TableRow>, QueryError> {
        let asked = ask.table(self.project, signal, self.now)?;
        let answer = self
            .clickhouse
            .read_table(&asked.reading, asked.sort, asked.limit);
        Ok(answer.await?.0)
    }

    async fn regressions(&self) -> Result<Vec<Regression>, QueryError> {
        let mut all = Vec::new();
        for [signal, by, measure, unit] in COMPARED {
            let ask = NamedQuery {
                base_from: Some(self.begin - DAY),
                base_to: Some(self.begin),
                order: Some(format!("-change.{measure}")),
                at_least_samples: Some(FEWEST),
                ..self.about(&[by], &[measure, "samples"])
            };
            let rows = self.rows(signal, ask).await?;
            all.extend(rows.into_iter().filter_map(|row| {
                let (now, before) = (number(&row.now, 0), number(&row.base, 0));
                let counted = number(&row.now, 1).min(number(&row.base, 1));
                let change = (now - before) / before;
                let counts = counted >= FEWEST as f64 && change.is_finite();
                (counts && change >= LEAST_CHANGE).then(|| Regression {
                    signal: signal.to_owned(),
                    what: row.keys.concat(),
                    measure: measure.to_owned(),
                    unit: unit.to_owned(),
                    before,
                    now,
                    change,
                    samples: number(&row.now, 1),
                })
            }));
        }
        all.sort_by(|a, b| b.change.total_cmp(&a.change));
        all.truncate(MOST_REGRESSIONS);
        Ok(all)
    }

    async fn new_groups(&self) -> Result<Vec<NewGroup>, QueryError> {
        let ask = NamedQuery {
            base_from: Some(self.begin - LOOK_BACK),
            base_to: Some(self.begin),
            order: Some("-count".to_owned()),
            limit: Some(1_000),
            ..self.about(&["group_id", "title", "category"], &["count", "installs"])
        };
        let rows = self.rows("janks", ask).await?;
        let new = rows.into_iter().filter(|row| row.base.is_empty());
        let new = new.filter_map(|row| {
            let (count, installs) = (number(&row.now, 0), number(&row.now, 1));
            let [group_id, title, category] = row.keys.try_into().ok()?;
            Some(NewGroup {
                group_id,
                title,
                category,
                count,
                installs,
            })
        });
        Ok(new.take(MOST_NEW_GROUPS).collect())
    }

    async fn traffic(&self) -> Result<Vec<InstallTraffic>, QueryError> {
        let ask = NamedQuery {
            order: Some("-bytes".to_owned()),
            limit: Some(100),
            ..self.about(&["install_id"], &["bytes", "requests"])
        };
        let rows = self.rows("traffic", ask).await?.into_iter();
        Ok(rows
            .map(|row| InstallTraffic {
                install_id: row.keys.concat(),
                bytes: number(&row.now, 0),
                requests: number(&row.now, 1),
            })
            .collect())
    }

    async fn health(&self) -> Result<Health, QueryError> {
        let usage = self.about(&[], &["installs", "accepted"]);
        let usage = self.rows("usage", usage).await?;
        let cost = self.about(&[], &["overhead_us_per_install", "upload_bytes"]);
        let cost = self.rows("sdk_health", cost).await?;
        let refused = NamedQuery {
            limit: Some(100),
            ..self.about(&["signal", "reason", "outcome"], &["count"])
        };
        let mut refused = self.rows("outcomes", refused).await?;
        refused.retain(|row| {
            row.keys
                .last()
                .is_some_and(|outcome| ["rejected", "dead_letter"].contains(&outcome.as_str()))
        });
        let dropped = NamedQuery {
            limit: Some(20),
            ..self.about(&["signal", "reason"], &["count"])
        };
        let of = |rows: &[TableRow], place| rows.first().map_or(0.0, |row| number(&row.now, place));
        Ok(Health {
            installs: of(&usage, 0),
            events_accepted: of(&usage, 1),
            not_stored: refused.into_iter().take(20).filter_map(lost).collect(),
            dropped: self
                .rows("sdk_drops", dropped)
                .await?
                .into_iter()
                .filter_map(lost)
                .collect(),
            overhead_us_per_install: of(&cost, 0),
            upload_bytes: of(&cost, 1),
        })
    }
}

fn lost(row: TableRow) -> Option<Lost> {
    let count = number(&row.now, 0);
    let mut keys = row.keys.into_iter();
    Some(Lost {
        signal: keys.next()?,
        reason: keys.next()?,
        count,
    })
}

/// Returns a value, or 0 if it was not measured, because JSON has no NaN.
fn number(values: &[f64], place: usize) -> f64 {
    let value = values.get(place).copied().unwrap_or_default();
    if value.is_finite() { value } else { 0.0 }
}
