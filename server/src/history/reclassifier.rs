//! Classifies stored stacks anew when a project's rules change, a bounded piece at a time.
//!
//! What is left to do is asked of ClickHouse, where else nothing is remembered: a server that is killed goes on at its next
//! start, and several servers at once only do the same twice. A stack may arrive late under older rules, from a server
//! that has not heard of the new ones or out of its ingest log: so it is asked again after a while, and then every so often.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::progress::ProgressBoard;
use crate::clock::Clock;
use crate::control::Access;
use crate::stacks::RuleSet;
use crate::store::{Classes, ClickHouse, Failure, NewClass, StoredStack};

/// Stacks that are read, classified and written at once: some 20 MB when they are deep.
const PIECE: u32 = 1_000;
/// A piece ends early when slow rules take longer, so that other projects have their turn.
const LONGEST_PIECE: Duration = Duration::from_secs(2);
/// How often the snapshot, which is memory, is looked at for other rules.
const LOOK: Duration = Duration::from_millis(200);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A ClickHouse that starts is no news.
const WORTH_A_LINE: Duration = Duration::from_secs(2);
/// A step that takes longer has lost its server.
const LONGEST_STEP: Duration = Duration::from_secs(300);
/// This many times since the rules changed, or the server started, classes that other rules made under the same revision are
/// replaced too. Not for ever: while releases with other built-in rules run side by side, none should undo what the other did.
const THOROUGH: u32 = 2;

/// How long after it was done it is looked for stacks that came late.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// The first time: the slowest server has the new rules by then.
    pub first: Duration,
    pub then: Duration,
}

/// The task. One piece of one project at a time, in turns: a large project does not hold up the others.
pub struct Reclassifier {
    pub access: Arc<Access>,
    pub clickhouse: ClickHouse,
    pub board: Arc<ProgressBoard>,
    pub clock: Clock,
    pub waits: Waits,
}

/// Where one project is.
struct Pass {
    rules: Arc<RuleSet>,
    /// How often it was done under these rules.
    times: u32,
    /// The stack up to which this time is done; none when it is not known yet whether there is anything to do.
    after: Option<u64>,
    due: Instant,
    pause: Duration,
}

impl Pass {
    fn new(rules: &Arc<RuleSet>) -> Self {
        Self {
            rules: Arc::clone(rules),
            times: 0,
            after: None,
            due: Instant::now(),
            pause: FIRST_PAUSE,
        }
    }

    fn classes<'p>(&self, project: &'p str) -> Classes<'p> {
        Classes {
            project,
            rules: self.rules.id(),
            only_of_these_rules: self.times < THOROUGH,
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
    /// Nothing is lost when it is dropped in the middle.
    pub async fn run(self, shutdown: CancellationToken) {
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = self.go_on() => {}
        }
    }

    async fn go_on(&self) {
        let mut passes = HashMap::new();
        loop {
            if !self.turn(&mut passes).await {
                sleep(LOOK).await;
            }
        }
    }

    /// A piece of each project that has something to do. Answers whether any had.
    async fn turn(&self, passes: &mut HashMap<Arc<str>, Pass>) -> bool {
        let snapshot = self.access.snapshot();
        let mut busy = false;
        for (project, rules) in snapshot.rules() {
            let pass = passes
                .entry(Arc::clone(project))
                .or_insert_with(|| Pass::new(rules));
            // Other rules, perhaps in the middle of the last ones: what those left is of no use any more.
            if pass.rules.id() != rules.id() {
                *pass = Pass::new(rules);
            }
            if pass.due > Instant::now() {
                continue;
            }
            busy = true;
            let step = timeout(LONGEST_STEP, self.step(project, pass)).await;
            match step.unwrap_or_else(|_| Err(Failure::Later("no answer".to_owned()))) {
                Ok(()) => pass.pause = FIRST_PAUSE,
                Err(failure) => self.put_off(project, pass, &failure),
            }
        }
        busy
    }

    fn put_off(&self, project: &Arc<str>, pass: &mut Pass, failure: &Failure) {
        let revision = pass.rules.id().revision;
        if pass.pause >= WORTH_A_LINE {
            tracing::warn!(project = %project, revision, %failure, "stored stacks are not classified anew yet");
        }
        self.board.fail(project, revision, failure.to_string());
        pass.due = Instant::now() + pass.pause;
        pass.pause = (pass.pause * 2).min(LONGEST_PAUSE);
    }

    async fn step(&self, project: &Arc<str>, pass: &mut Pass) -> Result<(), Failure> {
        let classes = pass.classes(project);
        let Some(after) = pass.after else {
            let counts = self.clickhouse.count_stacks(classes).await?;
            let now = self.clock.now();
            self.board
                .begin(project, classes.rules.revision, counts, now);
            if counts.unclassified == 0 {
                self.finish(project, pass);
            } else {
                tracing::info!(project = %project, revision = classes.rules.revision, stacks = counts.unclassified,
                    "classifying stored stacks anew");
                pass.after = Some(0);
            }
            return Ok(());
        };
        let last = self.clickhouse.end_of_stacks(project, after, PIECE).await?;
        let Some(last) = last else {
            self.finish(project, pass);
            return Ok(());
        };
        let stacks = self
            .clickhouse
            .unclassified_stacks(classes, (after, last))
            .await?;
        let all = stacks.len();
        let new = classify(&pass.rules, stacks, self.clock.now()).await?;
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

    fn finish(&self, project: &str, pass: &mut Pass) {
        self.board.finish(project);
        pass.done(self.waits);
    }
}

/// Classifies stacks in the order of their hashes, as many as there is time for, but one at least.
async fn classify(
    rules: &Arc<RuleSet>,
    mut stacks: Vec<StoredStack>,
    now: i64,
) -> Result<Vec<NewClass>, Failure> {
    let rules = Arc::clone(rules);
    let classes = move || {
        stacks.sort_unstable_by_key(|stack| stack.hash);
        let began = Instant::now();
        let class = |stack: StoredStack| NewClass {
            stack_hash: stack.hash,
            class: rules.rules().classify(&stack.frames),
            // Later than what it replaces, whatever the clock of the server that wrote that said.
            classified_at: now.max(stack.classified_at + 1),
        };
        let mut classes = Vec::with_capacity(stacks.len());
        for stack in stacks {
            classes.push(class(stack));
            if began.elapsed() >= LONGEST_PIECE {
                break;
            }
        }
        classes
    };
    let classes = tokio::task::spawn_blocking(classes).await;
    classes.map_err(|error| Failure::Later(error.to_string()))
}
