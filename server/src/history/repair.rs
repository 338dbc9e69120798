//! Repairs stored stacks with symbol files that arrived after them, piece by piece, so that other projects get their turn.

use std::collections::HashSet;
use std::sync::Arc;

use unjank_stacks::RuleSet;

use super::Reclassifier;
use super::symbolication::PIECE;
use crate::store::Failure;

/// The number of ids in one query for the stacks that need them.
const IDS: usize = 500;
/// The maximum number of missing ids that are looked at.
const MOST_MISSING: u32 = 10_000;

/// The repairs of one project.
#[derive(Default)]
pub(super) struct Repairs {
    current: Option<Repair>,
    /// The revision up to which this server has repaired stacks. The snapshot of the control database follows later.
    repaired: u64,
}

/// The progress of one repair. It ends at a revision of the project's files; later files get a repair of their own.
struct Repair {
    /// The first and last revision of the files, exclusive and inclusive.
    revisions: (u64, u64),
    /// Ids of files that stacks may wait for. All earlier ones are done.
    ids: Vec<String>,
    /// The last stack done among the stacks that need `ids`.
    after: u64,
    stacks: u64,
}

impl Reclassifier {
    /// Whether a repair is under way, or files have arrived since the last one.
    pub(super) fn needs_repair(&self, project: &str, repairs: &Repairs) -> bool {
        let files = self.access.symbol_revisions(project);
        repairs.current.is_some() || files.files > files.repaired.max(repairs.repaired)
    }

    /// Symbolicates the next stacks that need files that have arrived since. Returns whether there was anything to do.
    pub(super) async fn repair(
        &self,
        project: &Arc<str>,
        rules: &Arc<RuleSet>,
        repairs: &mut Repairs,
    ) -> Result<bool, Failure> {
        let files = self.access.symbol_revisions(project);
        let revisions = (files.repaired.max(repairs.repaired), files.files);
        let repair = match &mut repairs.current {
            Some(repair) => repair,
            None if revisions.1 <= revisions.0 => return Ok(false),
            current => {
                let ids = self.symbol_ids(project, revisions, "").await?;
                let total = self.count_stacks(project, revisions, &ids).await?;
                self.board.begin_repair(project, total);
                current.insert(Repair {
                    revisions,
                    ids,
                    after: 0,
                    stacks: 0,
                })
            }
        };
        let (ids, after) = (repair.ids.as_slice(), repair.after);
        let hashes = self.clickhouse.stacks_that_need(project, ids, after, PIECE);
        let hashes = hashes.await?;
        if let Some(last) = hashes.last() {
            let done = self.symbolicate_hashes(project, rules, &hashes).await?;
            repair.after = *last;
            repair.stacks += done.len() as u64;
            self.board.advance_repair(project, done.len() as u64);
            return Ok(true);
        }
        if let Some(last) = repair.ids.last() {
            repair.ids = self.symbol_ids(project, repair.revisions, last).await?;
            repair.after = 0;
        }
        if repair.ids.is_empty() {
            self.finish_repair(project, repair).await?;
            (_, repairs.repaired) = repair.revisions;
            repairs.current = None;
        }
        Ok(true)
    }

    /// Counts the stacks that need files with revisions in a range. `ids` are the first of these files' ids.
    async fn count_stacks(
        &self,
        project: &Arc<str>,
        revisions: (u64, u64),
        ids: &[String],
    ) -> Result<u64, Failure> {
        let mut ids = ids.to_vec();
        let mut total = 0;
        while let Some(last) = ids.last() {
            let stacks = self.clickhouse.count_stacks_that_need(project, &ids);
            total += stacks.await?;
            ids = self.symbol_ids(project, revisions, last).await?;
        }
        Ok(total)
    }

    async fn finish_repair(&self, project: &Arc<str>, repair: &Repair) -> Result<(), Failure> {
        let (_, last) = repair.revisions;
        self.move_handling(project).await?;
        let now = self.clock.now();
        let saved = self.control.set_symbols_repaired(project, last, now);
        saved
            .await
            .map_err(|error| Failure::Later(error.to_string()))?;
        if repair.stacks > 0 {
            tracing::info!(project = %project, stacks = repair.stacks, "new symbol files: stored stacks are readable");
        }
        Ok(())
    }

    /// Symbolicates stacks that wait although their file is there: another server looked for the file just before it was added.
    pub(super) async fn repair_overlooked(
        &self,
        project: &Arc<str>,
        rules: &Arc<RuleSet>,
    ) -> Result<(), Failure> {
        let missing = self.clickhouse.missing_symbols(project, MOST_MISSING);
        let missing: HashSet<String> = missing.await?.into_iter().collect();
        if missing.is_empty() {
            return Ok(());
        }
        let revisions = (0, self.access.symbol_revisions(project).files);
        let mut ids = self.symbol_ids(project, revisions, "").await?;
        while let Some(last) = ids.last() {
            let next = self.symbol_ids(project, revisions, last).await?;
            ids.retain(|id| missing.contains(id));
            self.repair_stacks_of(project, rules, &ids).await?;
            ids = next;
        }
        Ok(())
    }

    /// Returns the next ids after `after` of files with revisions in a range.
    async fn symbol_ids(
        &self,
        project: &str,
        revisions: (u64, u64),
        after: &str,
    ) -> Result<Vec<String>, Failure> {
        let ids = (self.control).symbol_ids_since(project, revisions, after, IDS as u32);
        ids.await.map_err(|error| Failure::Later(error.to_string()))
    }

    async fn repair_stacks_of(
        &self,
        project: &Arc<str>,
        rules: &Arc<RuleSet>,
        ids: &[String],
    ) -> Result<(), Failure> {
        let mut after = 0;
        while !ids.is_empty() {
            let hashes = self.clickhouse.stacks_that_need(project, ids, after, PIECE);
            let hashes = hashes.await?;
            let Some(last) = hashes.last() else {
                break;
            };
            after = *last;
            self.symbolicate_hashes(project, rules, &hashes).await?;
        }
        Ok(())
    }
}
