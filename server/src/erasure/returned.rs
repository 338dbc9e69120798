//! Looks for erased rows that have come back: from the log of a server that was away, from a restored backup, or from a retried dead letter.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use super::{Eraser, NotYet, whose};
use crate::store::control::{Erasure, ErasureKind};
use crate::store::tables_of_installs;

/// A finished erasure is checked when the server starts, and then after so long.
const AGAIN: i64 = 24 * 3_600_000_000;
/// Erasures that one question asks for.
const AT_ONCE: usize = 100;

/// When something was last looked at, in microseconds since the epoch.
#[derive(Default)]
pub(super) struct Returned {
    checked: HashMap<Uuid, i64>,
    forgotten: i64,
}

impl Returned {
    /// Opens erasures whose rows are there again.
    pub(super) async fn look(&mut self, eraser: &Eraser) -> Result<(), NotYet> {
        let (app, now) = (&eraser.app, eraser.app.clock.now());
        let (drained, durable) = app.log.drained_and_durable();
        if drained < durable {
            return Ok(());
        }
        if now - self.forgotten >= AGAIN {
            app.control.forget_subjects(now).await?;
            self.forgotten = now;
        }
        let enforced = app.control.enforced_erasures(now).await?;
        self.checked
            .retain(|id, _| enforced.iter().any(|one| one.id == *id));
        let due = |one: &Erasure| self.checked.get(&one.id).is_none_or(|at| now - at >= AGAIN);
        let mut projects: BTreeMap<String, Vec<Erasure>> = BTreeMap::new();
        for one in enforced.into_iter().filter(due) {
            projects.entry(one.project.clone()).or_default().push(one);
        }
        for some in projects.values().flat_map(|all| all.chunks(AT_ONCE)) {
            for id in returned(eraser, some).await? {
                tracing::warn!(erasure = %id, "erased rows have come back: they are erased again");
                app.control.reopen_erasure(id).await?;
            }
            self.checked.extend(some.iter().map(|one| (one.id, now)));
        }
        Ok(())
    }
}

/// Erasures of one project whose rows are there.
async fn returned(eraser: &Eraser, some: &[Erasure]) -> Result<Vec<Uuid>, NotYet> {
    let clickhouse = &eraser.app.clickhouse;
    let mut found = Vec::new();
    for one in some.iter().filter(|one| one.kind == ErasureKind::Project) {
        for table in clickhouse.tables_of_projects().await? {
            if clickhouse.rows_of_project(&table, &one.project).await? > 0 {
                found.push(one.id);
                break;
            }
        }
    }
    let whose = whose(some.iter().map(|one| (one, one.requested_at)));
    if whose.some.is_empty() {
        return Ok(found);
    }
    eraser
        .dead_letters
        .erase(&whose.project, Some(&whose), clickhouse)
        .await?;
    for table in tables_of_installs() {
        for rows in clickhouse.rows_to_erase(table, &whose).await? {
            let install = rows.install_id.to_string();
            let is_of = |one: &&Erasure| match one.kind {
                ErasureKind::Install => one.subject == install,
                ErasureKind::User => one.subject == rows.user_id,
                ErasureKind::Project => false,
            };
            let of = some.iter().filter(is_of).map(|one| one.id);
            found.extend(of.filter(|id| !found.contains(id)).collect::<Vec<_>>());
        }
    }
    Ok(found)
}
