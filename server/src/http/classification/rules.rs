//! `/api/v1/projects/{project}/rules`: reading, checking, trying, saving and rolling back a project's classification rules, and the progress of
//! reclassification.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unjank_database::{ControlError, Document, DocumentChange, DocumentKind};
use unjank_stacks::RulesError;
use utoipa::ToSchema;

use crate::access::rule_sets::{self, Draft, SaveError, Saved};
use crate::app::App;
use crate::history::{DryRun, Progress, Tried};
use crate::http::api::object::{DOCUMENT, Exact, Object};
use crate::http::api::openapi::{
    Conflict, FaultyRules, Invalid, JsonBody, Missing, Overloaded, QueryString, Refused, RuleDryRun,
};
use crate::http::api::problem::Problem;
use crate::http::api::revisions::{
    self, PageOfRevisions, RevisionPath, Revisions, RollBack, Signature,
};
use crate::http::api::roles::{Editor, Viewer};

const KIND: DocumentKind = DocumentKind::RuleSet;
const LONGEST_LOOK_BACK_DAYS: u16 = 90;

/// A revision with its text.
#[derive(Serialize, ToSchema)]
#[schema(as = RulesRevision)]
pub(crate) struct Revision {
    #[serde(flatten)]
    signature: Signature,
    /// TOML, as it was saved. For revision 0, the default rules of the server.
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

/// Returns the current rules with their revision.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/rules", tag = "rules",
    responses((status = 200, body = Revision), Refused<(Viewer,)>),
)]
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

/// Returns the revision and the text of the current rules. Revision 0 is the default rules of the server.
pub(crate) async fn current_rules(app: &App, project: &str) -> Result<(i64, String), ControlError> {
    match app.control.latest_document(KIND, project).await {
        Ok(document) => Ok((document.revision, document.text)),
        Err(ControlError::NotFound) => Ok((0, app.default_rules.text().to_owned())),
        Err(error) => Err(error),
    }
}

/// The rules to save.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRulesRevision)]
pub(crate) struct NewRevision {
    /// The revision on which the rules are based, as returned by `GET`.
    expected_revision: i64,
    /// TOML. `unjank classify --print-rules` explains the format.
    rules: String,
    /// The reason for the change, shown in the history.
    #[serde(default)]
    #[schema(max_length = 10_000)]
    note: String,
}

/// Saves rules as the next revision. Fails if they are invalid, or if another revision was saved in the meantime.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/rules", tag = "rules",
    request_body = NewRevision,
    responses((status = 201, body = Revision), Refused<(Editor, JsonBody, FaultyRules, Conflict, Invalid)>),
)]
pub(super) async fn save(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    Object(new, ..): Exact<NewRevision, DOCUMENT>,
) -> Result<(StatusCode, Json<Revision>), Problem> {
    let draft = Draft {
        rules: new.rules,
        note: new.note,
        expected_revision: new.expected_revision,
        change: DocumentChange::Saved,
    };
    let now = app.clock.now();
    let saved = rule_sets::save(&app.control, &member.project, draft, &member.actor, now).await?;
    Ok((StatusCode::CREATED, Json(Revision::saved(saved))))
}

/// The rules to check.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RulesCandidate)]
pub(super) struct Candidate {
    /// TOML.
    rules: String,
}

/// The fault, and how to fix it.
#[derive(Serialize, ToSchema)]
pub(crate) struct RulesFault {
    /// The number of the rule, from 1. Missing if the fault is about the whole file.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<usize>,
    /// The line, from 1, if the fault is about a line.
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

/// The result of a check.
#[derive(Serialize, ToSchema)]
#[schema(as = RulesVerdict)]
pub(crate) struct Verdict {
    valid: bool,
    /// The first fault, if there is one: rules are read in order.
    faults: Vec<RulesFault>,
    /// Rules that can never match, as sentences.
    warnings: Vec<String>,
}

/// Checks rules in the same way as saving them, and saves nothing.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/rules/check", tag = "rules",
    request_body = Candidate,
    responses((status = 200, body = Verdict), Refused<(Viewer, JsonBody, Overloaded)>),
)]
pub(super) async fn check(
    Viewer(member): Viewer,
    Object(Candidate { rules }, ..): Exact<Candidate, DOCUMENT>,
) -> Result<Json<Verdict>, Problem> {
    let (faults, warnings) = match rule_sets::check(&rules, &member.actor).await {
        Ok(warnings) => (Vec::new(), warnings),
        Err(SaveError::Rules(error)) => (vec![RulesFault::from(&error)], Vec::new()),
        Err(error) => return Err(error.into()),
    };
    Ok(Json(Verdict {
        valid: faults.is_empty(),
        faults,
        warnings,
    }))
}

/// Returns a page of the revisions, newest first, without their rules.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/rules/revisions", tag = "rules",
    params(PageOfRevisions),
    responses((status = 200, body = Revisions), Refused<(Viewer, QueryString)>),
)]
pub(super) async fn history(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    query: Result<Query<PageOfRevisions>, QueryRejection>,
) -> Result<Json<Revisions>, Problem> {
    Revisions::read(&app, KIND, &member.project, query)
        .await
        .map(Json)
}

/// Returns a revision with its rules.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/rules/revisions/{revision}", tag = "rules",
    responses((status = 200, body = Revision), Refused<(Viewer, Missing)>),
)]
pub(super) async fn revision(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    path: RevisionPath,
) -> Result<Json<Revision>, Problem> {
    let document = revisions::document(&app, KIND, &member.project, path).await?;
    Ok(Json(Revision::whole(document)))
}

/// Rolls back to an earlier revision: saves it again as the next one.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/rules/rollback", tag = "rules",
    request_body = RollBack,
    responses((status = 201, body = Revision), Refused<(Editor, Missing, JsonBody, FaultyRules, Conflict, Invalid)>),
)]
pub(super) async fn roll_back(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    Object(back, ..): Object<RollBack>,
) -> Result<(StatusCode, Json<Revision>), Problem> {
    let now = app.clock.now();
    let saved = rule_sets::roll_back(
        &app.control,
        &member.project,
        back.revision,
        back.expected_revision,
        &member.actor,
        now,
    )
    .await?;
    Ok((StatusCode::CREATED, Json(Revision::saved(saved))))
}

/// The rules to try on stored stacks.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RulesTrial)]
pub(crate) struct Trial {
    /// TOML.
    rules: String,
    /// The number of days to look back, 1 to 90. Default: 7.
    #[serde(default = "a_week")]
    #[schema(minimum = 1, maximum = 90)]
    days: u16,
}

fn a_week() -> u16 {
    7
}

/// Tries rules on the stacks of the last days. Returns which groups would merge, split or change their names.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/rules/dry-run", tag = "rules",
    request_body = Trial,
    responses((status = 200, body = Tried), Refused<(Viewer, JsonBody, FaultyRules, RuleDryRun)>),
)]
pub(super) async fn dry_run(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Object(Trial { rules, days }, ..): Exact<Trial, DOCUMENT>,
) -> Result<Json<Tried>, Problem> {
    if !(1..=LONGEST_LOOK_BACK_DAYS).contains(&days) {
        return Err(Problem::days_out_of_range(LONGEST_LOOK_BACK_DAYS));
    }
    let current = app.access.rules(&member.project);
    let run = DryRun {
        project: member.project,
        current: current.unwrap_or_else(|| Arc::clone(&app.default_rules)),
        tried: rules,
        actor: member.actor,
        days,
        now: app.clock.now(),
    };
    Ok(Json(app.dry_runs.run(&app.clickhouse, run).await?))
}

/// Returns how many of the stored stacks are classified by the current rules.
///
/// The progress of this server. If there are several servers, each goes over all stacks.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/rules/reclassification", tag = "rules",
    responses((status = 200, body = Progress), Refused<(Viewer,)>),
)]
pub(super) async fn reclassification(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<Progress>, Problem> {
    let revision = rule_sets::current_revision(&app.control, &member.project).await?;
    Ok(Json(
        app.reclassification.progress(&member.project, revision),
    ))
}
