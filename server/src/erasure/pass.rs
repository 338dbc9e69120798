//! One pass: some erasures of a project that are carried out together, step by step.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use super::{Eraser, NotYet, whose};
use crate::store::control::{Erasure, ErasureKind, Work};
use crate::store::{Failure, Found, LIFE, Part, Period, Rebuilder, Whose, tables_of_installs};

const POLL: Duration = Duration::from_millis(250);
/// Requests that were on their way when the pass began have reached the log after this time.
const ON_THEIR_WAY: Duration = Duration::from_secs(1);
const HOUR: i64 = 3_600;

pub(super) struct Pass<'e> {
    eraser: &'e Eraser,
    id: Uuid,
    project: String,
    erasures: Vec<Erasure>,
}

impl<'e> Pass<'e> {
    /// All of the erasures are of one project and have the same pass.
    pub(super) fn new(eraser: &'e Eraser, erasures: Vec<Erasure>) -> Self {
        let first = erasures.first();
        Self {
            id: first.and_then(|one| one.pass).unwrap_or_default(),
            project: first.map(|one| one.project.clone()).unwrap_or_default(),
            eraser,
            erasures,
        }
    }

    pub(super) async fn run(&mut self) -> Result<(), NotYet> {
        self.drain_log().await?;
        let is_project = |one: &Erasure| one.kind == ErasureKind::Project;
        if self.erasures.iter().any(is_project) {
            self.erase_project().await?;
        } else {
            self.erase_subjects().await?;
        }
        self.finish().await
    }

    /// Says on the receipts why it goes no further.
    pub(super) async fn tell(&mut self, error: &NotYet) {
        for one in &mut self.erasures {
            one.receipt.error = Some(error.to_string());
        }
        if let Err(error) = self.save().await {
            tracing::debug!(%error, "the state of an erasure cannot be saved");
        }
    }

    /// Waits until everything that arrived before the pass is in ClickHouse.
    async fn drain_log(&mut self) -> Result<(), NotYet> {
        self.step("waiting until the ingest log is drained").await?;
        sleep(ON_THEIR_WAY).await;
        let log = &self.eraser.app.log;
        let (_, durable) = log.drained_and_durable();
        while log.drained_and_durable().0 < durable {
            sleep(POLL).await;
        }
        Ok(())
    }

    async fn erase_subjects(&mut self) -> Result<(), NotYet> {
        let before = self.work().before;
        let whose = whose(self.erasures.iter().map(|one| (one, before)));
        let clickhouse = &self.eraser.app.clickhouse;
        let dead_letters = &self.eraser.dead_letters;
        let dead = dead_letters.erase(&self.project, Some(&whose), clickhouse);
        let dead = dead.await?;
        self.share(|receipt| receipt.dead_letters += dead);
        if !self.work().tables.iter().any(|table| table == "janks") && self.work().stacks.is_empty()
        {
            let stacks = clickhouse.stacks_to_erase(&whose).await?;
            self.work_mut(|work| work.stacks = stacks);
        }
        for table in tables_of_installs() {
            if !self.is_done(table) {
                self.erase_table(table, &whose).await?;
            }
        }
        self.rebuild().await?;
        self.erase_stacks().await
    }

    /// Deletes the rows of a table.
    async fn erase_table(&mut self, table: &'static str, whose: &Whose) -> Result<(), NotYet> {
        let clickhouse = &self.eraser.app.clickhouse;
        self.step(&format!("deleting rows of {table}")).await?;
        if clickhouse.mutation(table, self.id).await?.is_none() {
            let found = clickhouse.rows_to_erase(table, whose).await?;
            if !found.is_empty() {
                self.note(table, &found);
                self.save().await?;
                let erased = clickhouse.erase_rows((table, whose), &found, self.id);
                erased.await?;
            }
        }
        self.mutated(table).await?;
        self.work_mut(|work| work.tables.push(table.to_owned()));
        self.save().await
    }

    /// Notes the hours that roll-ups need to be made again for, and counts the rows for the receipts.
    fn note(&mut self, table: &str, found: &[Found]) {
        let hours: BTreeSet<i64> = found.iter().map(|one| one.happened).collect();
        for erasure in &mut self.erasures {
            let is_of = |one: &&Found| match erasure.kind {
                ErasureKind::Install => one.install_id.to_string() == erasure.subject,
                ErasureKind::User => one.user_id == erasure.subject,
                ErasureKind::Project => true,
            };
            let rows = found.iter().filter(is_of).map(|one| one.rows).sum();
            erasure.work.rows.insert(table.to_owned(), rows);
        }
        self.work_mut(|work| {
            work.hours
                .insert(table.to_owned(), hours.iter().copied().collect());
        });
    }

    /// Waits until a table's mutation is done.
    async fn mutated(&mut self, table: &str) -> Result<(), NotYet> {
        loop {
            let found = self.eraser.app.clickhouse.mutation(table, self.id).await?;
            let Some(mutation) = found.filter(|mutation| !mutation.is_done()) else {
                return Ok(());
            };
            if let Some(error) = mutation.error() {
                return Err(Failure::Later(error.to_owned()).into());
            }
            let parts = mutation.parts();
            self.step(&format!("deleting rows of {table}: {parts} parts are left"))
                .await?;
            sleep(POLL).await;
        }
    }

    /// Makes the hours again in which rows were deleted, from the rows that are left.
    async fn rebuild(&mut self) -> Result<(), NotYet> {
        let app = &self.eraser.app;
        let now = app.clock.now().div_euclid(1_000_000);
        let hours = self.work().hours.clone();
        if hours.is_empty() {
            return Ok(());
        }
        self.step("making roll-ups again").await?;
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

    async fn rebuild_parts(&mut self, rebuilder: &Rebuilder, parts: &[Part]) -> Result<(), NotYet> {
        for (place, part) in parts.iter().enumerate() {
            self.step(&format!(
                "making roll-ups again: {place} of {} months",
                parts.len()
            ))
            .await?;
            rebuilder.rebuild(part, &|_, _| ()).await?;
        }
        let hours = parts.iter().map(Part::hours).sum::<u64>();
        self.work_mut(|work| work.hours.clear());
        self.share(|receipt| receipt.rebuilt_hours += hours);
        self.save().await
    }

    /// Deletes stacks that no event has any more.
    async fn erase_stacks(&mut self) -> Result<(), NotYet> {
        let stacks = self.work().stacks.clone();
        if stacks.is_empty() {
            return Ok(());
        }
        self.step("deleting stacks that nothing else uses").await?;
        let clickhouse = &self.eraser.app.clickhouse;
        let erased = clickhouse.erase_stacks(&self.project, &stacks, self.id);
        let erased = erased.await?;
        for table in ["stacks", "stack_classes"] {
            self.mutated(table).await?;
        }
        // A stack that comes again is stored again.
        self.eraser.app.known_stacks.clear();
        self.work_mut(|work| work.stacks.clear());
        self.share(|receipt| receipt.stacks += erased);
        self.save().await
    }

    async fn erase_project(&mut self) -> Result<(), NotYet> {
        let clickhouse = &self.eraser.app.clickhouse;
        let dead_letters = &self.eraser.dead_letters;
        let dead = dead_letters.erase(&self.project, None, clickhouse);
        let dead = dead.await?;
        self.share(|receipt| receipt.dead_letters += dead);
        for table in clickhouse.tables_of_projects().await? {
            if self.is_done(&table) {
                continue;
            }
            self.erase_project_rows(&table).await?;
        }
        self.eraser.app.known_stacks.clear();
        Ok(())
    }

    /// Deletes all rows of the project in a table.
    async fn erase_project_rows(&mut self, table: &str) -> Result<(), NotYet> {
        let clickhouse = &self.eraser.app.clickhouse;
        self.step(&format!("deleting rows of {table}")).await?;
        let rows = clickhouse.rows_of_project(table, &self.project).await?;
        if rows > 0 && clickhouse.mutation(table, self.id).await?.is_none() {
            self.work_mut(|work| {
                work.rows.insert(table.to_owned(), rows);
            });
            self.save().await?;
            clickhouse
                .erase_project(table, &self.project, self.id)
                .await?;
        }
        self.mutated(table).await?;
        self.work_mut(|work| work.tables.push(table.to_owned()));
        self.save().await
    }

    async fn finish(&mut self) -> Result<(), NotYet> {
        for one in &mut self.erasures {
            let rows = std::mem::take(&mut one.work.rows).into_iter();
            for (table, rows) in rows.filter(|(_, rows)| *rows > 0) {
                *one.receipt.rows.entry(table).or_default() += rows;
            }
            one.receipt.step.clear();
            one.receipt.error = None;
        }
        let app = &self.eraser.app;
        let now = app.clock.now();
        app.control.finish_pass(&self.erasures, now).await?;
        tracing::info!(
            project = self.project,
            erasures = self.erasures.len(),
            "erased"
        );
        Ok(())
    }

    /// The pass keeps its work with its first erasure.
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

    /// Writes to all receipts.
    fn share(&mut self, mut change: impl FnMut(&mut crate::store::control::Receipt)) {
        for one in &mut self.erasures {
            change(&mut one.receipt);
        }
    }

    /// Says what is done now.
    async fn step(&mut self, what: &str) -> Result<(), NotYet> {
        let is_new = self
            .erasures
            .first()
            .is_some_and(|one| one.receipt.step != what);
        if is_new {
            self.share(|receipt| {
                what.clone_into(&mut receipt.step);
                receipt.error = None;
            });
            self.save().await?;
        }
        Ok(())
    }

    async fn save(&self) -> Result<(), NotYet> {
        Ok(self.eraser.app.control.save_pass(&self.erasures).await?)
    }
}

fn hour(at: i64) -> Period {
    Period {
        from: at,
        to: at + HOUR,
    }
}
