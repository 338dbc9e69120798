//! Erasures: requests to delete the data of an install, of a user id, or of a whole project. Each also serves as the
//! receipt.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::json;
use unjank_foundation::clock::{DAY, UnixTime};
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Notice, values};
use super::change::{Change, Entry, new_id};
use super::checks;
use super::erased_alerts;
use super::erasure::{Erasure, ErasureKind, Work};
use super::error::ControlError;

/// How long a finished erasure is enforced: rows that reappear from a backup or from the log of another server are
/// erased again.
pub const ENFORCED_DAYS: u32 = 30;
/// The maximum number of unfinished erasures of a project.
const MOST_WAITING: i64 = 1_000;
/// The maximum number of erasures in a pass.
const PASS: usize = 50;
const MOST_SUBJECT_BYTES: usize = 1_024;

macro_rules! columns {
    () => {
        "id, project, kind, subject, requested_at, requested_by, state, finished_at, pass, receipt, work"
    };
}

const INSERT: &str = concat!(
    "
    INSERT INTO erasures (id, project, kind, subject, requested_at, requested_by, state, receipt, work)
    VALUES ($1, $2, $3, $4, $5, $6, 'waiting', '{}', '{}')
    RETURNING ",
    columns!()
);
const SAME: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM erasures WHERE project = $1 AND kind = $2 AND subject = $3 AND state = 'waiting'"
);
const COUNT_WAITING: &str =
    "SELECT count(*) AS waiting FROM erasures WHERE project = $1 AND state <> 'done'";
const GET: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM erasures WHERE project = $1 AND id = $2"
);
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM erasures WHERE project = $1 ORDER BY requested_at DESC, id DESC LIMIT $2"
);
const OPEN_OF_PROJECTS: &str = concat!(
    "
    SELECT ",
    columns!(),
    "
    FROM erasures
    WHERE kind = 'project'
      OR NOT EXISTS (SELECT 1 FROM projects WHERE projects.id = erasures.project)
    ORDER BY requested_at DESC, id DESC
    LIMIT 1000"
);
const RUNNING: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM erasures WHERE state = 'running' ORDER BY requested_at, id"
);
const WAITING: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM erasures WHERE state = 'waiting' AND requested_at < $1 ORDER BY requested_at, id LIMIT 1000"
);
const ENFORCED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM erasures WHERE state = 'done' AND finished_at >= $1 AND (kind = 'project' OR subject <> '') ORDER BY project, id"
);
const BEGIN: &str = concat!(
    "UPDATE erasures SET state = 'running', pass = $2 WHERE id = $1 AND state <> 'done' RETURNING ",
    columns!()
);
const SAVE: &str = "UPDATE erasures SET receipt = $3, work = $4 WHERE id = $1 AND pass = $2";
const FINISH: &str = "
    UPDATE erasures
    SET state = 'done', finished_at = $3, receipt = $4, work = '{}', pass = NULL
    WHERE id = $1 AND pass = $2";
/// The subject may have been forgotten in the meantime. Without it, the erasure would match all events without a user.
const REOPEN: &str = "
    UPDATE erasures
    SET state = 'waiting', work = $2
    WHERE id = $1 AND state = 'done' AND (kind = 'project' OR subject <> '')";
const FORGET: &str = "
    UPDATE erasures
    SET subject = ''
    WHERE state = 'done'
      AND finished_at < $1
      AND subject <> ''";
pub(super) const ERASED_PROJECT: &str =
    "SELECT id FROM erasures WHERE project = $1 AND kind = 'project'";
const PROJECT_EXISTS: &str = "SELECT id FROM projects WHERE id = $1";

const REVOKE_KEYS: &str =
    "UPDATE ingest_keys SET revoked_at = $2 WHERE project = $1 AND revoked_at IS NULL";
const REVOKE_DEVICE_KEYS: &str =
    "UPDATE device_keys SET revoked_at = $2 WHERE project = $1 AND revoked_at IS NULL";
const REVOKE_TOKENS: &str =
    "UPDATE api_tokens SET revoked_at = $2 WHERE project = $1 AND revoked_at IS NULL";

/// Deletes all data of a project, in an order that satisfies references. The audit log and the receipts are kept.
const FORGET_PROJECT: [&str; 22] = [
    "
    DELETE FROM incident_channels
    WHERE incident IN (SELECT id FROM incidents WHERE project = $1)",
    "
    DELETE FROM incident_channels
    WHERE channel IN (SELECT id FROM channels WHERE project = $1)",
    "DELETE FROM notifications WHERE project = $1",
    "DELETE FROM channels WHERE project = $1",
    "DELETE FROM mutes WHERE project = $1",
    "DELETE FROM saved_views WHERE project = $1",
    "DELETE FROM group_comments WHERE project = $1",
    "DELETE FROM handled_groups WHERE project = $1",
    "DELETE FROM incident_comments WHERE project = $1",
    "DELETE FROM incidents WHERE project = $1",
    "DELETE FROM alert_states WHERE rule IN (SELECT id FROM alert_rules WHERE project = $1)",
    "
    DELETE FROM alert_evaluations
    WHERE rule IN (SELECT id FROM alert_rules WHERE project = $1)",
    "DELETE FROM alert_rules WHERE project = $1",
    "DELETE FROM configurations WHERE project = $1",
    "DELETE FROM rule_sets WHERE project = $1",
    "DELETE FROM api_tokens WHERE project = $1",
    "DELETE FROM device_keys WHERE project = $1",
    "DELETE FROM ingest_keys WHERE project = $1",
    "DELETE FROM memberships WHERE project = $1",
    "DELETE FROM symbol_builds WHERE project = $1",
    "DELETE FROM symbol_files WHERE project = $1",
    "DELETE FROM projects WHERE id = $1",
];

impl Control {
    /// Requests an erasure. Returns the waiting one if there already is one for the same subject. Erasing a whole
    /// project revokes its keys and tokens at once.
    pub async fn request_erasure(
        &self,
        (project, kind, subject): (&str, ErasureKind, &str),
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Erasure, ControlError> {
        check(kind, subject)?;
        let mut change = Change::begin(self, actor, at).await?;
        let exists = change.row(PROJECT_EXISTS, values![project]).await?;
        exists.ok_or(ControlError::NotFound)?;
        let same = values![project, kind.as_str(), subject];
        if let Some(same) = change.row(SAME, same).await? {
            return Erasure::read(&same);
        }
        let waiting = change.row(COUNT_WAITING, values![project]).await?;
        let waiting = waiting.map_or(Ok(0), |row| row.get::<i64>("waiting"))?;
        if waiting >= MOST_WAITING && kind != ErasureKind::Project {
            return Err(checks::invalid(&format!(
                "{MOST_WAITING} erasures of the project are already waiting; retry when some are done"
            )));
        }
        if kind == ErasureKind::Project {
            for sql in [REVOKE_KEYS, REVOKE_DEVICE_KEYS, REVOKE_TOKENS] {
                change.execute(sql, values![project, at]).await?;
            }
        }
        let by = actor.to_string();
        let values = values![new_id(at), project, kind.as_str(), subject, at, by];
        let inserted = change.row(INSERT, values).await?;
        let erasure = Erasure::read(&inserted.ok_or(ControlError::NotFound)?)?;
        // The subject is omitted, because the audit log is kept.
        change
            .commit(entry(Action::ErasureRequested, &erasure, json!({})))
            .await?;
        Ok(erasure)
    }

    pub async fn erasure(&self, project: &str, id: Uuid) -> Result<Erasure, ControlError> {
        Erasure::read(&self.row(GET, values![project, id]).await?)
    }

    /// Returns the erasures of a project, latest first.
    pub async fn erasures(&self, project: &str, limit: u32) -> Result<Vec<Erasure>, ControlError> {
        let values = values![project, checks::page(limit)];
        self.records(LIST, values, Erasure::read).await
    }

    /// Returns the erasures of whole projects, and all erasures of erased projects, latest first.
    pub async fn project_erasures(&self) -> Result<Vec<Erasure>, ControlError> {
        self.records(OPEN_OF_PROJECTS, values![], Erasure::read)
            .await
    }

    /// Begins the pass that is due: one that another run left unfinished, or a new one of erasures requested before `before`.
    /// Excludes projects in `resting`. The erasure of a whole project is a pass of its own. Each run of a pass gets an id of its own:
    /// from then on, an earlier run of the same erasures can save nothing.
    pub async fn next_pass(
        &self,
        before: UnixTime,
        resting: &BTreeSet<String>,
        at: UnixTime,
    ) -> Result<Vec<Erasure>, ControlError> {
        let running = self.running_erasures().await?;
        let is_due = |one: &&Erasure| !resting.contains(&one.project);
        if let Some(first) = running.iter().find(is_due) {
            let pass = first.pass;
            let unfinished = running.into_iter().filter(|one| one.pass == pass);
            return self.begin_pass(unfinished.collect(), at).await;
        }
        // A project has only one pass at a time.
        let is_new = |one: &Erasure| !running.iter().any(|other| other.project == one.project);
        let waiting: Vec<Erasure> = self
            .records(WAITING, values![before], Erasure::read)
            .await?;
        let waiting = waiting.into_iter();
        let waiting: Vec<Erasure> = waiting.filter(|one| is_due(&one) && is_new(one)).collect();
        let whole = waiting.iter().find(|one| one.kind == ErasureKind::Project);
        let Some(first) = whole.or(waiting.first()).cloned() else {
            return Ok(Vec::new());
        };
        let together = waiting.into_iter().filter(|one| match first.kind {
            ErasureKind::Project => one.id == first.id,
            _ => one.project == first.project,
        });
        self.begin_pass(together.take(PASS).collect(), at).await
    }

    /// Returns the erasures as they are when the pass begins, except those that another run has finished in the meantime.
    async fn begin_pass(
        &self,
        erasures: Vec<Erasure>,
        at: UnixTime,
    ) -> Result<Vec<Erasure>, ControlError> {
        let (mut pass, id) = (Vec::new(), new_id(at));
        let mut statements = self.begin().await?;
        for one in erasures {
            let begun = statements.rows(BEGIN, values![one.id, id]).await?;
            for row in &begun {
                pass.push(Erasure::read(row)?);
            }
        }
        statements.commit(Notice::Silent).await?;
        Ok(pass)
    }

    /// Saves the progress of a pass. Returns false, and saves nothing, if another run of it has begun.
    pub async fn save_pass(&self, pass: &[Erasure]) -> Result<bool, ControlError> {
        let mut statements = self.begin().await?;
        for one in pass {
            let (receipt, work) = (to_json(&one.receipt), to_json(&one.work));
            let values = values![one.id, one.pass.unwrap_or_default(), receipt, work];
            if statements.execute(SAVE, values).await? == 0 {
                return Ok(false);
            }
        }
        statements.commit(Notice::Silent).await?;
        Ok(true)
    }

    /// Finishes a pass. If it erases a whole project, deletes the project, else what alerts have of the subjects. Returns false if another
    /// run of the pass has begun: that run finishes it.
    pub async fn finish_pass(&self, pass: &[Erasure], at: UnixTime) -> Result<bool, ControlError> {
        for one in pass {
            if !self.finish(one, at).await? {
                return Ok(false);
            }
        }
        if let Err(error) = self.backend.forget_deleted_rows().await {
            tracing::warn!(%error, "the log of the control database has erased rows until it is overwritten");
        }
        Ok(true)
    }

    async fn finish(&self, one: &Erasure, at: UnixTime) -> Result<bool, ControlError> {
        let actor = Actor::system("erasure");
        let mut change = Change::begin(self, &actor, at).await?;
        let pass = one.pass.unwrap_or_default();
        let mut receipt = one.receipt.clone();
        for (table, rows) in erased_alerts::forget(&mut change, one).await? {
            *receipt.rows.entry(table.to_owned()).or_default() += rows;
        }
        let values = values![one.id, pass, at, to_json(&receipt)];
        if change.execute(FINISH, values).await? == 0 {
            return Ok(false);
        }
        let is_project = one.kind == ErasureKind::Project;
        for sql in FORGET_PROJECT.iter().filter(|_| is_project) {
            change.execute(sql, values![one.project.as_str()]).await?;
        }
        let rows: u64 = receipt.rows.values().sum();
        let detail = json!({"rows": rows, "rebuilt_hours": receipt.rebuilt_hours});
        change
            .commit(entry(Action::ErasureFinished, one, detail))
            .await?;
        Ok(true)
    }

    /// Returns the erasures that a server carries out now.
    pub async fn running_erasures(&self) -> Result<Vec<Erasure>, ControlError> {
        self.records(RUNNING, values![], Erasure::read).await
    }

    /// Returns finished erasures that are still enforced.
    pub async fn enforced_erasures(&self, at: UnixTime) -> Result<Vec<Erasure>, ControlError> {
        let since = at - DAY * ENFORCED_DAYS;
        self.records(ENFORCED, values![since], Erasure::read).await
    }

    /// Runs an erasure again, because its rows have reappeared. `log` belongs to the server that found them.
    pub async fn reopen_erasure(&self, id: Uuid, log: Uuid) -> Result<(), ControlError> {
        let work = Work {
            logs: vec![log],
            ..Work::NONE
        };
        let mut statements = self.begin().await?;
        statements
            .execute(REOPEN, values![id, to_json(&work)])
            .await?;
        statements.commit(Notice::Silent).await
    }

    /// Whether a project is being or has been erased.
    pub async fn is_erased(&self, project: &str) -> Result<bool, ControlError> {
        let rows = self.rows(ERASED_PROJECT, values![project]).await?;
        Ok(!rows.is_empty())
    }

    /// Removes the install ids and user ids of erasures that are no longer enforced.
    pub async fn forget_subjects(&self, at: UnixTime) -> Result<(), ControlError> {
        let mut statements = self.begin().await?;
        let until = at - DAY * ENFORCED_DAYS;
        statements.execute(FORGET, values![until]).await?;
        statements.commit(Notice::Silent).await
    }
}

/// Rejects the id of an erased project. Apps that still have its keys, the audit log and the receipts all refer to the
/// old project.
pub(super) async fn refuse_erased(change: &mut Change<'_>, id: &str) -> Result<(), ControlError> {
    match change.row(ERASED_PROJECT, values![id]).await? {
        None => Ok(()),
        Some(_) => Err(checks::invalid(
            "a project with this id has been erased; choose another id",
        )),
    }
}

fn check(kind: ErasureKind, subject: &str) -> Result<(), ControlError> {
    let fits = match kind {
        ErasureKind::Install => subject.parse::<Uuid>().is_ok_and(|id| !id.is_nil()),
        ErasureKind::User if subject.starts_with('[') && subject.ends_with(']') => {
            return Err(checks::invalid(
                "text in brackets, such as `[email]`, replaces scrubbed user ids and does not identify a user",
            ));
        }
        ErasureKind::User => (1..=MOST_SUBJECT_BYTES).contains(&subject.len()),
        ErasureKind::Project => subject.is_empty(),
    };
    if fits {
        Ok(())
    } else {
        Err(checks::invalid(
            "an install id must not be blank or zero, and a user id must have 1 to 1,024 bytes",
        ))
    }
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "{}".to_owned())
}

fn entry(action: Action, erasure: &Erasure, more: serde_json::Value) -> Entry<'_> {
    let mut detail = json!({"erasure": erasure.id, "kind": erasure.kind.as_str()});
    if let (Some(detail), serde_json::Value::Object(more)) = (detail.as_object_mut(), more) {
        detail.extend(more);
    }
    Entry {
        action,
        project: (erasure.kind != ErasureKind::Project).then_some(&*erasure.project),
        subject: &erasure.project,
        detail,
    }
}
