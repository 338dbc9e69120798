//! Reclassifies stored stacks in small chunks when a project's rules change.
//!
//! The remaining work is queried from ClickHouse and stored nowhere else. A killed server therefore resumes at its next
//! start, and several servers at once only duplicate work. New rows have the time from before their stacks were read, so
//! that a slow server does not replace what another has made from newer symbol files. A stack may arrive late with a
//! class of older rules, from a server that has not yet loaded the new ones or from an ingest log. Each project is
//! therefore checked again after a while, and then periodically.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use unjank_foundation::clock::UnixTime;
use unjank_stacks::{RuleSet, needs_symbols};

use super::classification::classify;
use super::repair::Repairs;
use super::{Reclassifier, Waits};
use crate::store::{Classes, Failure, StoredStack};

/// The number of stacks read, classified and written at once: some 20 MB if they are deep.
const PIECE: u32 = 1_000;
/// The number of projects that are worked on at once. Each has a chunk of stacks in memory. A project that waits for a slow symbol file
/// does not stop the others.
const AT_ONCE: usize = 4;
/// How often the snapshot, which is in memory, is checked for new rules.
const LOOK: Duration = Duration::from_millis(200);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// Failures are logged from this pause on. Shorter ones are usual while ClickHouse starts.
const WORTH_A_LINE: Duration = Duration::from_secs(2);
/// The time limit of a step. Longer steps have lost their connection.
const LONGEST_STEP: Duration = Duration::from_secs(300);
/// In this many passes after the rules changed or the server started, classes made by other rules of the same revision
/// are replaced too. The number is limited so that releases with different built-in rules, running side by side, do not
/// keep overwriting each other's classes.
const THOROUGH: u32 = 2;

/// The state of one project.
struct Pass {
    rules: Arc<RuleSet>,
    /// The number of passes finished under these rules.
    times: u32,
    /// The last stack done in this pass. `None` if it is not known yet whether there is any work.
    after: Option<u64>,
    due: Instant,
    pause: Duration,
    repairs: Repairs,
    /// When to look for stacks to symbolicate again.
    symbols_due: Instant,
    symbols_pause: Duration,
    /// When the project last had its turn.
    served: Instant,
}

impl Pass {
    fn new(rules: &Arc<RuleSet>) -> Self {
        Self {
            rules: Arc::clone(rules),
            times: 0,
            after: None,
            due: Instant::now(),
            pause: FIRST_PAUSE,
            repairs: Repairs::default(),
            symbols_due: Instant::now(),
            symbols_pause: FIRST_PAUSE,
            served: Instant::now(),
        }
    }

    fn classes<'p>(&self, project: &'p str) -> Classes<'p> {
        Classes {
            project,
            rules: self.rules.id(),
            only_current_hash: self.times < THOROUGH,
        }
    }

    fn done(&mut self, waits: Waits) {
        self.times = self.times.saturating_add(1);
        self.after = None;
        self.due = Instant::now()
            + if self.times == 1 {
                waits.first
            } else {
                waits.then
            };
    }
}

impl Reclassifier {
    /// Runs until shutdown. Dropping the future midway loses nothing.
    pub async fn run(self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.work() => {}
        }
    }

    async fn work(&self) {
        let mut passes = HashMap::new();
        let mut running = FuturesUnordered::new();
        loop {
            let free = AT_ONCE - running.len();
            for (project, pass) in self.take_due(&mut passes, free) {
                running.push(self.process(project, pass));
            }
            tokio::select! {
                Some((project, pass)) = running.next() => {
                    passes.insert(project, Some(pass));
                }
                () = sleep(LOOK) => {}
            }
        }
    }

    /// Takes the states of projects that are due, those that have waited longest first. A project without a state in `passes` is being
    /// worked on.
    fn take_due(
        &self,
        passes: &mut HashMap<Arc<str>, Option<Pass>>,
        most: usize,
    ) -> Vec<(Arc<str>, Pass)> {
        let snapshot = self.access.snapshot();
        let mut due = Vec::new();
        for (project, rules) in snapshot.rules() {
            let pass = passes
                .entry(Arc::clone(project))
                .or_insert_with(|| Some(Pass::new(rules)));
            let Some(pass) = pass else {
                continue;
            };
            // The rules changed, perhaps in the middle of a pass, whose state is now useless.
            if pass.rules.id() != rules.id() {
                *pass = Pass::new(rules);
            }
            if pass.due <= Instant::now() || self.awaits_symbols(project, pass) {
                due.push((pass.served, Arc::clone(project)));
            }
        }
        due.sort_unstable();
        let due = due.into_iter().take(most);
        due.filter_map(|(_, project)| {
            let pass = passes.get_mut(&project)?.take()?;
            Some((project, pass))
        })
        .collect()
    }

    fn awaits_symbols(&self, project: &Arc<str>, pass: &Pass) -> bool {
        pass.symbols_due <= Instant::now()
            && (self.arrived.has(project) || self.needs_repair(project, &pass.repairs))
    }

    /// Processes a chunk of a project.
    async fn process(&self, project: Arc<str>, mut pass: Pass) -> (Arc<str>, Pass) {
        pass.served = Instant::now();
        if self.awaits_symbols(&project, &pass) {
            self.follow_symbols(&project, &mut pass).await;
        }
        if pass.due <= Instant::now() {
            let step = timeout(LONGEST_STEP, self.step(&project, &mut pass)).await;
            match step.unwrap_or_else(|_| Err(too_long())) {
                Ok(()) => pass.pause = FIRST_PAUSE,
                Err(failure) => self.postpone(&project, &mut pass, &failure),
            }
        }
        (project, pass)
    }

    /// Symbolicates stacks that have arrived, and stacks whose symbol file has arrived.
    async fn follow_symbols(&self, project: &Arc<str>, pass: &mut Pass) {
        let follow = async {
            let arrived = self.arrivals(project, &pass.rules).await?;
            Ok(arrived | self.repair(project, &pass.rules, &mut pass.repairs).await?)
        };
        let followed: Result<bool, Failure> = timeout(LONGEST_STEP, follow)
            .await
            .unwrap_or_else(|_| Err(too_long()));
        match followed {
            Ok(was_busy) => {
                pass.symbols_pause = FIRST_PAUSE;
                // Stacks that have just arrived may not be in ClickHouse yet.
                let pause = if was_busy { Duration::ZERO } else { LOOK };
                pass.symbols_due = Instant::now() + pause;
            }
            Err(failure) => {
                if pass.symbols_pause >= WORTH_A_LINE {
                    tracing::warn!(project = %project, %failure, "cannot symbolicate stacks yet");
                }
                pass.symbols_due = Instant::now() + pass.symbols_pause;
                pass.symbols_pause = (pass.symbols_pause * 2).min(LONGEST_PAUSE);
            }
        }
    }

    fn postpone(&self, project: &Arc<str>, pass: &mut Pass, failure: &Failure) {
        let revision = pass.rules.id().revision;
        if pass.pause >= WORTH_A_LINE {
            tracing::warn!(project = %project, revision, %failure, "cannot reclassify stored stacks yet");
        }
        self.board.fail(project, revision, failure.to_string());
        pass.due = Instant::now() + pass.pause;
        pass.pause = (pass.pause * 2).min(LONGEST_PAUSE);
    }

    async fn step(&self, project: &Arc<str>, pass: &mut Pass) -> Result<(), Failure> {
        let classes = pass.classes(project);
        let Some(after) = pass.after else {
            self.repair_overlooked(project, &pass.rules).await?;
            let counts = self.clickhouse.count_stacks(classes).await?;
            let now = self.clock.now();
            self.board
                .begin(project, classes.rules.revision, counts, now);
            if counts.unclassified == 0 {
                self.finish(project, pass).await?;
            } else {
                tracing::info!(project = %project, revision = classes.rules.revision, stacks = counts.unclassified,
                    "reclassifying stored stacks");
                pass.after = Some(0);
            }
            return Ok(());
        };
        let now = self.clock.now();
        let last = self.clickhouse.end_of_stacks(project, after, PIECE).await?;
        let Some(last) = last else {
            self.finish(project, pass).await?;
            return Ok(());
        };
        let stacks = self
            .clickhouse
            .unclassified_stacks(classes, after, last)
            .await?;
        // A stack that arrived while the server was ending, or one of an older version of the server.
        let is_waiting = |stack: &StoredStack| {
            stack.symbolicated_at == UnixTime::from_micros(0) && needs_symbols(&stack.frames)
        };
        let (waiting, stacks): (Vec<_>, Vec<_>) = stacks.into_iter().partition(is_waiting);
        let symbolicated = waiting.len() as u64;
        self.symbolicate(project, &pass.rules, waiting, now).await?;
        self.board.advance(project, symbolicated);
        let all = stacks.len();
        let new = classify(&pass.rules, stacks, now).await?;
        if !new.is_empty() {
            self.clickhouse
                .insert_classes(project, classes.rules, &new)
                .await?;
            self.board.advance(project, new.len() as u64);
        }
        let is_whole = new.len() == all;
        pass.after = match new.last() {
            Some(class) if !is_whole => Some(class.stack_hash),
            _ => Some(last),
        };
        Ok(())
    }

    async fn finish(&self, project: &str, pass: &mut Pass) -> Result<(), Failure> {
        self.move_handling(project).await?;
        self.board.finish(project);
        pass.done(self.waits);
        Ok(())
    }
}

fn too_long() -> Failure {
    Failure::Later(format!("no answer within {} s", LONGEST_STEP.as_secs()))
}
