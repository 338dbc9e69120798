//! Rates: the events of one signal divided by what another signal counts, such as the sessions with an ANR by all sessions.
//!
//! Tests read the events from raw rows, and what they are divided by from roll-ups, because the raw rows of `usage` are kept for a few days only.

use super::aggregate::OtherSignal;
use super::define::Kept;
use super::reading::{Filter, Grain, Reading, Wanted};
use super::significance::{SignificanceTest, list};
use super::statement::Statement;
use super::subjects::subject;

impl Reading {
    /// Returns the aggregates by group, side and step. Each signal is read on its own. A group without events of a signal has 0 of them.
    pub(super) fn groups(
        &self,
        database: &str,
        aggregates: &[&str],
        step_s: Option<u32>,
        statement: &mut Statement,
    ) -> String {
        let (others, own): (Vec<&str>, Vec<&str>) = aggregates
            .iter()
            .copied()
            .partition(|name| self.subject.other_signal(name).is_some());
        let rows = self.groups_of_signal(database, &own, step_s, statement);
        if others.is_empty() {
            return rows;
        }
        let mut keys: Vec<String> = (0..self.by.len()).map(|at| format!("k{at}")).collect();
        keys.push("side".to_owned());
        keys.extend(step_s.map(|_| "at".to_owned()));
        let keys = keys.join(", ");
        // The names differ from those of the rows: an alias hides a column of the same name.
        let source = |rows: &str, values: &[(&str, &str)]| {
            let columns = columns(aggregates, |name| {
                let found = values.iter().find(|(of, _)| *of == name);
                let value =
                    found.map_or_else(|| "0.".to_owned(), |(_, column)| format!("`a_{column}`"));
                format!("{value} AS `of_{name}`")
            });
            format!("SELECT {keys}, {columns} FROM ({rows})")
        };
        let values: Vec<(&str, &str)> = own.iter().map(|name| (*name, *name)).collect();
        let mut sources = vec![source(&rows, &values)];
        for other in others {
            let Some((signal, reading)) = self.of_other_signal(other) else {
                continue;
            };
            let mut of_other = Statement::default();
            let counted = signal.aggregate;
            let rows = reading.groups_of_signal(database, &[counted], step_s, &mut of_other);
            let rows = statement.take_sql(of_other, &rows, &format!("{other}_"));
            sources.push(source(&rows, &[(other, counted)]));
        }
        format!(
            "SELECT {keys}, {} FROM ({}) GROUP BY {keys}",
            columns(aggregates, |name| format!("sum(`of_{name}`) AS `a_{name}`")),
            sources.join(" UNION ALL ")
        )
    }

    /// Returns the reading of another signal's events that an aggregate counts, in the same groups and periods.
    fn of_other_signal(&self, aggregate: &str) -> Option<(&'static OtherSignal, Self)> {
        let other = self.subject.other_signal(aggregate)?;
        let subject = subject(other.signal)?;
        let mut filters = self.filters.clone();
        for (name, value) in other.filters {
            filters.push(Filter {
                dimension: subject.dimension(name)?,
                wanted: Wanted::OneOf(vec![(*value).to_owned()]),
            });
        }
        // Hourly roll-ups do not keep the classes of stacks.
        let has_hours = subject.hourly.is_some()
            && filters.iter().all(|one| one.dimension.kept == Kept::Always);
        let grain = match self.grain {
            Grain::Hourly if !has_hours => Grain::Raw,
            grain => grain,
        };
        let reading = Self {
            subject,
            grain,
            filters,
            ..self.clone()
        };
        Some((other, reading))
    }
}

/// Returns a column for each aggregate, in SQL.
fn columns(aggregates: &[&str], column: impl Fn(&str) -> String) -> String {
    let columns: Vec<_> = aggregates.iter().map(|name| column(name)).collect();
    columns.join(", ")
}

impl SignificanceTest<'_> {
    /// Returns the sums of a test of ratios by group and stratum. Each session (or whatever the rate is divided by) counts as a draw that is 0 or 1.
    /// Only the squares are those of installs, because the events of one install are not independent.
    pub(super) fn rate(&self, above: &str, below: &str, database: &str) -> Option<Statement> {
        let (other, reading) = self.reading.of_other_signal(above)?;
        let counted = reading.subject.aggregate(other.aggregate)?.raw;
        let cases = SignificanceTest {
            reading: &reading,
            head: self.head,
            base: self.base,
            up: self.up,
            strata: self.strata,
        };
        let by = self.reading.by.len();
        let strata = self.strata.len();
        let value = format!("toFloat64(uniqExact({counted})) AS x, 0. AS y");
        let mut statement = Statement::default();
        let mut sources = Vec::new();
        for (side, contestant) in [(0, self.head), (1, self.base)] {
            let installs = cases.installs(side, &value, contestant, database, &mut statement);
            sources.push(format!(
                "SELECT {} AS keys, {} AS stratum, side, 0. AS n, sum(x) AS events, sum(x * x) AS squares, 0. AS exposure \
                 FROM ({installs}) GROUP BY keys, stratum, side",
                list("k", 0..by),
                list("s", 0..strata)
            ));
            let mut exposed = self.side(contestant);
            exposed.by.extend(self.strata.iter().copied());
            let mut of_exposed = Statement::default();
            let rows =
                exposed.groups_of_signal(database, &["installs", below], None, &mut of_exposed);
            let rows = statement.take_sql(of_exposed, &rows, &format!("exposed{side}_"));
            sources.push(format!(
                "SELECT {} AS keys, {} AS stratum, toUInt8({side}) AS side, `a_installs` AS n, 0. AS events, 0. AS squares, \
                 `a_{below}` AS exposure FROM ({rows})",
                list("k", 0..by),
                list("k", by..by + strata)
            ));
        }
        let sums = |side: u8| {
            ["n", "events", "exposure", "squares", "events", "exposure"]
                .map(|of| format!("sumIf({of}, side = {side})"))
                .join(", ")
        };
        statement.sql = format!(
            "SELECT keys, [{}, {}] AS sums FROM ({}) GROUP BY keys, stratum",
            sums(0),
            sums(1),
            sources.join(" UNION ALL ")
        );
        Some(statement)
    }
}
