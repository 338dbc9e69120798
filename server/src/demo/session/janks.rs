//! Simulates stalls of the main thread, with their stacks.

use unjank_protocol::{Jank, JankEnd, JankKind, JankSample, JankStrategy, LogLine, Text};
use unjank_random::Dice;

use super::{Session, Visit, micros};
use crate::demo::stacks::Stack;

const LONG: JankStrategy = JankStrategy {
    threshold_ms: 2_000,
    count: 1,
    period_ms: 0,
};
const MANY: JankStrategy = JankStrategy {
    threshold_ms: 300,
    count: 5,
    period_ms: 60_000,
};
/// Probability of a stall per visit of a page, on a mid-range device.
const USUAL: f64 = 0.075;
/// Probability that inserting an order on the main thread takes long, on a mid-range device.
const BLOCKED_CHECKOUT: f64 = 0.4;

impl<'p> Session<'p> {
    pub(super) fn stall(&mut self, visit: &Visit) {
        if !self.random.chance(USUAL * self.slowness()) {
            return;
        }
        let (ios, page) = (self.install.is_ios(), visit.page.name);
        let found = self.stack(|stack| {
            let here = stack.page.is_empty() || stack.page == page;
            here && !stack.only_when_blocked && stack.ios == ios
        });
        if let Some(stack) = found {
            let at = self.moment(visit);
            let ms = stack.median_ms * self.slowness().sqrt();
            let duration_ms = self.random.log_normal(ms, 0.5).clamp(300.0, 19_000.0);
            self.push_jank(visit, stack, (at, micros(duration_ms)));
        }
    }

    /// Decides whether this order's insertion blocks the main thread for long. Returns the stack of the stall if so.
    pub(super) fn blocking_insertion(&mut self, visit: &Visit) -> Option<&'p Stack> {
        let blocked = self.blocks_checkout(visit.page);
        if !blocked || !self.random.chance(BLOCKED_CHECKOUT * self.slowness()) {
            return None;
        }
        self.stack(|stack| stack.only_when_blocked)
    }

    fn stack(&mut self, may_be: impl Fn(&Stack) -> bool) -> Option<&'p Stack> {
        let all = self.stacks;
        let stacks: Vec<_> = all.iter().filter(|stack| may_be(stack)).collect();
        let dice = Dice::new(stacks.iter().map(|stack| stack.weight));
        stacks.get(dice.roll(&mut self.random)).copied()
    }

    /// Adds a jank with this start and duration in milliseconds.
    pub(super) fn push_jank(
        &mut self,
        visit: &Visit,
        stack: &Stack,
        (at, duration_ms): (i64, i64),
    ) {
        let long = duration_ms > 2_000;
        let samples = if long { self.random.between(1, 3) } else { 0 };
        let samples = (1..=samples).filter_map(|number| {
            let offset_ms = u32::try_from(number * 500).ok()?;
            Some(JankSample {
                offset_ms,
                stack: stack.frames.clone(),
            })
        });
        let jank = Jank {
            kind: if duration_ms > 5_000 {
                JankKind::Anr
            } else {
                JankKind::Jank
            },
            page: Text::from(visit.page.name),
            start: self.time(at),
            duration_ms,
            ended: JankEnd::Finished,
            thread: Text::from("main"),
            foreground: self.random.chance(0.95),
            strategy: if long { LONG } else { MANY },
            uptime_ms: self.uptime_ms(at),
            network: self.network,
            stack: stack.frames.clone(),
            stack_missing: Text::default(),
            samples: samples.collect(),
            run_log: self.run_log(visit, at),
            sample_rate: 1.0,
        };
        self.batch.janks.push(jank);
    }

    fn run_log(&mut self, visit: &Visit, at: i64) -> Vec<LogLine<'static>> {
        let opened = LogLine {
            time: self.time(visit.at),
            message: Text::from(format!("{} opened", visit.page.name)),
        };
        let requests = visit.page.requests.iter().zip(1..);
        let answered = requests.map(|((path, ms), number)| LogLine {
            time: self.time((visit.at + micros(ms * 1_000.0) * number).min(at)),
            message: Text::from(format!("GET {path} 200")),
        });
        let mut lines: Vec<_> = std::iter::once(opened).chain(answered).collect();
        if self.blocks_checkout(visit.page) {
            lines.push(LogLine {
                time: self.time(at),
                message: Text::from("order validated, saving"),
            });
        }
        lines
    }
}
