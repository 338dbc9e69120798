//! `POST /api/v1/projects/{project}/config/preview`: what a change would do, before it is made.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::member::Viewer;
use super::object::{DOCUMENT, Object};
use super::openapi::{Faulty, JsonBody, Overloaded, Refused, Stored, sets};
use super::problem::Problem;
use crate::app::App;
use crate::control::configurations;
use crate::control::preview::{Preview, Proposal, preview};
use crate::remote_config::{Configuration, Fault};

/// How long it waits for its turn.
const TURN: Duration = Duration::from_secs(10);

/// What a configuration would do to the installs that sent a batch in the last 24 hours.
#[derive(Serialize, ToSchema)]
pub(super) struct Forecast {
    /// The revision that is served now, which it is compared with.
    current_revision: u64,
    /// Installs that sent a batch in the last 24 hours.
    installs: u64,
    /// Of them, those that were asked: all, or 10,000 and more that stand for the others.
    sampled: u64,
    /// Installs whose document would change.
    changed: u64,
    /// In the order of the configuration, those that are not in force too.
    overrides: Vec<OverrideForecast>,
    /// Events in 24 hours by signal.
    events: Vec<SignalForecast>,
    /// What the prediction does not know: why it may be wrong.
    notes: Vec<String>,
    warnings: Vec<Fault>,
}

/// Whom an override is for.
#[derive(Serialize, ToSchema)]
struct OverrideForecast {
    id: String,
    /// Installs it matches.
    installs: u64,
    /// The same as a share of all installs, 0 to 1.
    #[schema(minimum = 0, maximum = 1)]
    share: f64,
}

/// Events of one signal in 24 hours.
#[derive(Serialize, ToSchema)]
struct SignalForecast {
    #[schema(schema_with = sets::signal)]
    signal: &'static str,
    /// Stored in the last 24 hours.
    last_day: u64,
    /// Expected if nothing changes.
    current: u64,
    /// Expected after the change; `null` when no install sends this signal today, so that nothing is known of it.
    proposed: Option<u64>,
}

/// Says what a configuration would do to the installs of the last 24 hours, and saves nothing.
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
    let turn = app.previews.take(member.actor.holder(), TURN).await;
    let _turn = turn.ok_or_else(Problem::overloaded)?;
    let draft = configurations::compile(configuration, revision, &member.actor).await?;
    let asks_for_network = draft.compiled.asks_for_network();
    let warnings = draft.compiled.warnings(now);
    let proposal = Proposal {
        project: member.project,
        current,
        proposed: draft.compiled,
        now,
    };
    let found = preview(&app.clickhouse, proposal).await?;
    let mut notes = notes(&found);
    if asks_for_network {
        notes.push(
            "conditions about the network are taken not to hold: a batch does not say it"
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
            format!("`{section}` changes how much happens on a device in a way that no rate tells")
        })
        .collect();
    if found.seen == 0 {
        notes.push(
            "no install sent a batch in the last 24 hours: nothing can be predicted".to_owned(),
        );
    }
    if found.truncated {
        notes.push(
            "too many kinds of spans were sent to read them all: what is predicted is too low"
                .to_owned(),
        );
    }
    notes
}

fn overrides(configuration: &Configuration, found: &Preview) -> Vec<OverrideForecast> {
    let forecast = |id: &str| {
        let matched = found.outlook.matched.get(id).copied().unwrap_or_default();
        OverrideForecast {
            id: id.to_owned(),
            installs: scaled(matched, found),
            share: share(matched, found.outlook.installs),
        }
    };
    let overrides = configuration.overrides.iter();
    overrides.map(|one| forecast(&one.id)).collect()
}

fn events(found: &Preview) -> Vec<SignalForecast> {
    let scale = found.scale();
    let forecast = |one: &crate::remote_config::SignalOutlook| SignalForecast {
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
