//! Janks: the main thread is in system code, called from functions of the app, called from the looper.

use unjank_protocol::{Frame, Jank, JankEnd, JankKind, JankSample, JankStrategy, LogLine, Text};
use unjank_random::Random;

use super::{Scene, micros};
use crate::vocabulary::{LOOPER, SYSTEM_STACKS};

pub(super) fn some<'a>(scene: &Scene<'a>, count: usize, random: &mut Random) -> Vec<Jank<'a>> {
    (0..count).map(|_| one(scene, random)).collect()
}

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

fn one<'a>(scene: &Scene<'a>, random: &mut Random) -> Jank<'a> {
    let begin = scene.moment(random);
    let long = random.chance(0.3);
    let duration_ms = if long {
        2_000 + random.long_tail(900.0 * scene.device.slowness(), 0.9, 60_000)
    } else {
        300 + random.long_tail(120.0 * scene.device.slowness(), 0.7, 1_600)
    };
    let samples = if long { random.between(0, 3) } else { 0 };
    Jank {
        kind: if duration_ms > 5_000 {
            JankKind::Anr
        } else {
            JankKind::Jank
        },
        page: Text::from(scene.vocabulary.page(random).name.as_str()),
        start: begin.time.shifted(-micros(duration_ms * 1_000)),
        duration_ms: micros(duration_ms),
        ended: JankEnd::Finished,
        thread: Text::from("main"),
        foreground: random.chance(0.93),
        strategy: if long { LONG } else { MANY },
        uptime_ms: begin.uptime_ms,
        network: scene.device.network,
        stack: stack(scene, random),
        stack_missing: Text::default(),
        samples: (0..samples)
            .map(|at| JankSample {
                offset_ms: u32::try_from(500 * (at + 1)).unwrap_or_default(),
                stack: stack(scene, random),
            })
            .collect(),
        run_log: run_log(scene, random),
        sample_rate: 1.0,
    }
}

fn stack<'a>(scene: &Scene<'a>, random: &mut Random) -> Vec<Frame<'a>> {
    let system = |(class, function, line): &(&'static str, &'static str, i64)| Frame {
        class: Text::from(*class),
        function: Text::from(*function),
        line: *line,
        native: *line == -2,
        ..Frame::default()
    };
    // An idle looper is a sample that was taken after the stall, so its stack contains no function of the app.
    let innermost = random.pick(SYSTEM_STACKS);
    let idle = innermost
        .first()
        .is_some_and(|frame| frame.1 == "nativePollOnce");
    let own = if idle { 0 } else { random.between(1, 5) };
    let mut frames: Vec<Frame<'a>> = innermost.iter().map(system).collect();
    frames.extend((0..own).map(|_| {
        let function = scene.vocabulary.function(random);
        Frame {
            class: Text::from(function.class.as_str()),
            function: Text::from(function.function.as_str()),
            file: Text::from(function.file.as_str()),
            line: i64::from(function.line),
            ..Frame::default()
        }
    }));
    let outer = if idle {
        LOOPER.get(5..).unwrap_or_default()
    } else {
        LOOPER
    };
    frames.extend(outer.iter().map(system));
    frames
}

fn run_log<'a>(scene: &Scene<'a>, random: &mut Random) -> Vec<LogLine<'a>> {
    if !random.chance(0.5) {
        return Vec::new();
    }
    (0..random.between(1, 6))
        .map(|_| LogLine {
            time: scene.moment(random).time,
            message: Text::from(scene.vocabulary.page(random).name.as_str()),
        })
        .collect()
}
