//! Simulates stalls of the main thread, with their stacks.

use unjank_protocol::{Jank, JankKind, JankSample, JankStrategy, LogLine, Text};
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
const BLOCKED_CHECKOUT: f64 = 0.3;

impl Session<'_> {
    pub(super) fn stall(&mut self, visit: &Visit) {
        let (ios, blocked) = (self.install.is_ios(), self.blocks_checkout(visit.page));
        if blocked && self.random.chance(BLOCKED_CHECKOUT * self.slowness()) {
            self.stall_in(visit, |stack| stack.only_when_blocked);
        }
        if self.random.chance(USUAL * self.slowness()) {
            let page = visit.page.name;
            self.stall_in(visit, |stack| {
                let here = stack.page.is_empty() || stack.page == page;
                here && !stack.only_when_blocked && stack.ios == ios
            });
        }
    }

    fn stall_in(&mut self, visit: &Visit, may_be: impl Fn(&Stack) -> bool) {
        let all = self.stacks;
        let stacks: Vec<&Stack> = all.iter().filter(|stack| may_be(stack)).collect();
        let dice = Dice::new(stacks.iter().map(|stack| stack.weight));
        let Some(stack) = stacks.get(dice.roll(&mut self.random)) else {
            return;
        };
        let jank = self.jank(visit, stack);
        self.batch.janks.push(jank);
    }

    fn jank(&mut self, visit: &Visit, stack: &Stack) -> Jank<'static> {
        let at = self.moment(visit);
        let ms = stack.median_ms * self.slowness().sqrt();
        let duration_ms = micros(self.random.log_normal(ms, 0.5).clamp(300.0, 19_000.0));
        let long = duration_ms > 2_000;
        let samples = if long { self.random.between(1, 3) } else { 0 };
        let samples = (1..=samples).filter_map(|number| {
            let offset_ms = u32::try_from(number * 500).ok()?;
            Some(JankSample {
                offset_ms,
                stack: stack.frames.clone(),
            })
        });
        Jank {
            kind: if duration_ms > 5_000 {
                JankKind::Anr
            } else {
                JankKind::Jank
            },
            page: Text::from(visit.page.name),
            start: self.time(at),
            duration_ms,
            thread: Text::from("main"),
            foreground: self.random.chance(0.95),
            strategy: if long { LONG } else { MANY },
            uptime_ms: self.uptime_ms(at),
            network: self.network,
            stack: stack.frames.clone(),
            samples: samples.collect(),
            run_log: self.run_log(visit, at),
            sample_rate: 1.0,
        }
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
