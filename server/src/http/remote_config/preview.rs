//! `POST /api/v1/projects/{project}/config/preview`: the effect of a configuration, before it is saved.

use std::cmp::Reverse;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use hashbrown::HashMap;
use serde::Serialize;
use serde_json::Value;
use unjank_remote_config::{Configuration, Fault, Override, Reach};
use utoipa::ToSchema;

use crate::access::configurations;
use crate::access::preview::{Preview, Proposal, preview};
use crate::app::App;
use crate::http::api::object::{DOCUMENT, Object};
use crate::http::api::openapi::{Faulty, JsonBody, Overloaded, Refused, Stored, sets};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Viewer;
use crate::http::api::turns::slow_turn;

/// The expected effect of a configuration on the installs that sent a batch in the last 24 hours.
#[derive(Serialize, ToSchema)]
pub(super) struct Forecast {
    /// The current revision, with which the configuration is compared.
    current_revision: u64,
    /// Installs that sent a batch in the last 24 hours.
    installs: u64,
    /// The number of these installs that were evaluated: all of them, or a sample of at least 10,000.
    sampled: u64,
    /// Installs whose document would change.
    changed: u64,
    /// In the order of the configuration, including overrides that are not active.
    overrides: Vec<OverrideForecast>,
    /// Events in 24 hours, by signal.
    events: Vec<SignalForecast>,
    /// Uploaded bytes in 24 hours.
    traffic: TrafficForecast,
    /// Reasons why the prediction may be wrong.
    notes: Vec<String>,
    warnings: Vec<Fault>,
}

/// The installs that an override matches.
#[derive(Serialize, ToSchema)]
struct OverrideForecast {
    id: String,
    /// Number of matching installs.
    installs: u64,
    /// The share of all installs, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    share: f64,
    /// If no install of the last 24 hours matches: the number of matching installs of the last 7 days. Otherwise `null`.
    installs_in_week: Option<u64>,
    /// The matching installs by app version, the most frequent first. At most 5.
    versions: Vec<ReachedValue>,
    /// The matching installs by device model, the most frequent first. At most 5.
    devices: Vec<ReachedValue>,
    /// The matching installs by earlier override that matches them, too, in the order of the configuration. If both set a value, this
    /// override takes precedence.
    earlier: Vec<ReachedValue>,
}

/// The number of installs with a value.
#[derive(Serialize, ToSchema)]
struct ReachedValue {
    value: String,
    installs: u64,
}

/// The most values of a property that a forecast lists.
const MOST_VALUES: usize = 5;

/// Bytes that all installs upload in 24 hours.
#[derive(Serialize, ToSchema)]
struct TrafficForecast {
    /// Bytes received in the last 24 hours.
    last_day: u64,
    /// Bytes expected if nothing changes, estimated from the expected events. `null` if no estimate is possible.
    current: Option<u64>,
    /// Bytes expected after the change. `null` if no estimate is possible.
    proposed: Option<u64>,
}

/// Events of one signal in 24 hours.
#[derive(Serialize, ToSchema)]
struct SignalForecast {
    #[schema(schema_with = sets::signal)]
    signal: &'static str,
    /// Events stored in the last 24 hours.
    last_day: u64,
    /// Events expected if nothing changes.
    current: u64,
    /// Events expected after the change. `null` if no install sends this signal today, so that no prediction is possible.
    proposed: Option<u64>,
}

/// Predicts the effect of a configuration on the installs of the last 24 hours. Saves nothing.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/config/preview", tag = "configurations",
    operation_id = "preview",
    request_body = Configuration,
    responses((status = 200, body = Forecast), Refused<(Viewer, JsonBody, Faulty, Overloaded, Stored)>),
)]
pub(super) async fn run(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Object(configuration, ..): Object<Value, DOCUMENT>,
) -> Result<Json<Forecast>, Problem> {
    let now = app.clock.now();
    let current = app.access.project(&member.project);
    let current = current.ok_or_else(Problem::no_project)?;
    let revision = current.configuration.revision();
    let _turn = slow_turn(&app, &member.actor).await?;
    let draft = configurations::compile(configuration, revision, &member.actor).await?;
    let asks_for_network = draft.compiled.asks_for_network();
    let warnings = draft.compiled.warnings(now);
    let enabled = draft
        .configuration
        .overrides
        .iter()
        .filter(|one| one.enabled);
    let enabled = enabled.map(|one| one.id.clone()).collect();
    let proposal = Proposal {
        project: member.project.clone(),
        enabled,
        current,
        proposed: draft.compiled,
        now,
    };
    let found = preview(&app.clickhouse, proposal).await?;
    let traffic = found.traffic(&app.clickhouse, &member.project, now).await?;
    let mut notes = notes(&found);
    if asks_for_network {
        notes.push(
            "conditions about the network count as false, because batches do not contain the network"
                .to_owned(),
        );
    }
    Ok(Json(Forecast {
        current_revision: revision,
        installs: found.seen,
        sampled: found.outlook.installs,
        changed: scaled(found.outlook.changed, &found),
        overrides: overrides(&draft.configuration, &found),
        events: events(&found),
        traffic: TrafficForecast {
            last_day: rounded(traffic.last_day),
            current: traffic.current.map(rounded),
            proposed: traffic.proposed.map(rounded),
        },
        notes,
        warnings,
    }))
}

fn notes(found: &Preview) -> Vec<String> {
    let mut notes: Vec<String> = found
        .outlook
        .unmodelled
        .iter()
        .map(|section| {
            format!("`{section}` changes the number of events on a device in a way that cannot be predicted")
        })
        .collect();
    if found.seen == 0 {
        notes.push(
            "no install sent a batch in the last 24 hours: nothing can be predicted".to_owned(),
        );
    }
    if found.truncated {
        notes.push(
            "too many kinds of spans were sent to read them all: the predictions are too low"
                .to_owned(),
        );
    }
    notes
}

fn overrides(configuration: &Configuration, found: &Preview) -> Vec<OverrideForecast> {
    let none = Reach::default();
    let reached = |value: &str, installs: u64| ReachedValue {
        value: value.to_owned(),
        installs: scaled(installs, found),
    };
    let most = |counts: &HashMap<String, u64>| {
        let mut sorted: Vec<_> = counts.iter().collect();
        sorted.sort_by_key(|(value, installs)| (Reverse(**installs), *value));
        let most = sorted.into_iter().take(MOST_VALUES);
        most.map(|(value, installs)| reached(value, *installs))
            .collect()
    };
    let forecast = |one: &Override| {
        let id = one.id.as_str();
        let reach = found.outlook.matched.get(id).unwrap_or(&none);
        let matched = reach.installs;
        let week = found
            .in_week
            .as_ref()
            .filter(|_| one.enabled && matched == 0);
        OverrideForecast {
            id: id.to_owned(),
            installs: scaled(matched, found),
            share: share(matched, found.outlook.installs),
            installs_in_week: week.map(|week| rounded(week.matched(id))),
            versions: most(&reach.versions),
            devices: most(&reach.devices),
            earlier: configuration
                .overrides
                .iter()
                .filter_map(|one| Some(reached(&one.id, *reach.earlier.get(one.id.as_str())?)))
                .collect(),
        }
    };
    configuration.overrides.iter().map(forecast).collect()
}

fn events(found: &Preview) -> Vec<SignalForecast> {
    let scale = found.scale();
    let forecast = |one: &unjank_remote_config::SignalForecast| SignalForecast {
        signal: one.signal.as_str(),
        last_day: rounded(one.sent * scale),
        current: rounded(one.current * scale),
        proposed: one.proposed.map(|events| rounded(events * scale)),
    };
    found.outlook.signals.iter().map(forecast).collect()
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of installs are far below 2^53"
)]
fn scaled(installs: u64, found: &Preview) -> u64 {
    rounded(installs as f64 * found.scale())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of installs are far below 2^53"
)]
fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are positive and far below 2^53"
)]
fn rounded(count: f64) -> u64 {
    count.round() as u64
}
