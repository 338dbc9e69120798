//! Symbolication of stored stacks: of new ones as they arrive, and of those that waited for a file.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use unjank_protocol::Frame;

use super::reclassifier::{Reclassifier, classify};
use crate::clock::UnixTime;
use crate::metrics::StackOutcome;
use crate::recent::ArrivedStack;
use crate::stacks::{RuleSet, SymbolNeed};
use crate::store::{Failure, StoredStack, SymbolicatedStack};
use crate::symbols::ReadableStack;

/// The number of stacks that are symbolicated at once.
const PIECE: u32 = 500;
/// The number of ids in one query for the stacks that need them.
const IDS: u32 = 500;
/// The maximum number of ids of a project that are looked at.
const MOST_IDS: u32 = 1_000_000;
/// The maximum number of missing ids that are looked at.
const MOST_MISSING: u32 = 10_000;

impl Reclassifier {
    /// Symbolicates and classifies stacks that have just arrived. Returns whether there were any.
    pub(super) async fn arrivals(
        &self,
        project: &Arc<str>,
        rules: &Arc<RuleSet>,
    ) -> Result<bool, Failure> {
        let arrived = self.arrived.take(project, PIECE as usize);
        if arrived.is_empty() {
            return Ok(false);
        }
        let hashes: Vec<u64> = arrived.iter().map(|stack| stack.hash).collect();
        let result = self.symbolicate_hashes(project, rules, &hashes).await;
        let done = result.as_deref().unwrap_or_default();
        let is_left = |stack: &ArrivedStack| !done.contains(&stack.hash);
        let left = arrived.into_iter().filter(is_left).collect();
        self.arrived.put_back(project, left);
        Ok(!result?.is_empty())
    }

    /// Symbolicates the stacks that waited for files that have arrived since. Returns whether there was such a file.
    pub(super) async fn repair(
        &self,
        project: &Arc<str>,
        rules: &Arc<RuleSet>,
    ) -> Result<bool, Failure> {
        let revisions = self.access.symbol_revisions(project);
        if revisions.files <= revisions.repaired {
            return Ok(false);
        }
        let (after, last) = (revisions.repaired, revisions.files);
        let ids = self.symbol_ids(project, after, last).await?;
        let mut repaired = 0;
        for ids in ids.chunks(IDS as usize) {
            repaired += self.repair_stacks_of(project, rules, ids).await?;
        }
        self.control
            .set_symbols_repaired(project, revisions.files, self.clock.now())
            .await
            .map_err(|error| Failure::Later(error.to_string()))?;
        if repaired > 0 {
            tracing::info!(project = %project, stacks = repaired, "new symbol files: stored stacks are readable");
        }
        Ok(true)
    }

    /// Symbolicates stacks that wait although their file is there: another server looked for the file just before it was added.
    pub(super) async fn repair_overlooked(
        &self,
        project: &Arc<str>,
        rules: &Arc<RuleSet>,
    ) -> Result<(), Failure> {
        let missing = self.clickhouse.missing_symbols(project, MOST_MISSING);
        let mut missing = missing.await?;
        if missing.is_empty() {
            return Ok(());
        }
        let files = self.access.symbol_revisions(project).files;
        let known = self.symbol_ids(project, 0, files).await?;
        let known: HashSet<String> = known.into_iter().collect();
        missing.retain(|id| known.contains(id));
        for ids in missing.chunks(IDS as usize) {
            self.repair_stacks_of(project, rules, ids).await?;
        }
        Ok(())
    }

    /// Returns the ids of files with a revision after `after` and up to `last`.
    async fn symbol_ids(
        &self,
        project: &str,
        after: u64,
        last: u64,
    ) -> Result<Vec<String>, Failure> {
        let ids = self
            .control
            .symbol_ids_since(project, after, last, MOST_IDS);
        ids.await.map_err(|error| Failure::Later(error.to_string()))
    }

    /// Symbolicates the stacks that need any of these builds, even those that have frames from an earlier file.
    pub(super) async fn repair_stacks_of(
        &self,
        project: &Arc<str>,
        rules: &Arc<RuleSet>,
        ids: &[String],
    ) -> Result<usize, Failure> {
        let (mut after, mut repaired) = (0, 0);
        loop {
            let hashes = self.clickhouse.stacks_that_need(project, ids, after, PIECE);
            let hashes = hashes.await?;
            let Some(last) = hashes.last() else {
                return Ok(repaired);
            };
            after = *last;
            let done = self.symbolicate_hashes(project, rules, &hashes).await?;
            repaired += done.len();
        }
    }

    /// Returns the hashes of the stacks that are done. Those that are not stored yet are not.
    async fn symbolicate_hashes(
        &self,
        project: &str,
        rules: &Arc<RuleSet>,
        hashes: &[u64],
    ) -> Result<Vec<u64>, Failure> {
        let stacks = self
            .clickhouse
            .reported_stacks(project, rules.id(), hashes)
            .await?;
        let done = stacks.iter().map(|stack| stack.hash).collect();
        self.symbolicate(project, rules, stacks).await?;
        Ok(done)
    }

    /// Symbolicates and classifies stacks with their reported frames.
    pub(super) async fn symbolicate(
        &self,
        project: &str,
        rules: &Arc<RuleSet>,
        stacks: Vec<StoredStack>,
    ) -> Result<(), Failure> {
        if stacks.is_empty() {
            return Ok(());
        }
        let revision = self.access.symbol_revisions(project).files;
        let frames = stacks.iter().map(|stack| stack.frames.clone()).collect();
        let readable = self.symbolicator.symbolicate(project, revision, frames);
        let readable = readable
            .await
            .map_err(|error| Failure::Later(error.to_string()))?;
        let (mut stacks, readable) = without_system(rules, stacks, readable).await?;
        let now = self.clock.now();
        let rows: Vec<SymbolicatedStack<'_>> = stacks
            .iter()
            .zip(&readable)
            .map(|(stack, readable)| SymbolicatedStack {
                hash: stack.hash,
                symbolicated_at: now.max(stack.symbolicated_at + Duration::from_micros(1)),
                frames: &readable.frames,
                origins: &readable.origins,
                ids: &readable.ids,
                missing: &readable.missing,
                mismatched: &readable.mismatched,
            })
            .collect();
        self.clickhouse.insert_symbolicated(project, &rows).await?;
        let is_new = |stack: &StoredStack| stack.symbolicated_at == UnixTime::default();
        for (_, readable) in stacks
            .iter()
            .zip(&readable)
            .filter(|(stack, _)| is_new(stack))
        {
            self.metrics.count_stack(outcome(readable));
        }
        for (stack, readable) in stacks.iter_mut().zip(readable) {
            if !readable.frames.is_empty() {
                stack.frames = readable.frames;
            }
        }
        while !stacks.is_empty() {
            let new = classify(rules, stacks.clone(), now).await?;
            self.clickhouse
                .insert_classes(project, rules.id(), &new)
                .await?;
            stacks.retain(|stack| !new.iter().any(|class| class.stack_hash == stack.hash));
        }
        Ok(())
    }
}

/// Removes the builds of the system's libraries from those that are missing.
async fn without_system(
    rules: &Arc<RuleSet>,
    stacks: Vec<StoredStack>,
    mut readable: Vec<ReadableStack>,
) -> Result<(Vec<StoredStack>, Vec<ReadableStack>), Failure> {
    let rules = Arc::clone(rules);
    let work = move || {
        for (stack, readable) in stacks.iter().zip(&mut readable) {
            forget_system(&rules, &stack.frames, &mut readable.missing);
        }
        (stacks, readable)
    };
    let work = tokio::task::spawn_blocking(work).await;
    work.map_err(|error| Failure::Later(error.to_string()))
}

/// Removes the builds that only ignored frames need: nobody uploads the symbols of the system's libraries.
fn forget_system(rules: &RuleSet, frames: &[Frame<'_>], missing: &mut Vec<String>) {
    missing.retain(|id| {
        let needs =
            |frame: &&Frame<'_>| SymbolNeed::of(frame).is_some_and(|need| need.id.as_str() == id);
        let mut frames = frames.iter().filter(needs);
        frames.any(|frame| !rules.rules().ignores(frame))
    });
}

/// What became of a stack. A missing file is more common than a wrong one, so it comes first.
fn outcome(stack: &ReadableStack) -> StackOutcome {
    if !stack.missing.is_empty() {
        StackOutcome::Missing
    } else if !stack.mismatched.is_empty() {
        StackOutcome::Mismatched
    } else {
        StackOutcome::Readable
    }
}
