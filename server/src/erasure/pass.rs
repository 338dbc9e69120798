//! A pass: erasures of one project that are carried out together, step by step.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::{Instant, sleep};
use unjank_database::{Erasure, ErasureKind, Work};
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::{ARRIVES, Eraser, StepError, of_subject};
use crate::store::{
    ErasureScope, Failure, Found, LIFE, OF_STACKS, Part, Period, Rebuilder, tables_of_installs,
};
use crate::symbols::StoreError;

const POLL: Duration = Duration::from_millis(250);
/// Requests that were in flight when the pass began have reached the log after this time.
const ON_THEIR_WAY: Duration = Duration::from_secs(15);
/// Longest wait for a mutation. After it, the mutation continues while passes of other projects run.
const LONG: Duration = Duration::from_secs(60);
const HOUR: i64 = 3_600;

pub(super) struct Pass<'e> {
    eraser: &'e Eraser,
    id: Uuid,
    project: String,
    erasures: Vec<Erasure>,
}

impl<'e> Pass<'e> {
    /// All erasures must belong to one project and one pass.
    pub(super) fn new(eraser: &'e Eraser, erasures: Vec<Erasure>) -> Self {
        let first = erasures.first();
        Self {
            id: first.and_then(|one| one.pass).unwrap_or_default(),
            project: first.map(|one| one.project.clone()).unwrap_or_default(),
            eraser,
            erasures,
        }
    }

    pub(super) async fn run(&mut self) -> Result<(), StepError> {
        self.drain_log().await?;
        let is_project = |one: &Erasure| one.kind == ErasureKind::Project;
        if self.erasures.iter().any(is_project) {
            self.erase_project().await?;
        } else {
            self.erase_subjects().await?;
        }
        self.finish().await
    }

    /// Records on the receipts why the pass stopped.
    pub(super) async fn record_error(&mut self, error: &StepError) {
        if let StepError::StillRunning | StepError::Waiting | StepError::TakenOver = error {
            return;
        }
        tracing::warn!(project = self.project, %error, "an erasure is incomplete and will be retried");
        for one in &mut self.erasures {
            one.receipt.error = Some(error.to_string());
        }
        if let Err(error) = self.save().await {
            tracing::debug!(%error, "cannot save the state of an erasure");
        }
    }

    pub(super) fn project(&self) -> &str {
        &self.project
    }

    /// Waits until everything that arrived at this server before the pass is in ClickHouse.
    async fn drain_log(&mut self) -> Result<(), StepError> {
        self.step("waiting until the ingest log is drained").await?;
        self.log_drained().await;
        Ok(())
    }

    /// Waits until everything that arrived at this server before the call is in ClickHouse.
    async fn log_drained(&self) {
        let app = &self.eraser.app;
        let began = Instant::now();
        while !app.intake.uploads.is_idle() && began.elapsed() < ON_THEIR_WAY {
            sleep(POLL).await;
        }
        let (_, durable) = app.log.drained_and_durable();
        while app.log.drained_and_durable().0 < durable {
            sleep(POLL).await;
        }
    }

    async fn erase_subjects(&mut self) -> Result<(), StepError> {
        // Later runs, also those of other servers, erase at least the same rows.
        let log = self.eraser.app.log.identity();
        self.work_mut(|work| {
            if !work.logs.contains(&log) {
                work.logs.push(log);
            }
        });
        let scope_of = self.eraser.scope_of(&self.erasures);
        let clickhouse = &self.eraser.app.clickhouse;
        let dead_letters = &self.eraser.dead_letters;
        let dead = dead_letters.erase(&self.project, Some(&scope_of), clickhouse);
        let dead = dead.await?;
        self.update_receipts(|receipt| receipt.dead_letters += dead);
        if !self.is_done("janks") && self.work().stacks.is_empty() {
            let stacks = clickhouse.stacks_to_erase(&scope_of).await?;
            self.work_mut(|work| work.stacks = stacks);
        }
        for table in tables_of_installs() {
            if !self.is_done(table) {
                self.erase_table(table, &scope_of).await?;
            }
        }
        self.rebuild().await?;
        self.erase_stacks().await
    }

    /// Deletes the rows of a table.
    async fn erase_table(
        &mut self,
        table: &'static str,
        scope_of: &ErasureScope,
    ) -> Result<(), StepError> {
        self.step(&format!("deleting rows of {table}")).await?;
        let clickhouse = &self.eraser.app.clickhouse;
        loop {
            self.await_mutation(table).await?;
            let found = clickhouse.rows_to_erase(table, scope_of).await?;
            if self.has_begun(table).await? {
                continue;
            }
            if found.is_empty() {
                break;
            }
            let hours = clickhouse.hours_to_erase(table, scope_of).await?;
            let mark = self.note(table, &found, hours);
            self.save().await?;
            clickhouse.erase_rows(table, scope_of, &found, mark).await?;
        }
        self.settle(table);
        self.work_mut(|work| work.tables.push(table.to_owned()));
        self.save().await
    }

    /// Records the hours whose roll-ups must be rebuilt, and the number of rows for the receipts. Returns the mark for the
    /// mutation.
    fn note(&mut self, table: &str, found: &[Found], hours: Vec<i64>) -> Uuid {
        let mut rows: HashMap<Uuid, u64> = HashMap::new();
        for one in found {
            if let Some(id) = of_subject(&self.erasures, one.subject) {
                *rows.entry(id).or_default() += one.rows;
            }
        }
        for erasure in &mut self.erasures {
            let rows = rows.get(&erasure.id).copied().unwrap_or_default();
            erasure.work.rows.insert(table.to_owned(), rows);
        }
        let mark = self.mark(table);
        self.work_mut(|work| {
            let known = work.hours.entry(table.to_owned()).or_default();
            known.extend(hours);
            known.sort_unstable();
            known.dedup();
        });
        mark
    }

    /// Returns the mark for a table's next mutation. A recorded mark without a mutation is reused, because its rows may already be
    /// counted.
    fn mark(&mut self, table: &str) -> Uuid {
        let known = self.work().marks.get(table).copied();
        let mark = known.unwrap_or_else(Uuid::new_v4);
        self.work_mut(|work| {
            work.marks.insert(table.to_owned(), mark);
        });
        mark
    }

    /// Whether a mutation has begun that did not exist before the rows were counted. An earlier run of the pass, on a server that was
    /// paused, can begin one at any time. It may have deleted rows before they were counted again, so their earlier count is kept.
    async fn has_begun(&self, table: &str) -> Result<bool, StepError> {
        let Some(mark) = self.work().marks.get(table).copied() else {
            return Ok(false);
        };
        let mutation = self.eraser.app.clickhouse.mutation(table, mark).await?;
        Ok(mutation.is_some())
    }

    /// Waits until a table's mutation is done, if one has begun.
    async fn await_mutation(&mut self, table: &str) -> Result<(), StepError> {
        if let Some(mark) = self.work().marks.get(table).copied()
            && self.poll_mutation(table, mark).await?
        {
            self.settle(table);
            self.save().await?;
        }
        Ok(())
    }

    /// Moves the counts of deleted rows to the receipts.
    fn settle(&mut self, table: &str) {
        self.work_mut(|work| {
            work.marks.remove(table);
        });
        for one in &mut self.erasures {
            let rows = one.work.rows.remove(table).unwrap_or_default();
            if rows > 0 {
                *one.receipt.rows.entry(table.to_owned()).or_default() += rows;
            }
        }
    }

    /// Waits a limited time for a mutation. Returns whether one exists.
    async fn poll_mutation(&mut self, table: &str, mark: Uuid) -> Result<bool, StepError> {
        let began = Instant::now();
        loop {
            let clickhouse = &self.eraser.app.clickhouse;
            let Some(mutation) = clickhouse.mutation(table, mark).await? else {
                return Ok(false);
            };
            if mutation.is_done() {
                return Ok(true);
            }
            if let Some(error) = mutation.error() {
                return Err(Failure::Later(error.to_owned()).into());
            }
            if began.elapsed() > LONG {
                return Err(StepError::StillRunning);
            }
            let parts = mutation.parts();
            self.step(&format!("deleting rows of {table}: {parts} parts left"))
                .await?;
            sleep(POLL).await;
        }
    }

    /// Rebuilds the roll-ups of the hours in which rows were deleted, from the remaining rows.
    async fn rebuild(&mut self) -> Result<(), StepError> {
        let app = &self.eraser.app;
        let now = app.clock.now().as_secs();
        let hours = self.work().hours.clone();
        if hours.is_empty() {
            return Ok(());
        }
        self.step("rebuilding roll-ups").await?;
        let rebuilder = Rebuilder::begin(&app.clickhouse, now, LIFE).await?;
        let parts: Vec<Part> = hours
            .iter()
            .flat_map(|(table, hours)| {
                let periods: Vec<Period> = hours.iter().map(|at| hour(*at)).collect();
                rebuilder.plan_without(&self.project, table, &periods)
            })
            .collect();
        let rebuilt = self.rebuild_parts(&rebuilder, &parts).await;
        let ended = rebuilder.end().await;
        rebuilt?;
        ended?;
        Ok(())
    }

    async fn rebuild_parts(
        &mut self,
        rebuilder: &Rebuilder,
        parts: &[Part],
    ) -> Result<(), StepError> {
        for (place, part) in parts.iter().enumerate() {
            self.step(&format!(
                "rebuilding roll-ups: {place} of {} months",
                parts.len()
            ))
            .await?;
            rebuilder.rebuild(part, &|_, _| ()).await?;
        }
        let hours: BTreeSet<i64> = self.work().hours.values().flatten().copied().collect();
        let hours = hours.len() as u64;
        self.work_mut(|work| work.hours.clear());
        self.update_receipts(|receipt| receipt.rebuilt_hours += hours);
        self.save().await
    }

    /// Deletes stacks that no event uses any longer.
    async fn erase_stacks(&mut self) -> Result<(), StepError> {
        let stacks = self.work().stacks.clone();
        if stacks.is_empty() {
            return Ok(());
        }
        let from = self.bring_stacks().await?;
        self.step("deleting unused stacks").await?;
        self.log_drained().await;
        // An earlier run of the pass may have stopped while these deletions ran.
        self.await_stacks().await?;
        let clickhouse = &self.eraser.app.clickhouse;
        let erased = clickhouse.erase_stacks(&self.project, (&stacks, from), self.id);
        let erased = erased.await?;
        self.await_stacks().await?;
        self.work_mut(|work| work.stacks.clear());
        self.update_receipts(|receipt| receipt.stacks += erased);
        self.save().await
    }

    /// Waits for the deletions of stacks that have begun.
    async fn await_stacks(&mut self) -> Result<(), StepError> {
        for table in OF_STACKS {
            self.poll_mutation(table, self.id).await?;
        }
        Ok(())
    }

    /// Makes all servers forget which stacks are stored, so that janks bring their stacks along. The janks before that may use a stack
    /// without bringing it, so they are stored first. Returns from when on janks bring their stacks.
    async fn bring_stacks(&mut self) -> Result<UnixTime, StepError> {
        let app = &self.eraser.app;
        let now = app.clock.now();
        let known = self.work().bring_stacks_from;
        let from = known.unwrap_or(now);
        if known.is_none() {
            app.intake.recent_stacks.clear();
            self.work_mut(|work| work.bring_stacks_from = Some(from));
            self.save().await?;
        }
        let (app, others) = (&self.eraser.app, from + ARRIVES);
        if app.control.is_shared() && app.clock.now() < others {
            self.step("waiting until janks of the other servers are stored")
                .await?;
            return Err(StepError::Waiting);
        }
        Ok(from)
    }

    async fn erase_project(&mut self) -> Result<(), StepError> {
        let symbols = &self.eraser.app.symbols;
        symbols.store().drop_project(&self.project).await?;
        let lookups = symbols.lookups();
        lookups
            .keep_only(|project| project != self.project)
            .map_err(StoreError::from)?;
        let clickhouse = &self.eraser.app.clickhouse;
        let dead_letters = &self.eraser.dead_letters;
        let dead = dead_letters.erase(&self.project, None, clickhouse);
        let dead = dead.await?;
        self.update_receipts(|receipt| receipt.dead_letters += dead);
        let now = self.eraser.app.clock.now().as_secs();
        // A running rebuild would restore deleted rows.
        let rebuilder = Rebuilder::begin(&self.eraser.app.clickhouse, now, LIFE).await?;
        let erased = rebuilder.run_exclusively(self.erase_tables()).await;
        let ended = rebuilder.end().await;
        erased??;
        ended?;
        Ok(())
    }

    async fn erase_tables(&mut self) -> Result<(), StepError> {
        let clickhouse = &self.eraser.app.clickhouse;
        for table in clickhouse.tables_of_projects().await? {
            self.step(&format!("deleting rows of {table}")).await?;
            while self.erase_project_rows(&table).await? {}
        }
        Ok(())
    }

    /// Waits for a mutation of the table that has begun. If rows are left, starts one. Returns false once no rows are left.
    async fn erase_project_rows(&mut self, table: &str) -> Result<bool, StepError> {
        self.await_mutation(table).await?;
        let clickhouse = &self.eraser.app.clickhouse;
        let rows = clickhouse.rows_of_project(table, &self.project).await?;
        if self.has_begun(table).await? {
            return Ok(true);
        }
        if rows == 0 {
            self.settle(table);
        } else {
            let mark = self.mark(table);
            self.work_mut(|work| {
                work.rows.insert(table.to_owned(), rows);
            });
            self.save().await?;
            let erased = clickhouse.erase_project(table, &self.project, mark);
            erased.await?;
        }
        Ok(rows > 0)
    }

    async fn finish(&mut self) -> Result<(), StepError> {
        let app = &self.eraser.app;
        let scrubbing = app.intake.access.scrubbing(&self.project);
        for one in &mut self.erasures {
            one.receipt.step.clear();
            one.receipt.error = None;
            one.receipt.is_scrubbed =
                one.kind == ErasureKind::User && scrubbing.try_on("", &one.subject).is_some();
        }
        let now = app.clock.now();
        if !app.control.finish_pass(&self.erasures, now).await? {
            return Err(StepError::TakenOver);
        }
        tracing::info!(
            project = self.project,
            erasures = self.erasures.len(),
            "erased"
        );
        Ok(())
    }

    /// The first erasure of a pass stores the work of the pass.
    fn work(&self) -> &Work {
        static NONE: Work = Work::NONE;
        self.erasures.first().map_or(&NONE, |one| &one.work)
    }

    fn work_mut(&mut self, change: impl FnOnce(&mut Work)) {
        if let Some(first) = self.erasures.first_mut() {
            change(&mut first.work);
        }
    }

    fn is_done(&self, table: &str) -> bool {
        self.work().tables.iter().any(|one| one == table)
    }

    /// Changes all receipts.
    fn update_receipts(&mut self, mut change: impl FnMut(&mut unjank_database::Receipt)) {
        for one in &mut self.erasures {
            change(&mut one.receipt);
        }
    }

    /// Records the current step on the receipts.
    async fn step(&mut self, what: &str) -> Result<(), StepError> {
        let is_new = self
            .erasures
            .first()
            .is_some_and(|one| one.receipt.step != what);
        if is_new {
            self.update_receipts(|receipt| {
                what.clone_into(&mut receipt.step);
                receipt.error = None;
            });
            self.save().await?;
        }
        Ok(())
    }

    async fn save(&self) -> Result<(), StepError> {
        match self.eraser.app.control.save_pass(&self.erasures).await? {
            true => Ok(()),
            false => Err(StepError::TakenOver),
        }
    }
}

fn hour(at: i64) -> Period {
    Period {
        from: at,
        to: at + HOUR,
    }
}
