//! Spans and recompositions by name.

use std::collections::HashMap;

use unjank_protocol::{Recomposition, Span};

use super::spread::{Spread, Summary};
use super::weight;

/// Maximum number of names, for apps that put numbers into names.
const MOST_NAMES: usize = 20_000;
/// The name for all others beyond the maximum.
pub(super) const OTHERS: &str = "(others)";

/// All spans of a name.
#[derive(Clone, Debug)]
pub struct SpanName {
    pub name: String,
    pub durations_us: Summary,
    /// Share of the time in spans that began on the main thread, 0 to 1.
    pub main_thread_share: f64,
    pub errors: f64,
}

#[derive(Default)]
struct Durations {
    all: Spread,
    on_main_us: f64,
    errors: f64,
}

#[derive(Default)]
pub(super) struct SpansByName(HashMap<String, Durations>);

impl SpansByName {
    pub(super) fn add(&mut self, span: &Span<'_>) {
        let weight = weight(span.sample_rate);
        #[expect(clippy::cast_precision_loss, reason = "a day at most")]
        let duration = span.duration_us.max(0) as f64;
        let full = self.0.len() >= MOST_NAMES && !self.0.contains_key(&*span.name);
        let name = if full { OTHERS } else { &span.name };
        let one = match self.0.get_mut(name) {
            Some(one) => one,
            None => self.0.entry(name.to_owned()).or_default(),
        };
        one.all.add(duration, weight);
        if span.on_main_thread {
            one.on_main_us += duration * weight;
        }
        if span.status == unjank_protocol::SpanStatus::Error {
            one.errors += weight;
        }
    }

    /// Returns the names by total time, most first.
    pub(super) fn sorted(self) -> Vec<SpanName> {
        let names = self.0.into_iter().filter_map(|(name, one)| {
            let durations_us = one.all.summary()?;
            let share = one.on_main_us / durations_us.sum;
            Some(SpanName {
                name,
                durations_us,
                main_thread_share: if share.is_finite() { share } else { 0.0 },
                errors: one.errors,
            })
        });
        let mut names: Vec<_> = names.collect();
        names.sort_by(|one, other| {
            let (mine, others) = (one.durations_us.sum, other.durations_us.sum);
            others
                .total_cmp(&mine)
                .then_with(|| one.name.cmp(&other.name))
        });
        names
    }
}

/// A UI function on a page, and why it was redrawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Redrawn {
    pub function: String,
    pub page: String,
    pub cause: String,
    pub count: f64,
}

#[derive(Default)]
pub(super) struct RedrawnFunctions(HashMap<[String; 3], f64>);

impl RedrawnFunctions {
    pub(super) fn add(&mut self, redrawn: &Recomposition<'_>) {
        let mut key = [&redrawn.function, &redrawn.page, &redrawn.cause].map(ToString::to_string);
        if self.0.len() >= MOST_NAMES && !self.0.contains_key(&key) {
            key = [OTHERS.to_owned(), String::new(), String::new()];
        }
        let count = f64::from(redrawn.count) * weight(redrawn.sample_rate);
        *self.0.entry(key).or_default() += count;
    }

    /// Returns the functions by number of redraws, most first.
    pub(super) fn sorted(self) -> Vec<Redrawn> {
        let all = self.0.into_iter();
        let mut all: Vec<_> = all
            .map(|([function, page, cause], count)| Redrawn {
                function,
                page,
                cause,
                count,
            })
            .collect();
        all.sort_by(|one, other| {
            other.count.total_cmp(&one.count).then_with(|| {
                (&one.function, &one.page, &one.cause).cmp(&(
                    &other.function,
                    &other.page,
                    &other.cause,
                ))
            })
        });
        all
    }
}
