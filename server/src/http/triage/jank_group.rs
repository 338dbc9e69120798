//! The group of janks that a path names.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;

use crate::app::App;
use crate::http::api::problem::Problem;
use crate::http::api::roles::Member;
use crate::http::api::turns::turn;
use crate::query::QueryError;

pub(crate) type GroupPath = Result<Path<(String, String)>, PathRejection>;

/// Reads the group of a path. No group has the number 0, and ids have no leading zeros.
pub(crate) fn group_of(path: GroupPath) -> Result<u64, Problem> {
    let Path((_, text)) = path.map_err(|_| Problem::not_found())?;
    group_id(&text).ok_or_else(Problem::not_found)
}

pub(crate) fn group_id(text: &str) -> Option<u64> {
    let number = text.parse::<u64>().ok();
    number.filter(|number| *number > 0 && number.to_string() == text)
}

/// Returns the title of a group of the project. A group without stacks is not found, like a group of another project.
pub(super) async fn title_of(app: &App, member: &Member, group: u64) -> Result<String, Problem> {
    let _turn = turn(app, &member.actor).await?;
    let title = app.clickhouse.group_title(&member.project, group).await;
    title
        .map_err(QueryError::from)?
        .ok_or_else(Problem::not_found)
}
