//! What ran inside chosen spans, as stacks for flame graphs: each path of names from a chosen span inwards, weighted by the own time of
//! its innermost span.

use std::collections::{HashMap, HashSet};

use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::nesting::{Covering, DEEPEST, Nesting, Timing};
use super::{InvalidQuery, NamedQuery, QueryError, WeighedStack};
use crate::store::ClickHouse;
use crate::store::reads::{First, Search, StoredFrame, StoredSpan};

/// Maximum number of stacks, heaviest first. The rest have almost no weight.
const MOST_STACKS: usize = 2_000;

/// Limits the spans that are read.
#[derive(Clone, Copy, Debug)]
pub struct SpanBounds {
    /// Maximum number of chosen spans.
    pub chosen: u64,
    /// Maximum number of all spans, with those around and inside the chosen ones.
    pub read: u64,
}

/// The latest spans that a query selects, and all spans of their traces.
pub struct ChosenSpans {
    pub chosen: Vec<StoredSpan>,
    /// Includes the chosen spans.
    pub spans: Vec<StoredSpan>,
    /// The number of selected spans that are not chosen, because not all that ran inside them was read.
    pub left_out: usize,
}

impl ChosenSpans {
    /// Reads the latest selected spans. Without a filter by name or by `root`, selects the outermost spans of traces.
    pub async fn read(
        clickhouse: &ClickHouse,
        project: &str,
        mut ask: NamedQuery,
        now: UnixTime,
        bounds: SpanBounds,
    ) -> Result<Self, QueryError> {
        ask.measures = vec!["count".to_owned()];
        let selects = |(name, _): &(String, String)| {
            matches!(name.as_str(), "name" | "contains.name" | "root")
        };
        if !ask.filters.iter().any(selects) {
            ask.filters.push(("root".to_owned(), "true".to_owned()));
        }
        let reading = ask.single(project, "spans", now)?;
        let search = Search {
            at_least_us: ask.at_least_us.unwrap_or_default(),
            first: First::Latest,
            after: None,
            limit: bounds.chosen,
        };
        let (mut chosen, _) = clickhouse.spans(&reading, search).await?;
        let selected = chosen.len();
        let (spans, _) = clickhouse
            .spans_around(project, &chosen, bounds.read + 1)
            .await?;
        if spans.len() as u64 > bounds.read {
            // Spans are read by start, so only spans that ended before the last one are complete.
            let last = spans.last().map_or(i64::MIN, |span| span.start);
            chosen.retain(|span| span.start.saturating_add_unsigned(span.duration_us) < last);
            if chosen.is_empty() {
                return Err(QueryError::Unfit(InvalidQuery(format!(
                    "the traces of these spans have more than {} spans: choose a shorter period or other spans",
                    bounds.read
                ))));
            }
        }
        Ok(Self {
            left_out: selected - chosen.len(),
            chosen,
            spans,
        })
    }

    /// Returns the stacks below the chosen spans. A chosen span inside another one is part of the other one's stacks.
    #[must_use]
    pub fn stacks(&self) -> SpanStacks {
        let spans = &self.spans;
        let nesting = Nesting::new(spans.iter().map(Timing::from).collect());
        let mut paths = Paths::default();
        let mut found = SpanStacks::default();
        for root in self.outermost(&nesting) {
            found.spans += 1;
            found.represented += 1.0 / spans[root].sample_rate;
            paths.add_all(root, &nesting, spans);
        }
        found.stacks = paths.heaviest(spans);
        found
    }

    /// Returns the chosen spans that are not inside another chosen one.
    fn outermost(&self, nesting: &Nesting<'_>) -> Vec<usize> {
        let id = |span: &StoredSpan| (span.trace_id, span.span_id);
        let chosen: HashSet<(Uuid, u64)> = self.chosen.iter().map(id).collect();
        let is_chosen = |at: usize| chosen.contains(&id(&self.spans[at]));
        let is_inside = |at: usize| {
            let around = std::iter::successors(nesting.parent(at), |at| nesting.parent(*at));
            around.take(DEEPEST).any(is_chosen)
        };
        (0..self.spans.len())
            .filter(|at| is_chosen(*at) && !is_inside(*at))
            .collect()
    }
}

/// The stacks below chosen spans, sorted by path.
#[derive(Debug, Default)]
pub struct SpanStacks {
    /// The number of spans that the stacks begin with.
    pub spans: u64,
    /// The number of spans that these stand for, by their sample rates.
    pub represented: f64,
    stacks: Vec<SpanStack>,
}

/// A path of spans with the time that its innermost span spent itself.
#[derive(Debug)]
struct SpanStack {
    /// Innermost first, as in stacks of janks.
    frames: Vec<StoredFrame>,
    /// In microseconds, above 0. Scaled up by the sample rates of the spans.
    own_us: f64,
}

impl SpanStacks {
    /// Returns the number of stacks.
    #[must_use]
    pub fn count(&self) -> usize {
        self.stacks.len()
    }

    /// Returns the stacks with their times in microseconds.
    pub fn in_micros(&self) -> impl Iterator<Item = WeighedStack<'_>> {
        self.stacks.iter().map(|stack| stack.weighing(1.0))
    }

    /// Returns the stacks with their times in milliseconds.
    pub fn in_millis(&self) -> impl Iterator<Item = WeighedStack<'_>> {
        self.stacks.iter().map(|stack| stack.weighing(1e-3))
    }

    /// Returns the stacks and those of the base, in microseconds. A path of both sides is there twice: a tree adds them up.
    pub fn compared<'s>(
        &'s self,
        base: Option<&'s Self>,
    ) -> impl Iterator<Item = WeighedStack<'s>> {
        let now = self.in_micros().map(move |stack| WeighedStack {
            base: base.map(|_| 0.0),
            ..stack
        });
        let before = base.into_iter().flat_map(Self::in_micros);
        now.chain(before.map(|stack| WeighedStack {
            value: 0.0,
            base: Some(stack.value),
            ..stack
        }))
    }
}

impl SpanStack {
    fn weighing(&self, unit: f64) -> WeighedStack<'_> {
        WeighedStack {
            frames: &self.frames,
            value: self.own_us * unit,
            base: None,
        }
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.frames
            .iter()
            .rev()
            .map(|frame| frame.function.as_str())
    }
}

/// A path of names.
struct Path {
    /// The path without its innermost name.
    around: Option<usize>,
    /// The first span with this path.
    first: usize,
    depth: usize,
    own_us: f64,
}

/// All paths, as a tree: a path has one entry, however long it is.
#[derive(Default)]
struct Paths<'s> {
    all: Vec<Path>,
    known: HashMap<(Option<usize>, &'s str), usize>,
}

impl<'s> Paths<'s> {
    /// Adds a span and all spans inside it.
    fn add_all(&mut self, root: usize, nesting: &Nesting<'_>, spans: &'s [StoredSpan]) {
        let known = nesting.recorded(root);
        let mut open = vec![(root, None)];
        while let Some((at, around)) = open.pop() {
            let weight = 1.0 / (nesting.share(at, known) * spans[root].sample_rate);
            let index = self.find_or_add(around, &spans[at].name, at);
            let path = &mut self.all[index];
            path.own_us += weight * nesting.own_us(at, known, Covering::Children);
            if path.depth < DEEPEST {
                let inside = nesting.children(at).iter();
                open.extend(inside.map(|child| (*child, Some(index))));
            }
        }
    }

    fn find_or_add(&mut self, around: Option<usize>, name: &'s str, at: usize) -> usize {
        let next = self.all.len();
        let index = *self.known.entry((around, name)).or_insert(next);
        if index == next {
            let depth = 1 + around.map_or(0, |around| self.all[around].depth);
            self.all.push(Path {
                around,
                first: at,
                depth,
                own_us: 0.0,
            });
        }
        index
    }

    fn heaviest(&self, spans: &[StoredSpan]) -> Vec<SpanStack> {
        // Estimates of own time may be below 0, see `Nesting::own_us`.
        let mut heaviest: Vec<usize> = (0..self.all.len())
            .filter(|index| self.all[*index].own_us > 0.0)
            .collect();
        heaviest.sort_by(|one, other| self.all[*other].own_us.total_cmp(&self.all[*one].own_us));
        let heaviest = heaviest.into_iter().take(MOST_STACKS);
        let mut stacks: Vec<_> = heaviest.map(|index| self.stack(index, spans)).collect();
        stacks.sort_by(|one, other| one.names().cmp(other.names()));
        stacks
    }

    fn stack(&self, index: usize, spans: &[StoredSpan]) -> SpanStack {
        let outwards = std::iter::successors(Some(index), |index| self.all[*index].around);
        SpanStack {
            frames: outwards
                .map(|index| frame(&spans[self.all[index].first]))
                .collect(),
            own_us: self.all[index].own_us,
        }
    }
}

/// A span as a frame: its name, and where its code is.
fn frame(span: &StoredSpan) -> StoredFrame {
    StoredFrame {
        function: span.name.clone(),
        file: span.code_file.clone(),
        line: span.code_line,
        ..StoredFrame::default()
    }
}
