//! The calls inside the spans of one name, per traced span. Spans whose inside was not recorded do not count.
//!
//! A device draws one number per trace. A trace that has a span of rate r has all spans of rate r and above. So for the calls of a name,
//! a span counts as traced if its trace has a span whose rate is as low as the rate of the name. The time of the name's callees counts
//! too: if they have a lower rate, the highest of these lower rates decides, because otherwise their time would look like the name's own.
//!
//! Calls by time are in traces with draws of their own. They count in every span, with the weight of their rate.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use unjank_foundation::holm::holm;
use uuid::Uuid;

use super::nesting::{Covering, DEEPEST, Nesting};
use crate::store::reads::{StoredSpan, ratio_p};

/// The numbers of a name, each divided by the number of traced spans.
#[derive(Clone, Debug, Default, PartialEq, Serialize, utoipa::ToSchema)]
pub struct PerTraced {
    /// The number of traced spans, which recorded the name if it ran. If it is 0, so are the other numbers.
    pub spans: u64,
    pub calls: f64,
    pub total_us: f64,
    pub self_us: f64,
    pub main_thread_us: f64,
}

/// A call, for a link to its trace.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = ExampleCall)]
pub struct ExampleCall {
    /// 32 hex digits.
    pub trace_id: String,
    /// 16 hex digits.
    pub span_id: String,
}

/// A span to break down.
struct Root {
    install_id: Uuid,
    /// The lowest rate of a recorded span in its trace.
    lowest: f64,
}

/// The own time of an install's calls, and the number of its traced spans.
type Ratio = (f64, f64);

/// A number for the own time of all calls, and one for the part on the main thread.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct OwnTime {
    pub(super) all: f64,
    pub(super) on_main: f64,
}

/// A call inside a span.
#[derive(Clone, Copy)]
struct Call {
    own_us: f64,
    /// Its index in the spans.
    at: usize,
    /// Whether the call or the span around it failed.
    failed: bool,
}

/// The calls of one name that traced spans recorded.
struct OfName {
    /// The rate at which a span counts as traced.
    rate: f64,
    sums: PerTraced,
    /// The own time of all calls of each install.
    installs: HashMap<Uuid, OwnTime>,
    /// The calls from which an example is chosen.
    calls: Vec<Call>,
}

/// The numbers of all names inside the spans of one name.
pub(super) struct Traced<'s> {
    spans: &'s [StoredSpan],
    roots: Vec<Root>,
    names: HashMap<&'s str, OfName>,
    /// The highest rate inside the spans that is below their own, or their own rate if there is none.
    rate: f64,
}

/// Calls `visit` for each span called `name` and each span inside one, with the index of the outer span, the index of the span itself,
/// and the names of the spans around it.
pub(super) fn walk<'s>(
    name: &str,
    spans: &'s [StoredSpan],
    nesting: &Nesting<'_>,
    mut visit: impl FnMut(usize, usize, &[&'s str]),
) {
    let roots = spans.iter().enumerate();
    for (root, _) in roots.filter(|(_, span)| span.name == name) {
        let mut open = vec![(root, Vec::<&str>::new())];
        while let Some((at, above)) = open.pop() {
            visit(root, at, &above);
            if above.len() < DEEPEST {
                let around: Vec<&str> =
                    above.into_iter().chain([spans[at].name.as_str()]).collect();
                let others = nesting.children(at).iter();
                let others = others.filter(|child| spans[**child].name != name);
                open.extend(others.map(|child| (*child, around.clone())));
            }
        }
    }
}

/// The rates of the calls of a name, and of the calls inside them. Calls in other traces than the outer span's are ignored.
#[derive(Default)]
struct Rates {
    highest: Option<f64>,
    /// The rates as bits. The bits of positive floats sort like the floats.
    inside: BTreeSet<u64>,
}

impl Rates {
    fn at(&self) -> f64 {
        // Without a rate, every span counts.
        let Some(own) = self.highest else {
            return f64::INFINITY;
        };
        let lower = self.inside.range(..own.to_bits()).next_back();
        lower.map_or(own, |bits| f64::from_bits(*bits))
    }
}

impl<'s> Traced<'s> {
    pub(super) fn new(name: &str, spans: &'s [StoredSpan], nesting: &Nesting<'_>) -> Self {
        let mut lowest: HashMap<Uuid, f64> = HashMap::new();
        for span in spans {
            let rate = lowest.entry(span.trace_id).or_insert(span.sample_rate);
            *rate = rate.min(span.sample_rate);
        }
        let lowest_of = |at: usize| lowest.get(&spans[at].trace_id).copied().unwrap_or(1.0);
        let mut rates: HashMap<&str, Rates> = HashMap::new();
        let mut roots = Vec::new();
        walk(name, spans, nesting, |root, at, above| {
            let own = rates.entry(&spans[at].name).or_default();
            if root == at {
                roots.push(Root {
                    install_id: spans[at].install_id,
                    lowest: lowest_of(at),
                });
            }
            if !nesting.is_in(at, nesting.recorded(root)) {
                return;
            }
            let rate = spans[at].sample_rate;
            own.highest = Some(own.highest.map_or(rate, |highest| highest.max(rate)));
            for name in above {
                rates.entry(name).or_default().inside.insert(rate.to_bits());
            }
        });
        let rate = rates.get(name).map_or(f64::INFINITY, Rates::at);
        let names = rates.into_iter().map(|(name, rates)| {
            let of_name = OfName {
                rate: rates.at(),
                sums: PerTraced::default(),
                installs: HashMap::new(),
                calls: Vec::new(),
            };
            (name, of_name)
        });
        let mut traced = Self {
            spans,
            roots,
            names: names.collect(),
            rate,
        };
        walk(name, spans, nesting, |root, at, above| {
            if let Some(of_name) = traced.names.get_mut(spans[at].name.as_str())
                && lowest_of(root) <= of_name.rate
            {
                of_name.add(spans, nesting, (at, root), above);
            }
        });
        traced
    }

    /// Returns the number of spans that recorded the calls inside them, at the highest rate below their own. 0 if no span has calls inside.
    pub(super) fn count(&self) -> u64 {
        let has_inside = self.names.len() > 1;
        if has_inside { self.at(self.rate) } else { 0 }
    }

    fn at(&self, rate: f64) -> u64 {
        self.roots.iter().filter(|root| root.lowest <= rate).count() as u64
    }

    /// Returns the numbers of a name.
    pub(super) fn of(&self, name: &str) -> PerTraced {
        let Some(found) = self.names.get(name) else {
            return PerTraced::default();
        };
        let spans = self.at(found.rate);
        #[expect(clippy::cast_precision_loss, reason = "a number of spans")]
        let per = |sum: f64| {
            if spans > 0 {
                sum.max(0.0) / spans as f64
            } else {
                0.0
            }
        };
        PerTraced {
            spans,
            calls: per(found.sums.calls),
            total_us: per(found.sums.total_us),
            self_us: per(found.sums.self_us),
            main_thread_us: per(found.sums.main_thread_us),
        }
    }

    /// Returns the number of spans that recorded a name if it ran, even if only the other side has the name.
    pub(super) fn spans_for(&self, name: &str, other: &Self) -> u64 {
        self.names
            .get(name)
            .or_else(|| other.names.get(name))
            .map_or(0, |found| self.at(found.rate))
    }

    /// Returns the call whose own time is the median. Calls that failed are chosen only if there are no others.
    pub(super) fn example(&self, name: &str) -> Option<ExampleCall> {
        let mut calls = self.names.get(name)?.calls.clone();
        if calls.iter().any(|call| !call.failed) {
            calls.retain(|call| !call.failed);
        }
        if calls.is_empty() {
            return None;
        }
        let middle = calls.len() / 2;
        let (_, &mut Call { at, .. }, _) = calls.select_nth_unstable_by(middle, |one, other| {
            one.own_us
                .total_cmp(&other.own_us)
                .then(one.at.cmp(&other.at))
        });
        let call = &self.spans[at];
        Some(ExampleCall {
            trace_id: call.trace_id.simple().to_string(),
            span_id: format!("{:016x}", call.span_id),
        })
    }

    /// For each install with traced spans, returns the own time in a name and the number of these spans; then the same with the own time
    /// on the main thread.
    fn by_install(&self, name: &str, rate: f64) -> (Vec<Ratio>, Vec<Ratio>) {
        let mut installs: HashMap<Uuid, (OwnTime, f64)> = HashMap::new();
        for root in self.roots.iter().filter(|root| root.lowest <= rate) {
            installs.entry(root.install_id).or_default().1 += 1.0;
        }
        for (install, own) in self.names.get(name).iter().flat_map(|one| &one.installs) {
            installs.entry(*install).or_default().0 = *own;
        }
        let pairs = installs.into_values();
        pairs
            .map(|(own, spans)| ((own.all, spans), (own.on_main, spans)))
            .unzip()
    }

    /// Returns the probability that chance alone makes the own time per traced span differ this much, for each of the names that enough
    /// installs recorded. Corrected for the number of names.
    pub(super) fn by_chance<'n>(
        &self,
        base: &Self,
        names: impl Iterator<Item = &'n str>,
    ) -> HashMap<&'n str, OwnTime> {
        let rate = |side: &Self, name: &str| side.names.get(name).map(|one| one.rate);
        let tested = names.filter_map(|name| {
            let now = rate(self, name).or_else(|| rate(base, name))?;
            let before = rate(base, name).unwrap_or(now);
            let (all, on_main) = self.by_install(name, now);
            let (all_before, on_main_before) = base.by_install(name, before);
            // The denominators are equal, so either both tests have a result or neither has one.
            let p = (
                ratio_p(&all, &all_before)?,
                ratio_p(&on_main, &on_main_before)?,
            );
            Some((name, p))
        });
        let (names, p): (Vec<_>, Vec<(f64, f64)>) = tested.unzip();
        let (all, on_main): (Vec<_>, Vec<_>) = p.into_iter().unzip();
        let corrected = holm(&all, all.len())
            .into_iter()
            .zip(holm(&on_main, on_main.len()));
        let corrected = corrected.map(|(all, on_main)| OwnTime { all, on_main });
        names.into_iter().zip(corrected).collect()
    }
}

impl OfName {
    fn add(
        &mut self,
        spans: &[StoredSpan],
        nesting: &Nesting<'_>,
        (at, root): (usize, usize),
        above: &[&str],
    ) {
        let span = &spans[at];
        let known = nesting.drawn_below(self.rate, root);
        let weight = 1.0 / nesting.share(at, known);
        let own = weight * nesting.own_us(at, known, Covering::Children);
        self.sums.calls += weight;
        self.sums.self_us += own;
        self.sums.main_thread_us += if span.on_main_thread { own } else { 0.0 };
        if !above.contains(&span.name.as_str()) {
            #[expect(clippy::cast_precision_loss, reason = "microseconds of a span")]
            let duration = span.duration_us as f64;
            self.sums.total_us += weight * duration;
        }
        let time = self.installs.entry(span.install_id).or_default();
        time.all += own;
        time.on_main += if span.on_main_thread { own } else { 0.0 };
        let failed = [at, root].iter().any(|one| spans[*one].status == "error");
        self.calls.push(Call {
            own_us: own,
            at,
            failed,
        });
    }
}
