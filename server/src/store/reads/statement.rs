//! Builds one statement with server-side parameters from a reading.

use super::define::{Dimension, Kept};
use super::parts::{self, Part};
use super::reading::{Base, Grain, Reading, Sort, Wanted};

/// Condition, order and limit of single rows. All parts are constants of this module, never user input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest<'r> {
    pub(super) condition: &'r str,
    pub(super) order: &'r str,
    pub(super) limit: u64,
}

/// A statement and its parameters.
#[derive(Debug, Default)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) numbers: Vec<(String, i64)>,
    pub(super) texts: Vec<(String, String)>,
    pub(super) lists: Vec<(String, Vec<String>)>,
}

impl Statement {
    /// Adds a text parameter. Parts of one statement share it.
    pub(super) fn text(&mut self, name: &str, value: &str) {
        if !self.texts.iter().any(|(known, _)| known == name) {
            self.texts.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Moves the parameters of another statement here, with a prefix to their names.
    pub(super) fn take(&mut self, other: Self, prefix: &str) {
        let named = |name: String| format!("{prefix}{name}");
        let numbers = other.numbers.into_iter();
        self.numbers
            .extend(numbers.map(|(name, it)| (named(name), it)));
        let texts = other.texts.into_iter();
        self.texts.extend(texts.map(|(name, it)| (named(name), it)));
        let lists = other.lists.into_iter();
        self.lists.extend(lists.map(|(name, it)| (named(name), it)));
    }

    /// Like [`Self::take`], and returns the SQL of the other statement with the new names.
    pub(super) fn take_sql(&mut self, other: Self, sql: &str, prefix: &str) -> String {
        self.take(other, prefix);
        // All braces belong to parameters.
        sql.replace('{', &format!("{{{prefix}"))
    }

    fn list(&mut self, name: &str, values: &[String]) {
        if !self.lists.iter().any(|(known, _)| known == name) {
            self.lists.push((name.to_owned(), values.to_vec()));
        }
    }
}

impl Reading {
    /// Selects one row per group: keys, measures, and measures of the base.
    pub(super) fn table(&self, database: &str, sort: Sort, limit: u64) -> Statement {
        let mut statement = Statement::default();
        let inner = self.groups(database, &self.aggregates(), None, &mut statement);
        let measures = self.measure_list();
        let keys = self.keys();
        let value = |column: &str| format!("{column}[{}]", sort.measure + 1);
        let key = if sort.change {
            // Above a base below zero, a larger value is an increase too.
            format!("({0} - {1}) / abs({1})", value("now"), value("base"))
        } else {
            value("now")
        };
        let enough = match self.at_least {
            None => String::new(),
            Some((place, least)) => {
                let place = place + 1;
                let base = match self.base {
                    Some(_) => format!(" AND base[{place}] >= {least}"),
                    None => String::new(),
                };
                format!(" AND now[{place}] >= {least}{base}")
            }
        };
        let direction = if sort.descending { "DESC" } else { "ASC" };
        statement.sql = format!(
            "SELECT keys, anyIf(measured, side = 0) AS now, anyIf(measured, side = 1) AS base \
             FROM (SELECT {keys} AS keys, side, {measures} AS measured FROM ({inner})) \
             GROUP BY keys HAVING notEmpty(now){enough} \
             ORDER BY isFinite({key}) DESC, {key} {direction}, keys LIMIT {limit}"
        );
        statement
    }

    /// Selects one row per group and step of time.
    pub(super) fn series(&self, database: &str, step_s: u32, limit: u64) -> Statement {
        let mut statement = Statement::default();
        let inner = self.groups(database, &self.aggregates(), Some(step_s), &mut statement);
        statement.sql = format!(
            "SELECT {keys} AS keys, at, {measures} AS measured FROM ({inner}) ORDER BY at, keys LIMIT {limit}",
            keys = self.keys(),
            measures = self.measure_list(),
        );
        statement
    }

    /// Selects one row per group with a histogram: buckets and weights.
    pub(super) fn histogram(&self, database: &str, aggregate: &str, limit: u64) -> Statement {
        let mut statement = Statement::default();
        let inner = self.groups(database, &[aggregate], None, &mut statement);
        statement.sql = format!(
            "SELECT {keys} AS keys, arrayMap(bound -> toInt32(bound), mapKeys(`a_{aggregate}`)) AS buckets, \
             mapValues(`a_{aggregate}`) AS weights FROM ({inner}) \
             ORDER BY arraySum(weights) DESC, keys LIMIT {limit}",
            keys = self.keys(),
        );
        statement
    }

    /// Selects raw rows.
    pub(super) fn events(&self, database: &str, columns: &str, rest: Rest<'_>) -> Statement {
        let Rest {
            condition,
            order,
            limit,
        } = rest;
        let mut statement = Statement::default();
        // Single rows are not compared.
        let alone = Self {
            base: None,
            ..self.clone()
        };
        let from = alone.from(database);
        let rows = alone.rows(&Part::whole(&alone), database, &mut statement);
        statement.sql = format!(
            "SELECT {columns} FROM {from} WHERE {rows} AND {condition} ORDER BY {order} LIMIT {limit}"
        );
        statement
    }

    /// Returns the aggregates of one signal by group, side and step.
    pub(super) fn groups_of_signal(
        &self,
        database: &str,
        aggregates: &[&str],
        step_s: Option<u32>,
        statement: &mut Statement,
    ) -> String {
        let mut parts = parts::plan(self);
        let is_translated = self.by.iter().any(|one| one.of_function.is_some());
        if let [only] = &mut parts[..] {
            only.is_whole = !is_translated;
            if only.is_whole {
                return self.folded(database, only, aggregates, step_s, statement);
            }
        }
        // Each source aggregates its own rows to states; this query combines them, and translates the functions of the few rows that are left.
        let key = |(at, dimension): (usize, &Dimension)| match dimension.of_function {
            Some(part) => format!("{} AS k{at}", part.of_group(&format!("r{at}"), database)),
            None => format!("r{at} AS k{at}"),
        };
        let mut columns: Vec<String> = self.by.iter().enumerate().map(key).collect();
        let mut group: Vec<String> = (0..self.by.len()).map(|at| format!("k{at}")).collect();
        let rest = ["side", "at"]
            .iter()
            .take(1 + usize::from(step_s.is_some()));
        for name in rest {
            columns.push((*name).to_owned());
            group.push((*name).to_owned());
        }
        let folds = aggregates
            .iter()
            .filter_map(|name| self.subject.aggregate(name));
        columns.extend(folds.map(|one| format!("{} AS `a_{}`", one.of_parts(), one.name)));
        let sources: Vec<_> = parts
            .iter()
            .map(|part| self.folded(database, part, aggregates, step_s, statement))
            .collect();
        format!(
            "SELECT {} FROM ({}) GROUP BY {}",
            columns.join(", "),
            sources.join(" UNION ALL "),
            group.join(", ")
        )
    }

    /// Returns the aggregates of one source: final values if it is the only one, otherwise states.
    fn folded(
        &self,
        database: &str,
        part: &Part,
        aggregates: &[&str],
        step_s: Option<u32>,
        statement: &mut Statement,
    ) -> String {
        let reading = Self {
            grain: part.grain,
            ..self.clone()
        };
        let mut columns = Vec::new();
        let mut group = Vec::new();
        let key = if part.is_whole { "k" } else { "r" };
        for (place, dimension) in self.by.iter().enumerate() {
            let value = reading.value(dimension);
            let value = match dimension.of_function {
                Some(function) => function.key_or(&value),
                None => value,
            };
            columns.push(format!("toString({value}) AS {key}{place}"));
            group.push(format!("{key}{place}"));
        }
        let rows = reading.rows(part, database, statement);
        let side = reading.side(part, statement);
        columns.push(format!("{side} AS side"));
        group.push("side".to_owned());
        if let Some(step) = step_s {
            let seconds = reading.seconds();
            columns.push(format!("toInt64(intDiv({seconds}, {step}) * {step}) AS at"));
            group.push("at".to_owned());
        }
        for name in aggregates {
            let aggregate = self.subject.aggregate(name);
            let folded = aggregate.map(|one| match (part.grain, part.is_whole) {
                (Grain::Raw, true) => one.of_raw(),
                (Grain::Raw, false) => one.state_of_raw(),
                (Grain::Hourly | Grain::Daily, true) => one.of_rollup(),
                (Grain::Hourly | Grain::Daily, false) => one.state_of_rollup(),
            });
            columns.push(format!("{} AS `a_{name}`", folded.unwrap_or_default()));
        }
        let from = reading.from(database);
        format!(
            "SELECT {} FROM {from} WHERE {rows} GROUP BY {}",
            columns.join(", "),
            group.join(", ")
        )
    }

    /// The distinct aggregates that the measures need.
    fn aggregates(&self) -> Vec<&'static str> {
        let mut names: Vec<_> = self
            .measures
            .iter()
            .flat_map(|one| one.formula.needs())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn keys(&self) -> String {
        let keys: Vec<_> = (0..self.by.len())
            .map(|place| format!("k{place}"))
            .collect();
        format!("CAST([{}], 'Array(String)')", keys.join(", "))
    }

    fn measure_list(&self) -> String {
        let measures: Vec<_> = self.measures.iter().map(|one| one.sql()).collect();
        format!("CAST([{}], 'Array(Float64)')", measures.join(", "))
    }

    pub(super) fn value(&self, dimension: &Dimension) -> String {
        match (self.grain, dimension.kept) {
            (Grain::Raw, _) | (_, Kept::ByClass) => dimension.raw_value().into_owned(),
            _ if dimension.is_converted => dimension.raw_value().into_owned(),
            _ => format!("s.{}", dimension.name()),
        }
    }

    pub(super) fn from(&self, database: &str) -> String {
        let subject = self.subject;
        let rows = match self.grain {
            Grain::Raw => subject.raw.to_owned(),
            Grain::Hourly => format!(
                "{} AS s {}",
                subject.hourly.unwrap_or_default(),
                subject.rollup_join
            ),
            Grain::Daily => format!(
                "{} AS s {}",
                subject.daily.unwrap_or_default(),
                subject.rollup_join
            ),
        };
        let filtered = self.filters.iter().map(|filter| filter.dimension);
        let classes = self.by.iter().copied().chain(filtered);
        if classes.into_iter().any(|one| one.kept == Kept::ByClass) {
            format!(
                "`{database}`.{rows} LEFT JOIN (SELECT stack_hash, group_id, category, culprit, owner, title, not_a_cause \
                 FROM `{database}`.stack_class_current WHERE project = {{project:String}}) AS c ON c.stack_hash = s.stack_hash"
            )
        } else {
            format!("`{database}`.{rows}")
        }
    }

    /// 0: head, 1: base.
    fn side(&self, part: &Part, statement: &mut Statement) -> String {
        match &self.base {
            None => "0".to_owned(),
            Some(Base::Period(_)) => {
                format!("if({}, 0, 1)", self.within_any(&part.now, "now", statement))
            }
            Some(Base::Version { name, .. }) => {
                statement.text("base_version", name);
                "if(s.app_version = {base_version:String}, 1, 0)".to_owned()
            }
        }
    }

    /// Returns the condition for the project, the periods and the filters, for both sides.
    pub(super) fn rows(&self, part: &Part, database: &str, statement: &mut Statement) -> String {
        statement.text("project", &self.project);
        let span = self.within_any(&part.now, "span", statement);
        let when = match &self.base {
            Some(Base::Period(_)) => {
                let base = self.within_any(&part.base, "base", statement);
                format!("(({span}) OR ({base}))")
            }
            Some(Base::Version { span: own, .. }) if *own != self.span => {
                let base = self.within_any(&part.base, "base", statement);
                let of_base = "(s.app_version = {base_version:String})";
                format!("((NOT {of_base} AND {span}) OR ({of_base} AND {base}))")
            }
            _ => span,
        };
        let mut rows = format!("s.project = {{project:String}} AND {when}");
        for (place, filter) in self.filters.iter().enumerate() {
            let value = self.value(&filter.dimension);
            let name = format!("f{place}");
            match &filter.wanted {
                Wanted::OneOf(values) | Wanted::NoneOf(values) => statement.list(&name, values),
                Wanted::Contains(text) => statement.text(&name, text),
            }
            let holds = |value: &str| match filter.wanted {
                Wanted::OneOf(_) => format!("{value} IN {{{name}:Array(String)}}"),
                Wanted::NoneOf(_) => format!("{value} NOT IN {{{name}:Array(String)}}"),
                Wanted::Contains(_) => {
                    format!("positionCaseInsensitiveUTF8(toString({value}), {{{name}:String}}) > 0")
                }
            };
            if let Some(during) = filter.dimension.during {
                let condition = during.condition(database, &when, &name, holds);
                rows.push_str(&format!(" AND {condition}"));
                continue;
            }
            let reported = holds(&value);
            let of_version = filter.dimension.name() == "app_version";
            let condition = match (&self.base, filter.dimension.of_function) {
                (Some(Base::Version { .. }), _) if of_version => {
                    format!("({reported} OR {value} = {{base_version:String}})")
                }
                (_, Some(part)) => format!("({reported} OR {})", part.matches(database, holds)),
                _ => match filter.sessions() {
                    // ClickHouse can use the index on sessions for ids, but not for their texts.
                    Some(ids) if self.grain == Grain::Raw && !ids.is_empty() => {
                        statement.list(&format!("{name}_ids"), &ids);
                        format!("({reported} AND s.session_id IN {{{name}_ids:Array(UUID)}})")
                    }
                    _ => reported,
                },
            };
            rows.push_str(&format!(" AND {condition}"));
        }
        rows
    }
}
