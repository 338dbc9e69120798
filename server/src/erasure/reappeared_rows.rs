//! Finds erased rows that have reappeared: from the log of a server that was offline, from a restored backup, or from a retried
//! dead letter.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::Duration;

use unjank_database::{Erasure, ErasureKind};
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::{Eraser, StepError, of_subject};
use crate::store::tables_of_installs;

/// How often finished erasures are read.
const EVERY: Duration = Duration::from_secs(10);
/// Interval of checks of a finished erasure. The first check runs after the server starts.
const AGAIN: Duration = Duration::from_secs(86_400);
/// Maximum number of erasures per statement.
const AT_ONCE: usize = 50;

/// What this server knows of finished erasures.
#[derive(Default)]
pub(super) struct Returned {
    looked: UnixTime,
    forgotten: UnixTime,
    known: HashMap<Uuid, Known>,
    /// The running erasures for which this server has forgotten which stacks are stored.
    forgot_stacks: HashSet<(Uuid, UnixTime)>,
}

struct Known {
    finished_at: Option<UnixTime>,
    /// The last record of the ingest log when the erasure was first seen as finished. Everything that arrived earlier is at or
    /// before it.
    durable: u64,
    checked: Option<UnixTime>,
}

impl Returned {
    /// Reopens erasures whose rows exist again.
    pub(super) async fn look(&mut self, eraser: &Eraser) -> Result<(), StepError> {
        let (app, now) = (&eraser.app, eraser.app.clock.now());
        if now.since(self.forgotten) >= AGAIN {
            app.control.forget_subjects(now).await?;
            self.forgotten = now;
        }
        let is_waiting = self.known.values().any(|known| known.checked.is_none());
        if now.since(self.looked) < EVERY && !is_waiting {
            return Ok(());
        }
        let running = app.control.running_erasures().await?;
        let bring = |one: &Erasure| Some((one.id, one.work.bring_stacks_from?));
        let bring: HashSet<(Uuid, UnixTime)> = running.iter().filter_map(bring).collect();
        if !bring.is_subset(&self.forgot_stacks) {
            app.intake.recent_stacks.clear();
        }
        self.forgot_stacks = bring;
        let (drained, durable) = app.log.drained_and_durable();
        let enforced = app.control.enforced_erasures(now).await?;
        self.looked = now;
        let ids: HashSet<Uuid> = enforced.iter().map(|one| one.id).collect();
        self.known.retain(|id, _| ids.contains(id));
        for one in &enforced {
            let known = self.known.get(&one.id);
            if known.is_none_or(|known| known.finished_at != one.finished_at) {
                let known = Known {
                    finished_at: one.finished_at,
                    durable,
                    checked: None,
                };
                self.known.insert(one.id, known);
                // This server may have been unable to hear of the running erasure.
                app.intake.recent_stacks.clear();
            }
        }
        let is_due = |one: &Erasure| {
            let known = self.known.get(&one.id);
            known.is_some_and(|known| {
                drained >= known.durable && known.checked.is_none_or(|at| now.since(at) >= AGAIN)
            })
        };
        let mut projects: BTreeMap<String, Vec<Erasure>> = BTreeMap::new();
        for one in enforced.into_iter().filter(is_due) {
            projects.entry(one.project.clone()).or_default().push(one);
        }
        for some in projects.values().flat_map(|all| all.chunks(AT_ONCE)) {
            for id in returned(eraser, some).await? {
                tracing::warn!(erasure = %id, "erased rows have reappeared and will be erased again");
                app.control.reopen_erasure(id, app.log.identity()).await?;
            }
            for one in some {
                let known = self.known.entry(one.id);
                known.and_modify(|known| known.checked = Some(now));
            }
        }
        Ok(())
    }
}

/// Returns the erasures of one project whose rows exist.
async fn returned(eraser: &Eraser, some: &[Erasure]) -> Result<HashSet<Uuid>, StepError> {
    let (clickhouse, dead_letters) = (&eraser.app.clickhouse, &eraser.dead_letters);
    let mut found = HashSet::new();
    for one in some.iter().filter(|one| one.kind == ErasureKind::Project) {
        dead_letters.erase(&one.project, None, clickhouse).await?;
        for table in clickhouse.tables_of_projects().await? {
            if clickhouse.rows_of_project(&table, &one.project).await? > 0 {
                found.insert(one.id);
            }
        }
    }
    let whose = eraser.scope_of(some);
    if whose.installs.is_empty() && whose.users.is_empty() {
        return Ok(found);
    }
    let dead = dead_letters.erase(&whose.project, Some(&whose), clickhouse);
    dead.await?;
    for table in tables_of_installs() {
        let rows = clickhouse.rows_to_erase(table, &whose).await?;
        found.extend(rows.iter().filter_map(|one| of_subject(some, one.subject)));
    }
    Ok(found)
}
