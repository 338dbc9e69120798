//! The query string of a query: repeated names, times in RFC 3339, and filters by any dimension.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use form_urlencoded::parse;
use serde_json::{Value, json};
use unjank_foundation::clock::UnixTime;
use unjank_protocol::Timestamp;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};

use crate::app::App;
use crate::http::api::problem::Problem;
use crate::query::{GroupStatus, InvalidQuery, NamedQuery};
use crate::store::reads::dimension_names;

/// A query from the query string.
pub(crate) struct QueryString(pub(crate) NamedQuery);

impl FromRequestParts<Arc<App>> for QueryString {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> Result<Self, Problem> {
        let mut ask = NamedQuery::default();
        for (name, value) in parse(parts.uri.query().unwrap_or_default().as_bytes()) {
            let value = value.into_owned();
            match &*name {
                "from" => ask.from = Some(time("from", &value)?),
                "to" => ask.to = Some(time("to", &value)?),
                "base_from" => ask.base_from = Some(time("base_from", &value)?),
                "base_to" => ask.base_to = Some(time("base_to", &value)?),
                "base_app_version" => ask.base_version = Some(value),
                "compare" => ask.same_age = at_same_age(&value)?,
                "by" => ask.by.push(value),
                "measure" => ask.measures.push(value),
                "exact" => ask.exact = yes_or_no("exact", &value)?,
                "received" => ask.received = yes_or_no("received", &value)?,
                "order" => ask.order = Some(value),
                "field" => ask.field = Some(value),
                "limit" => ask.limit = Some(whole("limit", &value, 1)?),
                "at_least_samples" => {
                    ask.at_least_samples = Some(whole("at_least_samples", &value, 0)?);
                }
                "at_least_us" => {
                    let least = whole("at_least_us", &value, 0)?;
                    ask.at_least_us = Some(i64::try_from(least).unwrap_or(i64::MAX));
                }
                "near_us" => {
                    let near = whole("near_us", &value, 0)?;
                    ask.near_us = Some(i64::try_from(near).unwrap_or(i64::MAX));
                }
                "cursor" => ask.cursor = Some(value),
                "group_status" => ask.group_status = Some(group_status(&value)?),
                _ => ask.filters.push((name.into_owned(), value)),
            }
        }
        Ok(Self(ask))
    }
}

fn whole(name: &str, value: &str, least: u64) -> Result<u64, Problem> {
    let number = value.parse().ok().filter(|number| *number >= least);
    number.ok_or_else(|| {
        Problem::invalid_question(format!("`{name}` must be a whole number from {least}"))
    })
}

fn at_same_age(value: &str) -> Result<bool, Problem> {
    match value {
        "same_age" => Ok(true),
        "same_days" => Ok(false),
        _ => Err(Problem::invalid_question(
            "`compare` must be `same_age` or `same_days`",
        )),
    }
}

fn group_status(value: &str) -> Result<GroupStatus, Problem> {
    match value {
        "open" => Ok(GroupStatus::Open),
        "resolved" => Ok(GroupStatus::Resolved),
        "ignored" => Ok(GroupStatus::Ignored),
        _ => Err(Problem::invalid_question(
            "`group_status` must be `open`, `resolved` or `ignored`",
        )),
    }
}

fn yes_or_no(name: &str, value: &str) -> Result<bool, Problem> {
    value
        .parse()
        .map_err(|_| Problem::invalid_question(format!("`{name}` must be `true` or `false`")))
}

/// Parses a time, to the microsecond. Years before 1970 or after 2099 are mistakes.
pub(crate) fn time(name: &str, value: &str) -> Result<UnixTime, Problem> {
    const END: UnixTime = UnixTime::from_secs(4_102_444_800);
    Timestamp::parse(value)
        .map(UnixTime::from)
        .filter(|time| (UnixTime::default()..END).contains(time))
        .ok_or_else(|| {
            Problem::invalid_question(format!(
                "`{name}` must be a time such as 2026-11-20T12:00:00Z, from 1970 to 2099"
            ))
        })
}

impl From<InvalidQuery> for Problem {
    fn from(error: InvalidQuery) -> Self {
        Self::invalid_question(error.0)
    }
}

/// The parameters of a query.
pub(crate) struct QueryParameters;

impl IntoParams for QueryParameters {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        let list = json!({"type": "array", "items": {"type": "string"}});
        let time = json!({"type": "string", "format": "date-time"});
        let mut parameters = vec![
            parameter(
                "from",
                "The start. Default: seven days before the end.",
                &time,
            ),
            parameter("to", "The end, exclusive. Default: now.", &time),
            parameter(
                "by",
                "The dimensions to group by, at most 3. `attribute.` and the name of an attribute is a dimension of metrics and spans.",
                &list,
            ),
            parameter(
                "measure",
                "The measures to return. Default: all measures of the signal.",
                &list,
            ),
            parameter(
                "order",
                "The measure to sort by: the smallest first, or the largest with a leading `-`. `change.` before its name: by the relative change \
                 against the base.",
                &json!({"type": "string"}),
            ),
            parameter(
                "limit",
                "Maximum number of groups of a table, lines of a series, single events, or rows of a file. Groups: 1 to 1,000, default 50.",
                &json!({"type": "integer", "minimum": 1}),
            ),
            parameter(
                "at_least_samples",
                "Only groups with at least this many samples, on both sides of a comparison.",
                &json!({"type": "integer", "minimum": 0}),
            ),
            parameter(
                "contains.name",
                "Only events whose name contains this text, in upper or lower case. `contains.` also works with every other text dimension.",
                &json!({"type": "string"}),
            ),
            parameter(
                "exact",
                "`true`: the period of a table is not widened to whole hours or days.",
                &json!({"type": "boolean"}),
            ),
            parameter(
                "received",
                "`true`: the period is about the arrival of events instead of their occurrence, and is not widened.",
                &json!({"type": "boolean"}),
            ),
            parameter(
                "base_from",
                "The start of another period to compare with.",
                &time,
            ),
            parameter(
                "base_to",
                "The end of the period that starts at `base_from`.",
                &time,
            ),
            parameter(
                "base_app_version",
                "Compare with another version: on the same days, at the same age, or in the period `base_from` to `base_to`.",
                &json!({"type": "string"}),
            ),
            parameter(
                "compare",
                "`same_age`: the period of the base is shifted by the time between the first appearances of both versions. It is not shifted if that time is unknown, or if `app_version` is not a single version. Default: `same_days`.",
                &json!({"type": "string", "enum": ["same_days", "same_age"]}),
            ),
        ];
        parameters.extend(dimension_names().into_iter().map(|name| {
            parameter(
                name,
                "Only events with one of these values, if the signal has the dimension.",
                &list,
            )
        }));
        parameters
    }
}

fn parameter(name: &str, description: &str, schema: &Value) -> Parameter {
    let value = json!({
        "name": name, "in": "query", "required": false, "description": description, "schema": schema
    });
    serde_json::from_value(value).unwrap_or_default()
}
