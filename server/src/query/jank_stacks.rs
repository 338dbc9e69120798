//! The distinct stacks of janks, with their weights.

use std::collections::{HashMap, HashSet};

use unjank_foundation::clock::UnixTime;

use super::{NamedQuery, QueryError, WeighedStack};
use crate::store::ClickHouse;
use crate::store::reads::StackDetail;

/// Maximum number of stacks in a tree, heaviest first. The rest have almost no weight.
const MOST_STACKS: u64 = 1_000;

/// The stacks of the selected janks, by descending total time. In a comparison, stacks that only the base has follow.
pub struct JankStacks {
    pub stacks: Vec<JankStack>,
    pub details: HashMap<u64, StackDetail>,
}

/// A stack with its numbers; `None` where nothing was measured.
pub struct JankStack {
    pub hash: u64,
    pub sum_ms: Option<f64>,
    pub count: Option<f64>,
    pub installs: Option<f64>,
    /// `sum_ms` of the base, in a comparison.
    pub base: Option<f64>,
}

impl JankStacks {
    pub async fn read(
        clickhouse: &ClickHouse,
        project: &str,
        mut ask: NamedQuery,
        now: UnixTime,
    ) -> Result<Self, QueryError> {
        ask.by = vec!["stack_hash".to_owned()];
        ask.measures = ["sum_ms", "count", "installs"].map(str::to_owned).to_vec();
        ask.order = Some("-sum_ms".to_owned());
        let mut asked = ask.table(project, "janks", now)?;
        let base = asked.reading.base.as_ref().map(|base| ask.of_base(base));
        asked.limit = ask.limit.unwrap_or(MOST_STACKS).min(MOST_STACKS);
        let (rows, _) = clickhouse
            .read_table(&asked.reading, asked.sort, asked.limit)
            .await?;
        let compared = asked.reading.base.is_some();
        let mut stacks: Vec<_> = rows
            .into_iter()
            .filter_map(|row| {
                let measured = |place: usize| {
                    row.now
                        .get(place)
                        .copied()
                        .filter(|value| value.is_finite())
                };
                Some(JankStack {
                    hash: row.keys.first()?.parse().ok()?,
                    sum_ms: measured(0),
                    count: measured(1),
                    installs: measured(2),
                    base: compared.then(|| row.base.first().copied().unwrap_or_default()),
                })
            })
            .collect();
        if let Some(base) = base {
            stacks.extend(only_in_base(clickhouse, project, (base, now), &stacks).await?);
        }
        let hashes: Vec<u64> = stacks.iter().map(|stack| stack.hash).collect();
        let details = clickhouse.stacks_of(project, &hashes).await?;
        Ok(Self { stacks, details })
    }

    /// The stacks that occurred and whose frames are known.
    pub fn weighed(&self) -> impl Iterator<Item = WeighedStack<'_>> {
        self.compared().filter(|stack| stack.value > 0.0)
    }

    /// Includes the stacks that only the base has.
    pub fn compared(&self) -> impl Iterator<Item = WeighedStack<'_>> {
        self.stacks.iter().filter_map(|stack| {
            Some(WeighedStack {
                frames: &self.details.get(&stack.hash)?.frames,
                value: stack.sum_ms.unwrap_or_default(),
                base: stack.base,
            })
        })
    }
}

/// Returns the heaviest stacks of the base that are not in `stacks`.
async fn only_in_base(
    clickhouse: &ClickHouse,
    project: &str,
    (mut base, now): (NamedQuery, UnixTime),
    stacks: &[JankStack],
) -> Result<Vec<JankStack>, QueryError> {
    let limit = base.limit.take().unwrap_or(MOST_STACKS).min(MOST_STACKS);
    let asked = base.table(project, "janks", now)?;
    let (rows, _) = clickhouse
        .read_table(&asked.reading, asked.sort, limit)
        .await?;
    let known: HashSet<u64> = stacks.iter().map(|stack| stack.hash).collect();
    let only_in_base = rows.into_iter().filter_map(|row| {
        let hash = row.keys.first()?.parse().ok()?;
        let sum_ms = row.now.first().copied().filter(|value| value.is_finite())?;
        (!known.contains(&hash)).then_some(JankStack {
            hash,
            sum_ms: None,
            count: None,
            installs: None,
            base: Some(sum_ms),
        })
    });
    Ok(only_in_base.collect())
}
