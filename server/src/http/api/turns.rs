//! Limits how many queries run in ClickHouse at once, for each actor and in total, so that one actor does not delay the others.

use std::time::Duration;

use unjank_database::Actor;
use unjank_foundation::shares::Share;

use super::problem::Problem;
use crate::app::App;

/// How long a question waits for its turn. A person would not wait longer.
const PATIENCE: Duration = Duration::from_secs(15);

/// Waits until few enough queries are running.
pub(crate) async fn turn(app: &App, actor: &Actor) -> Result<Share, Problem> {
    let turn = app.questions.take(actor.holder(), PATIENCE).await;
    turn.ok_or_else(Problem::overloaded)
}

/// Waits until few enough previews, tests of significance and searches of a week are running. Because they take seconds, they do not share turns
/// with queries.
pub(crate) async fn slow_turn(app: &App, actor: &Actor) -> Result<Share, Problem> {
    let turn = app.previews.take(actor.holder(), PATIENCE).await;
    turn.ok_or_else(Problem::overloaded)
}
