//! Measures the cost of an evaluation: CPU time of the engine and of the processes that query it, and the number of queries.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::Bench;
use crate::clickhouse::engine_login;
use crate::processes;

pub(super) struct Meter {
    data_dir: PathBuf,
    before: Spent,
}

struct Spent {
    engine_s: f64,
    askers_s: f64,
    questions: u64,
}

impl Meter {
    pub(super) async fn start(bench: &Bench, data_dir: &Path) -> Result<Self> {
        Ok(Self {
            data_dir: data_dir.to_owned(),
            before: spent(bench, data_dir).await?,
        })
    }

    pub(super) async fn report(&self, bench: &Bench, evaluations: u64) -> Result<String> {
        let after = spent(bench, &self.data_dir).await?;
        let each = |amount: f64| amount / evaluations.max(1) as f64;
        Ok(format!(
            "One evaluation, including its share of filling the store: {:.1} queries, {:.1} ms CPU of the engine, {:.1} ms CPU of the evaluating process.\n",
            each(after.questions as f64 - self.before.questions as f64),
            each(after.engine_s - self.before.engine_s) * 1e3,
            each(after.askers_s - self.before.askers_s) * 1e3
        ))
    }
}

async fn spent(bench: &Bench, data_dir: &Path) -> Result<Spent> {
    // Queried first, because a server that has just started has no engine for some moments.
    let questions = "SELECT value FROM system.events WHERE event = 'SelectQuery'";
    let questions = bench.clickhouse.value(questions).await?;
    let login = engine_login(data_dir)?;
    let pid = login
        .pid
        .context("the process id of the engine is unknown")?;
    let engine = processes::usage(pid).context("the CPU time of the engine is unknown")?;
    Ok(Spent {
        engine_s: engine.cpu_s,
        askers_s: processes::cpu_of_ended_children()
            .context("the CPU time of ended processes is unknown")?,
        questions,
    })
}
