//! Takes what the threads of the app recorded, and adds it to the pending batch.

use unjank_protocol::{Limits, Span, Text};

use super::Worker;
use crate::clock::{Moment, whole_millis};
use crate::deliver::losses::Reason;
use crate::event::Event;
use crate::measure::client::Shared;
use crate::measure::span_record::{Meaning, Queued, SpanRecord, Waiting};
use crate::measure::users::Turn;
use crate::names::KnownNames;

impl Worker {
    pub(super) fn drain(&mut self) {
        let most = usize::try_from(self.max_batch_events()).unwrap_or(usize::MAX);
        let now = Moment::now();
        let prints_only = self.shared.config.prints_only();
        while let Some((turn, waiting)) = self.shared.pop() {
            if prints_only {
                self.print(waiting);
                continue;
            }
            let signal = waiting.signal();
            let is_held_back = self.uplink.holds_back(signal, now);
            let passed = self.budget.pass(signal, waiting.draw(now), now);
            let Some(probability) = passed.filter(|_| !is_held_back) else {
                self.shared.losses.add(signal, Reason::RateLimited, 1);
                continue;
            };
            match waiting.span() {
                Some(record) if !self.shows_events() => {
                    self.add_unseen(record, probability, (turn, now));
                }
                _ => self.add(waiting, probability, (turn, now)),
            }
            if self.pending.len() >= most {
                self.seal();
            }
        }
        self.spill.events(&self.pending);
        self.spill_stall();
    }

    /// Whether code of the app, or a view of current values, sees events.
    fn shows_events(&self) -> bool {
        let config = &self.shared.config;
        let has_readers = !config.reporters.is_empty() || !config.hooks.before_send.is_empty();
        has_readers || crate::live::is_watched()
    }

    /// Adds a span that nobody sees on the device. Most are, so its texts are not copied.
    fn add_unseen(&mut self, record: &SpanRecord, probability: f64, (turn, now): (Turn, Moment)) {
        let times = self.times(record);
        if self.shared.is_of_parent(whole_millis(times.0)) {
            return;
        }
        self.prepare(turn, now);
        let meaning = meaning(record, times, &mut self.names, &self.shared);
        let mut span = record.to_span(&meaning, Text::from);
        span.sample_rate = (span.sample_rate * probability).max(Limits::SMALLEST_RATE);
        self.pending.add_span(&span);
    }

    /// Adds an event, unless the app drops it.
    fn add(&mut self, waiting: Waiting, probability: f64, (turn, now): (Turn, Moment)) {
        let (signal, tags) = (waiting.signal(), waiting.tags());
        let mut event = self.event(waiting);
        if probability < 1.0 {
            event.was_kept_with(probability);
        }
        if matches!(&event, Event::Span(span) if self.shared.is_of_parent(span.uptime_ms)) {
            return;
        }
        if !self.lets_pass(&mut event) {
            self.shared.losses.add(signal, Reason::Filtered, 1);
            return;
        }
        crate::live::see(&event);
        self.notify(|reporter| reporter.report_tagged(&event, tags));
        self.prepare(turn, now);
        self.pending.add(event);
    }

    /// Prepares the pending batch for an event.
    fn prepare(&mut self, turn: Turn, now: Moment) {
        self.follow_user(turn);
        self.pending_since.get_or_insert(now);
    }

    /// Converts what waited to its final form.
    pub(super) fn event(&mut self, waiting: Waiting) -> Event {
        match waiting {
            Waiting::Span(record) => Event::Span(self.span(&record)),
            Waiting::Queued(Queued::Span(record)) => Event::Span(self.span(&record)),
            Waiting::Queued(Queued::Event(event)) => *event,
        }
    }

    fn span(&mut self, record: &SpanRecord) -> Span<'static> {
        let times = self.times(record);
        let meaning = meaning(record, times, &mut self.names, &self.shared);
        record.to_span(&meaning, |text| text.to_owned().into())
    }

    /// Returns when a span began and ended, as [`Moment::nanos`].
    fn times(&mut self, record: &SpanRecord) -> (i64, i64) {
        let start = self.timeline.nanos(record.start);
        (start, self.timeline.nanos(record.end))
    }
}

fn meaning<'m>(
    record: &SpanRecord,
    (start, end): (i64, i64),
    names: &'m mut KnownNames,
    shared: &'m Shared,
) -> Meaning<'m> {
    let [thread, page] = names.of(&shared.names, [record.thread, record.page]);
    Meaning {
        wall: &shared.wall,
        start,
        end,
        thread,
        page,
    }
}
