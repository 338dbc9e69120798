//! `/api/v1/projects/{project}/rules`: looking at, checking, trying, saving and taking back a project's classification rules, and
//! how far its history is classified by them.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::member::{Editor, Viewer};
use super::problem::Problem;
use super::revisions::{PageOfRevisions, Revisions, RollBack, Signature};
use crate::app::App;
use crate::control::rule_sets::{self, Draft, Saved};
use crate::history::{DryRun, Progress, Tried};
use crate::stacks::RulesError;
use crate::store::control::{ControlError, Document, DocumentKind};

const KIND: DocumentKind = DocumentKind::RuleSet;
const LONGEST_LOOK_BACK_DAYS: u16 = 90;

/// A revision with its text.
#[derive(Serialize)]
pub(super) struct Revision {
    #[serde(flatten)]
    signature: Signature,
    /// TOML, as it was saved; of revision 0, the rules the server falls back to.
    rules: String,
    /// Rules that can never match, as sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl Revision {
    fn whole(mut document: Document) -> Self {
        Self {
            rules: std::mem::take(&mut document.text),
            signature: document.into(),
            warnings: Vec::new(),
        }
    }

    fn saved(saved: Saved) -> Self {
        Self {
            warnings: saved.warnings,
            ..Self::whole(saved.document)
        }
    }
}

pub(super) async fn latest(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<Revision>, Problem> {
    match app.control.latest_document(KIND, &member.project).await {
        Ok(document) => Ok(Json(Revision::whole(document))),
        Err(ControlError::NotFound) => Ok(Json(Revision {
            signature: Signature::default(),
            rules: app.default_rules.text().to_owned(),
            warnings: Vec::new(),
        })),
        Err(error) => Err(error.into()),
    }
}

/// What is to be saved.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRevision {
    /// The revision it was made from, as `GET` answered it.
    expected_revision: i64,
    /// TOML; `unjank classify --print-rules` explains the format.
    rules: String,
    /// Why, for those who read the history.
    #[serde(default)]
    note: String,
}

pub(super) async fn save(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    body: Result<Json<NewRevision>, JsonRejection>,
) -> Result<(StatusCode, Json<Revision>), Problem> {
    let Json(new) = body?;
    let draft = Draft {
        rules: new.rules,
        note: new.note,
        expected_revision: new.expected_revision,
    };
    let now = app.clock.now();
    let saved = rule_sets::save(&*app.control, &member.project, draft, &member.actor, now).await?;
    Ok((StatusCode::CREATED, Json(Revision::saved(saved))))
}

/// Rules to be looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Candidate {
    /// TOML.
    rules: String,
}

/// What is wrong, and what to do.
#[derive(Serialize)]
pub(super) struct RulesFault {
    /// Which rule, from 1; missing when it is about the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<usize>,
    /// Which line, from 1, when it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    message: String,
}

impl From<&RulesError> for RulesFault {
    fn from(error: &RulesError) -> Self {
        Self {
            rule: error.rule(),
            line: error.line(),
            message: error.to_string(),
        }
    }
}

/// What saving would say.
#[derive(Serialize)]
pub(super) struct Verdict {
    valid: bool,
    /// The first fault, if there is one: rules are read in order.
    faults: Vec<RulesFault>,
    /// Rules that can never match, as sentences.
    warnings: Vec<String>,
}

pub(super) async fn check(
    Viewer(_): Viewer,
    body: Result<Json<Candidate>, JsonRejection>,
) -> Result<Json<Verdict>, Problem> {
    let Json(Candidate { rules }) = body?;
    let checked = rule_sets::check(&rules).await;
    let valid = checked.is_ok();
    let (faults, warnings) = match checked {
        Ok(warnings) => (Vec::new(), warnings),
        Err(error) => (vec![RulesFault::from(&error)], Vec::new()),
    };
    Ok(Json(Verdict {
        valid,
        faults,
        warnings,
    }))
}

pub(super) async fn history(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    query: Result<Query<PageOfRevisions>, QueryRejection>,
) -> Result<Json<Revisions>, Problem> {
    Revisions::read(&app, KIND, &member.project, query)
        .await
        .map(Json)
}

pub(super) async fn revision(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    path: Result<Path<(String, i64)>, PathRejection>,
) -> Result<Json<Revision>, Problem> {
    let Path((_, revision)) = path.map_err(|_| Problem::not_found())?;
    let document = app
        .control
        .document(KIND, &member.project, revision)
        .await?;
    Ok(Json(Revision::whole(document)))
}

pub(super) async fn roll_back(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    body: Result<Json<RollBack>, JsonRejection>,
) -> Result<(StatusCode, Json<Revision>), Problem> {
    let Json(back) = body?;
    let now = app.clock.now();
    let saved = rule_sets::roll_back(
        &*app.control,
        (&member.project, back.revision),
        back.expected_revision,
        &member.actor,
        now,
    )
    .await?;
    Ok((StatusCode::CREATED, Json(Revision::saved(saved))))
}

/// Rules to be tried on what is stored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trial {
    /// TOML.
    rules: String,
    /// How many days back, 1 to 90.
    #[serde(default = "a_week")]
    days: u16,
}

fn a_week() -> u16 {
    7
}

pub(super) async fn dry_run(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    body: Result<Json<Trial>, JsonRejection>,
) -> Result<Json<Tried>, Problem> {
    let Json(Trial { rules, days }) = body?;
    if !(1..=LONGEST_LOOK_BACK_DAYS).contains(&days) {
        return Err(Problem::look_back(LONGEST_LOOK_BACK_DAYS));
    }
    let current = app.access.rules(&member.project);
    let run = DryRun {
        project: member.project,
        current: current.unwrap_or_else(|| Arc::clone(&app.default_rules)),
        tried: rules,
        days,
        now: app.clock.now(),
    };
    Ok(Json(app.dry_runs.run(&app.clickhouse, run).await?))
}

/// As far as this server knows; each of several goes over everything itself.
pub(super) async fn reclassification(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<Progress>, Problem> {
    let revision = rule_sets::current_revision(&*app.control, &member.project).await?;
    Ok(Json(app.reclassification.of(&member.project, revision)))
}
