//! The teams that own the shop's code, as classification rules.

use std::time::Duration;

use anyhow::Context;
use unjank_database::{Actor, DocumentChange};

use super::{PAUSE, PROJECT};
use crate::access::rule_sets::{Draft, save};
use crate::app::App;

const RULES: &str = include_str!("owners.toml");
/// A change of rules reaches the server's memory at once, unless the machine is busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Saves the rules and waits until they are in force. Does nothing if the project already has rules.
pub(super) async fn save_rules(app: &App) -> anyhow::Result<()> {
    let revision = || (app.access.rules(PROJECT)).map_or(0, |rules| rules.id().revision);
    if revision() > 0 {
        return Ok(());
    }
    let draft = Draft {
        rules: RULES.to_owned(),
        note: "The teams of the shop".to_owned(),
        expected_revision: 0,
        change: DocumentChange::Saved,
    };
    let actor = Actor::cli("unjank demo");
    save(&app.control, PROJECT, draft, &actor, app.clock.now()).await?;
    let in_force = async {
        while revision() == 0 {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, in_force)
        .await
        .context("the demo's classification rules did not come into force")
}
