//! `janks`: blocked main loops; and the rows of `stacks` and `stack_classes` for their stacks.
//!
//! Many janks share few stacks: a jank row has the hash of its stack, and each distinct stack is stored once, with its class.
//! A change of the rules rewrites classes, never janks.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use unjank_protocol::{Frame, Jank, Signal};
use unjank_stacks::{Class, RulesId, needs_symbols, stack_hash};

use super::Context;
use super::rows::{Columns, Envelope};
use super::text_filter::TextFilter;
use crate::ingest::event_checks::{Checks, Event, Place};
use crate::ingest::reject::Reject;
use crate::recent::{Dimension, StackKey};
use crate::records::{FrameBuilder, Kind, RecordBuilder};

/// The time that slow rules may take to classify the stacks of one batch. The reclassifier classifies the remaining stacks later.
const LONGEST: Duration = Duration::from_millis(500);

impl Event for Jank<'_> {
    const SIGNAL: Signal = Signal::Janks;

    fn check(&mut self, checks: &Checks<'_>) -> Result<(), Reject> {
        checks.clock.time(&mut self.start)?;
        checks.duration_ms("duration_ms", self.duration_ms)?;
        checks.number("uptime_ms", self.uptime_ms)?;
        checks.sample_rate(self.sample_rate)?;
        checks.text(&mut self.page);
        checks.text(&mut self.thread);
        checks.text(&mut self.stack_missing);
        check_stack(checks, &mut self.stack, || "stack".to_owned())?;
        checks.list(&mut self.samples);
        for (place, sample) in self.samples.iter_mut().enumerate() {
            check_stack(checks, &mut sample.stack, || {
                format!("samples[{place}].stack")
            })?;
        }
        checks.latest(&mut self.run_log);
        for line in &mut self.run_log {
            checks.clock.inner_time(&mut line.time);
            checks.text(&mut line.message);
        }
        Ok(())
    }

    fn filter_texts(&mut self, filter: &mut TextFilter<'_>) {
        filter.name(Dimension::Page, &mut self.page);
        filter.text(&mut self.thread);
        filter.text(&mut self.stack_missing);
        for line in &mut self.run_log {
            filter.text(&mut line.message);
        }
    }

    fn lists_bytes(&self) -> usize {
        let samples = self.samples.iter();
        size_of_val(&*self.stack)
            + size_of_val(&*self.samples)
            + size_of_val(&*self.run_log)
            + samples
                .map(|sample| size_of_val(&*sample.stack))
                .sum::<usize>()
    }

    fn place(&self) -> Option<Place<'_>> {
        Some(Place::at(self.start))
    }

    fn columns(janks: &[&Self], envelope: &Envelope<'_>, frame: &mut FrameBuilder) {
        frame.same(
            Kind::U16,
            "refresh_hz",
            envelope.resource.refresh_hz.to_le_bytes(),
        );
        frame.symbols("page", janks.iter().map(|jank| jank.page.as_str()));
        frame.networks(janks.iter().map(|jank| jank.network));
        frame.u64s("uptime_ms", janks.iter().map(|jank| jank.uptime_ms));
        frame.symbols("kind", janks.iter().map(|jank| jank.kind.as_str()));
        frame.times("start", janks.iter().map(|jank| jank.start));
        frame.millis("duration_ms", janks.iter().map(|jank| jank.duration_ms));
        frame.symbols("ended", janks.iter().map(|jank| jank.ended.as_str()));
        frame.symbols("thread", janks.iter().map(|jank| jank.thread.as_str()));
        frame.flags("foreground", janks.iter().map(|jank| jank.foreground));
        frame.u32s(
            "strategy_threshold_ms",
            janks.iter().map(|jank| jank.strategy.threshold_ms),
        );
        frame.u32s(
            "strategy_count",
            janks.iter().map(|jank| jank.strategy.count),
        );
        frame.u32s(
            "strategy_period_ms",
            janks.iter().map(|jank| jank.strategy.period_ms),
        );
        frame.u64s(
            "stack_hash",
            janks.iter().map(|jank| stack_hash(&jank.stack)),
        );
        frame.strings(
            "stack_missing",
            janks.iter().map(|jank| jank.stack_missing.as_str()),
        );
        let counts = || janks.iter().map(|jank| jank.samples.len());
        let samples = || janks.iter().flat_map(|jank| &jank.samples);
        frame.lists(Kind::U32List, "samples.offset_ms", counts(), |inner| {
            inner.fixed(samples().map(|sample| sample.offset_ms.to_le_bytes()));
        });
        frame.lists(Kind::U64List, "samples.stack_hash", counts(), |inner| {
            inner.fixed(samples().map(|sample| stack_hash(&sample.stack).to_le_bytes()));
        });
        let counts = || janks.iter().map(|jank| jank.run_log.len());
        let lines = || janks.iter().flat_map(|jank| &jank.run_log);
        frame.lists(Kind::MicrosList, "run_log.time", counts(), |inner| {
            inner.fixed(lines().map(|line| line.time.as_micros().to_le_bytes()));
        });
        frame.lists(Kind::StrList, "run_log.message", counts(), |inner| {
            inner.strings(lines().map(|line| line.message.as_str()));
        });
        frame.f64s("sample_rate", janks.iter().map(|jank| jank.sample_rate));
    }
}

/// `path` returns the path of the stack in the event.
fn check_stack(
    checks: &Checks<'_>,
    stack: &mut Vec<Frame<'_>>,
    path: impl Fn() -> String,
) -> Result<(), Reject> {
    checks.frames(stack);
    for (place, frame) in stack.iter_mut().enumerate() {
        if let Some(index) = frame.module_index {
            return Err(Reject::new(
                "unknown_module",
                format!(
                    "`{}[{place}].module_index` is {index}, but the batch has no such entry in `modules`",
                    path()
                ),
            ));
        }
        checks.text(&mut frame.class);
        checks.text(&mut frame.module);
        checks.text(&mut frame.function);
        checks.text(&mut frame.file);
        checks.text(&mut frame.build_id);
    }
    Ok(())
}

/// A distinct stack of the batch that this process has not stored.
struct NewStack<'j> {
    hash: u64,
    frames: &'j [Frame<'j>],
    /// `None` when no time was left.
    class: Option<Class>,
}

/// The hash of a stack, or `None` if this process has stored the stack.
pub(super) fn new_stack(frames: &[Frame<'_>], context: &Context<'_>) -> Option<u64> {
    let hash = stack_hash(frames);
    let key = context.stack_key(hash);
    (!context.recent_stacks.contains(key)).then_some(hash)
}

/// All stacks of a jank.
pub(super) fn stacks<'j>(jank: &'j Jank<'j>) -> impl Iterator<Item = &'j Vec<Frame<'j>>> {
    let samples = jank.samples.iter().map(|sample| &sample.stack);
    let all = std::iter::once(&jank.stack).chain(samples);
    all.filter(|frames| !frames.is_empty())
}

/// All stacks of a jank, mutable.
pub(super) fn stacks_mut<'j, 'a>(
    jank: &'j mut Jank<'a>,
) -> impl Iterator<Item = &'j mut Vec<Frame<'a>>> {
    let samples = jank.samples.iter_mut().map(|sample| &mut sample.stack);
    let all = std::iter::once(&mut jank.stack).chain(samples);
    all.filter(|frames| !frames.is_empty())
}

/// The new stacks of a record.
#[derive(Default)]
pub(super) struct NewStacks {
    /// To remember once the record is durable.
    pub(super) keys: Vec<StackKey>,
    /// The number of stacks for which slow rules had no time.
    pub(super) unclassified: usize,
    /// The hashes of stacks that wait for symbolication.
    pub(super) waiting: Vec<u64>,
}

impl NewStacks {
    pub(super) fn extend(&mut self, more: Self) {
        self.keys.extend(more.keys);
        self.unclassified += more.unclassified;
        self.waiting.extend(more.waiting);
    }
}

/// Writes the rows of new stacks and of their classes.
pub(super) fn stack_rows<'j>(
    record: &mut RecordBuilder,
    envelope: &Envelope<'_>,
    all: impl Iterator<Item = &'j [Frame<'j>]>,
    context: &Context<'_>,
) -> NewStacks {
    let rules = context.rules.id();
    let mut keys = HashSet::new();
    let (mut stacks, mut waiting) = (Vec::new(), Vec::new());
    let end = Instant::now() + LONGEST;
    for frames in all {
        let hash = stack_hash(frames);
        let key = context.stack_key(hash);
        if !context.recent_stacks.contains(key) && keys.insert(key) {
            // Symbols change the frames, and with them the class: such a stack is classified after symbolication.
            let class = if needs_symbols(frames) {
                waiting.push(hash);
                None
            } else {
                context.rules.rules().classify_until(frames, end)
            };
            stacks.push(NewStack {
                hash,
                frames,
                class,
            });
        }
    }
    let classes: Vec<(u64, &Class)> = stacks
        .iter()
        .filter_map(|stack| Some((stack.hash, stack.class.as_ref()?)))
        .collect();
    if !stacks.is_empty() {
        record.frame(frames_of(envelope, &stacks));
    }
    if !classes.is_empty() {
        record.frame(classes_of(envelope, rules, &classes));
    }
    NewStacks {
        keys: keys.into_iter().collect(),
        unclassified: stacks.len() - classes.len() - waiting.len(),
        waiting,
    }
}

fn frames_of(envelope: &Envelope<'_>, stacks: &[NewStack<'_>]) -> FrameBuilder {
    let mut rows = FrameBuilder::new("stacks", stacks.len());
    rows.same_text(Kind::Sym, "project", envelope.project);
    rows.u64s("stack_hash", stacks.iter().map(|stack| stack.hash));
    rows.same(
        Kind::Micros,
        "received_at",
        envelope.received_at.to_le_bytes(),
    );
    let counts = || stacks.iter().map(|stack| stack.frames.len());
    let frames = || stacks.iter().flat_map(|stack| stack.frames);
    rows.lists(Kind::SymList, "frames.class", counts(), |inner| {
        inner.symbols(frames().map(|frame| &*frame.class));
    });
    rows.lists(Kind::SymList, "frames.module", counts(), |inner| {
        inner.symbols(frames().map(|frame| &*frame.module));
    });
    rows.lists(Kind::SymList, "frames.function", counts(), |inner| {
        inner.symbols(frames().map(|frame| &*frame.function));
    });
    rows.lists(Kind::SymList, "frames.file", counts(), |inner| {
        inner.symbols(frames().map(|frame| &*frame.file));
    });
    rows.lists(Kind::SymList, "frames.build_id", counts(), |inner| {
        inner.symbols(frames().map(|frame| &*frame.build_id));
    });
    rows.lists(Kind::U32List, "frames.line", counts(), |inner| {
        inner.fixed(
            frames().map(|frame| u32::try_from(frame.line).unwrap_or_default().to_le_bytes()),
        );
    });
    rows.lists(Kind::U32List, "frames.column", counts(), |inner| {
        inner.fixed(frames().map(|frame| frame.column.to_le_bytes()));
    });
    rows.lists(Kind::U64List, "frames.offset", counts(), |inner| {
        inner.fixed(frames().map(|frame| frame.offset.unwrap_or_default().to_le_bytes()));
    });
    rows
}

fn classes_of(envelope: &Envelope<'_>, rules: RulesId, classes: &[(u64, &Class)]) -> FrameBuilder {
    let mut rows = FrameBuilder::new("stack_classes", classes.len());
    rows.same_text(Kind::Sym, "project", envelope.project);
    rows.same(Kind::U32, "rules_version", rules.revision.to_le_bytes());
    rows.same(Kind::U64, "rules_hash", rules.hash.to_le_bytes());
    rows.u64s("stack_hash", classes.iter().map(|(hash, _)| *hash));
    rows.u64s("group_id", classes.iter().map(|(_, class)| class.group_id));
    rows.symbols(
        "category",
        classes.iter().map(|(_, class)| class.category.as_str()),
    );
    rows.strings(
        "culprit",
        classes.iter().map(|(_, class)| class.culprit.as_str()),
    );
    rows.symbols(
        "owner",
        classes.iter().map(|(_, class)| class.owner.as_str()),
    );
    rows.strings(
        "title",
        classes.iter().map(|(_, class)| class.title.as_str()),
    );
    rows.flags(
        "not_a_cause",
        classes.iter().map(|(_, class)| class.not_a_cause),
    );
    rows.same(
        Kind::Micros,
        "classified_at",
        envelope.received_at.to_le_bytes(),
    );
    rows
}
