//! Symbolication of stored stacks, as soon as they have arrived.

use std::sync::Arc;
use std::time::Duration;

use unjank_foundation::clock::UnixTime;
use unjank_protocol::Frame;
use unjank_stacks::{RuleSet, SymbolNeed, function_key};

use super::Reclassifier;
use super::classification::classify;
use crate::metrics::StackOutcome;
use crate::recent::ArrivedStack;
use crate::store::{Failure, FunctionName, StoredStack, SymbolicatedStack};
use crate::symbols::{ReadableStack, named_function};

/// The number of stacks that are symbolicated at once.
pub(super) const PIECE: u32 = 500;

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

    /// Returns the hashes of the stacks that are done. Stacks that are not stored yet are left out.
    pub(super) async fn symbolicate_hashes(
        &self,
        project: &str,
        rules: &Arc<RuleSet>,
        hashes: &[u64],
    ) -> Result<Vec<u64>, Failure> {
        let now = self.clock.now();
        let stacks = self
            .clickhouse
            .reported_stacks(project, rules.id(), hashes)
            .await?;
        let done = stacks.iter().map(|stack| stack.hash).collect();
        self.symbolicate(project, rules, stacks, now).await?;
        Ok(done)
    }

    /// Symbolicates and classifies stacks with their reported frames. `now` is the time before they were read: if another server does the
    /// same with newer symbol files meanwhile, its rows must be the later ones.
    pub(super) async fn symbolicate(
        &self,
        project: &str,
        rules: &Arc<RuleSet>,
        stacks: Vec<StoredStack>,
        now: UnixTime,
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
        let names: Vec<FunctionName> = (stacks.iter().zip(&rows))
            .filter_map(|(stack, row)| function_name(stack, row))
            .collect();
        self.clickhouse
            .insert_function_names(project, &names)
            .await?;
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

/// Removes the builds of the system's libraries from the missing builds.
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

/// Removes the builds that only ignored frames need, because symbols of the system's libraries are never uploaded.
fn forget_system(rules: &RuleSet, frames: &[Frame<'_>], missing: &mut Vec<String>) {
    missing.retain(|id| {
        let needs =
            |frame: &&Frame<'_>| SymbolNeed::of(frame).is_some_and(|need| need.id.as_str() == id);
        let mut frames = frames.iter().filter(needs);
        frames.any(|frame| !rules.rules().ignores(frame))
    });
}

/// The name of a function of spans: a stack that has only this function.
fn function_name(stack: &StoredStack, row: &SymbolicatedStack<'_>) -> Option<FunctionName> {
    let [reported] = stack.frames.as_slice() else {
        return None;
    };
    let key = function_key(reported).filter(|_| reported.line == 0)?;
    let named = named_function(row.frames).unwrap_or_default();
    Some(FunctionName {
        key,
        stack_hash: stack.hash,
        symbolicated_at: row.symbolicated_at,
        class: named.class.to_string(),
        function: named.function.to_string(),
        file: named.file.to_string(),
    })
}

/// Returns the outcome for a stack. A stack with missing and mismatched files counts as missing, because that is more common.
fn outcome(stack: &ReadableStack) -> StackOutcome {
    if !stack.missing.is_empty() {
        StackOutcome::Missing
    } else if !stack.mismatched.is_empty() {
        StackOutcome::Mismatched
    } else {
        StackOutcome::Readable
    }
}
