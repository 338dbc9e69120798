//! `unjank erase`: erases the stored data of an install, a user id or a whole project.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use unjank_database::{Actor, Control, ControlError, Erasure, ErasureKind, ErasureState};
use unjank_foundation::ids::canonical_id;
use unjank_foundation::task::Tasks;

use super::runtime;
use crate::config::Shared;
use crate::serve::existing_control_database;

const POLL: Duration = Duration::from_millis(500);

/// Erase the stored data of an install, a user id or a whole project
///
/// The command writes the request to the control database. A server that uses it carries the request out: it deletes rows, stacks that no other rows use, and dead letters, and rebuilds roll-ups whose raw rows are still stored. The command shows the progress and prints the receipt. If you interrupt it, the erasure continues.
///
/// An erasure is enforced for 30 days: rows that reappear from a backup or from the log of another server are erased again.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_long_help = "\
Examples:
  unjank erase --project shop --install 0b5a6b9e-6a53-4d3c-9a3c-1d2f6a1e7c11
  unjank erase --project shop --user-id 48151
  unjank erase --project shop --whole-project shop"
)]
pub(super) struct EraseArgs {
    /// The project.
    #[arg(long)]
    project: String,

    #[command(flatten)]
    subject: Subject,

    /// Do not wait for the erasure to finish.
    #[arg(long)]
    no_wait: bool,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct Subject {
    /// Erase this install: its UUID, or the text that the app has for it.
    #[arg(long, value_name = "ID")]
    install: Option<String>,

    /// Erase this user id, as reported by the app.
    #[arg(long, value_name = "ID")]
    user_id: Option<String>,

    /// Erase the project permanently, with its keys, rules and members. Repeat its id to confirm.
    #[arg(long, value_name = "PROJECT")]
    whole_project: Option<String>,
}

pub(super) fn run(shared: &Shared, args: &EraseArgs) -> anyhow::Result<()> {
    let (kind, subject) = match &args.subject {
        Subject {
            install: Some(id), ..
        } => (ErasureKind::Install, canonical_id(id)),
        Subject {
            user_id: Some(id), ..
        } => (ErasureKind::User, id.clone()),
        Subject { whole_project, .. } => {
            anyhow::ensure!(
                whole_project.as_ref() == Some(&args.project),
                "--whole-project must repeat the id of --project"
            );
            (ErasureKind::Project, String::new())
        }
    };
    runtime()?.block_on(async {
        let tasks = Tasks::default();
        let control = existing_control_database(shared, &tasks).await?;
        let (actor, now) = (Actor::cli("unjank erase"), shared.now());
        let wanted = (&*args.project, kind, &*subject);
        let erasure = match control.request_erasure(wanted, &actor, now).await {
            Err(ControlError::NotFound) => anyhow::bail!("there is no project `{}`", args.project),
            requested => requested?,
        };
        let erasure = match args.no_wait {
            true => erasure,
            false => wait_until_done(&control, erasure).await?,
        };
        writeln!(std::io::stdout().lock(), "{}", receipt(&erasure)?)?;
        control.close().await;
        tasks.end(Duration::from_secs(1)).await;
        Ok(())
    })
}

/// Waits for the erasure to finish, and prints its steps to standard error.
async fn wait_until_done(control: &Control, erasure: Erasure) -> anyhow::Result<Erasure> {
    let mut printed = String::new();
    loop {
        let known = control.erasure(&erasure.project, erasure.id).await?;
        if known.state == ErasureState::Done {
            return Ok(known);
        }
        let step = match (&known.receipt.error, known.state) {
            (Some(error), _) => format!("retrying: {error}"),
            (None, ErasureState::Waiting) => "waiting for a server".to_owned(),
            _ => known.receipt.step,
        };
        if step != printed {
            writeln!(std::io::stderr().lock(), "{step}")?;
            printed = step;
        }
        tokio::time::sleep(POLL).await;
    }
}

fn receipt(erasure: &Erasure) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(&serde_json::json!({
        "id": erasure.id,
        "project": erasure.project,
        "kind": erasure.kind,
        "state": erasure.state,
        "requested_at": erasure.requested_at,
        "finished_at": erasure.finished_at,
        "receipt": erasure.receipt,
    }))?)
}
