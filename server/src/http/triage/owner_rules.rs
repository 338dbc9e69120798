//! Owners of janks: the owners that rules name, and the rule that gives a group of janks an owner.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use unjank_database::ControlError;
use unjank_protocol::Frame;
use unjank_stacks::Rules;
use utoipa::ToSchema;

use super::jank_group::{GroupPath, group_of};
use crate::access::owner_rules::{OwnerWish, propose};
use crate::app::App;
use crate::http::api::object::Object;
use crate::http::api::openapi::{FaultyRules, Invalid, JsonBody, Missing, Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Editor, Member, Viewer};
use crate::http::api::turns::turn;
use crate::http::classification::rules::current_rules;
use crate::query::QueryError;
use crate::store::reads::StoredFrame;

/// The maximum number of stacks on which a rule is tried.
const MOST_STACKS: u32 = 200;
const MOST_CHARS: usize = 100;

/// The owners that the rules of a project name.
#[derive(Serialize, ToSchema)]
pub(super) struct RuleOwners {
    /// In alphabetical order.
    owners: Vec<String>,
}

/// Lists the owners that the rules of a project name.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/rules/owners", tag = "rules",
    responses((status = 200, body = RuleOwners), Refused<(Viewer,)>),
)]
pub(super) async fn owners(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Json<RuleOwners> {
    let rules = app.access.rules(&member.project);
    let rules = rules.unwrap_or_else(|| Arc::clone(&app.default_rules));
    let owners = rules.rules().owners().into_iter().map(str::to_owned);
    Json(RuleOwners {
        owners: owners.collect(),
    })
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = JankGroupOwner)]
pub(super) struct NewOwner {
    #[schema(min_length = 1, max_length = 100)]
    owner: String,
}

/// A rule that gives a group of janks an owner. To save the rule, `PUT` the rules.
#[derive(Serialize, ToSchema)]
#[schema(as = OwnerRuleProposal)]
pub(crate) struct Proposal {
    /// The revision of the rules on which the proposal is based.
    expected_revision: i64,
    /// TOML of the rule.
    rule: String,
    /// TOML of the current rules.
    before: String,
    /// TOML of the rules with the rule, which comes first.
    rules: String,
    /// The number of stacks of the group on which the rule was tried, at most 200.
    stacks: usize,
    /// The number of these stacks that get the owner and stay in the group.
    owned: usize,
    /// Rules that can never match, as sentences.
    warnings: Vec<String>,
}

/// Proposes a rule that gives a group of janks an owner. Saves nothing.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/janks/groups/{group}/owner-rule", tag = "janks",
    request_body = NewOwner,
    responses((status = 200, body = Proposal), Refused<(Editor, Missing, JsonBody, FaultyRules, Invalid, RunsQuery)>),
)]
pub(super) async fn owner_rule(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: GroupPath,
    Object(new, ..): Object<NewOwner>,
) -> Result<Json<Proposal>, Problem> {
    let group = group_of(path)?;
    let owner = owner_name(&new.owner)?;
    let (title, stacks) = stacks_of(&app, &member, group).await?;
    let (expected_revision, before) = current_rules(&app, &member.project).await?;
    let wish = OwnerWish {
        rules: if before == Rules::built_in_toml() {
            // Follows the built-in rules of later releases, instead of a copy of the current ones.
            "built_in = true\n".to_owned()
        } else {
            before.clone()
        },
        stacks,
        owner,
        note: format!("Owner of the jank group: {title}"),
    };
    let proposed = propose(wish, &member.actor).await?;
    Ok(Json(Proposal {
        expected_revision,
        rule: proposed.rule,
        before,
        rules: proposed.rules,
        stacks: proposed.stacks,
        owned: proposed.owned,
        warnings: proposed.warnings,
    }))
}

fn owner_name(text: &str) -> Result<String, Problem> {
    let owner = text.trim();
    let fits = (1..=MOST_CHARS).contains(&owner.chars().count());
    if !fits || owner.chars().any(char::is_control) {
        return Err(Problem::from(ControlError::Invalid(format!(
            "an owner must be 1 to {MOST_CHARS} characters without control characters"
        ))));
    }
    Ok(owner.to_owned())
}

/// Returns the title and the latest stacks of a group.
async fn stacks_of(
    app: &App,
    member: &Member,
    group: u64,
) -> Result<(String, Vec<Vec<Frame<'static>>>), Problem> {
    let (store, project) = (&app.clickhouse, member.project.as_str());
    let _turn = turn(app, &member.actor).await?;
    let title = store.group_title(project, group).await;
    let title = title.map_err(QueryError::from)?;
    let title = title.ok_or_else(Problem::not_found)?;
    let hashes = store.stacks_of_group(project, group, MOST_STACKS).await;
    let hashes = hashes.map_err(QueryError::from)?;
    let stacks: HashMap<_, _> = store.stacks_of(project, &hashes).await?;
    let stacks = stacks.into_values();
    let frames = stacks.map(|stack| stack.frames.into_iter().map(reported).collect());
    Ok((title, frames.collect()))
}

/// The parts of a frame that rules use.
fn reported(frame: StoredFrame) -> Frame<'static> {
    Frame {
        class: frame.class.into(),
        module: frame.module.into(),
        function: frame.function.into(),
        file: frame.file.into(),
        build_id: frame.build_id.into(),
        line: i64::from(frame.line),
        ..Frame::default()
    }
}
