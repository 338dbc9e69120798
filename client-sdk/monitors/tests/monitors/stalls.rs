//! Stalls: the two strategies of Hertz with numbers, then arbitrary messages and checks compared with a simple model.

use proptest::prelude::*;
use unjank_monitors::{FinishedStall, LoopClock, Samples, Scene, StallWatch, Uptime};
use unjank_protocol::config::{JankOverride, Janks};
use unjank_protocol::{JankKind, JankStrategy};

fn at(millis: u64) -> Uptime {
    Uptime::from_millis(millis)
}

fn watch(config: &Janks) -> StallWatch {
    StallWatch::new(config, Samples::default(), Scene::new("Feed"))
}

fn strategy(threshold_ms: u32, count: u32, period_ms: u32) -> JankStrategy {
    JankStrategy {
        threshold_ms,
        count,
        period_ms,
    }
}

/// Runs a message and checks it every 10 ms. Returns the offsets of the stacks that were due, and the stall.
fn run(watch: &mut StallWatch, began: u64, took: u64) -> (Vec<u32>, Option<FinishedStall>) {
    let looks = (began..began + took).step_by(10);
    let due = looks.filter_map(|now| watch.due(at(began), at(now)));
    let offsets = due.map(|capture| capture.offset_ms).collect();
    (offsets, watch.finished(at(began), at(began + took)))
}

#[test]
fn one_long_stall_is_caught_while_it_lasts() {
    let mut watch = watch(&Janks::default());
    let (offsets, stall) = run(&mut watch, 10_000, 2_300);
    assert_eq!(offsets, [2_000, 2_100, 2_200]);
    let stall = stall.unwrap();
    assert_eq!(stall.requested, 3);
    assert_eq!(stall.jank.kind, JankKind::Jank);
    assert_eq!(stall.jank.strategy, strategy(2_000, 1, 0));
    assert_eq!(
        (stall.jank.duration_ms, stall.jank.uptime_ms),
        (2_300, 10_000)
    );
    assert!(stall.jank.foreground && stall.jank.page.as_str() == "Feed");
}

#[test]
fn the_first_override_of_the_page_and_the_phase_replaces_the_strategies() {
    let of = |page: &str, phase: &str, threshold_ms: Option<u32>| JankOverride {
        page: page.to_owned(),
        phase: phase.to_owned(),
        strategies: threshold_ms
            .map(|ms| strategy(ms, 1, 0))
            .into_iter()
            .collect(),
    };
    let mut watch = watch(&Janks {
        start_ms: 5_000,
        overrides: vec![
            of("Map", "later", None),
            of("Check*", "", Some(200)),
            of("Feed", "unknown", Some(16)),
            of("", "start", Some(1_000)),
        ],
        strategies: vec![strategy(400, 1, 0)],
        ..Janks::default()
    });
    let mut threshold = |page: &str, began: u64| {
        watch.set_scene(Scene::new(page));
        let (_, stall) = run(&mut watch, began, 1_500);
        stall.map(|stall| stall.jank.strategy.threshold_ms)
    };
    // A message belongs to the phase in which it begins.
    assert_eq!(threshold("Feed", 3_000), Some(1_000));
    assert_eq!(threshold("Feed", 4_999), Some(1_000));
    assert_eq!(threshold("Feed", 6_500), Some(400));
    assert_eq!(threshold("Checkout", 10_000), Some(200));
    assert_eq!(threshold("Map", 20_000), None);
    // Messages may be of any page, so the shortest of all thresholds decides what the clock hands over.
    assert_eq!(watch.shortest_us(), 200_000);
}

#[test]
fn a_strategy_of_an_override_keeps_its_counts_over_a_change_of_the_settings() {
    let mut config = Janks {
        overrides: vec![JankOverride {
            strategies: vec![strategy(300, 2, 60_000)],
            ..JankOverride::default()
        }],
        ..Janks::default()
    };
    let mut watch = watch(&config);
    assert!(run(&mut watch, 20_000, 400).1.is_none());
    config.anr_ms = 6_000;
    watch.set_config(&config);
    assert!(run(&mut watch, 30_000, 400).1.is_some());
}

#[test]
fn a_stall_without_a_stack_says_why() {
    let missing = |stall: Option<FinishedStall>| stall.unwrap().jank.stack_missing;
    let limited = |max_stacks_per_session| Janks {
        max_stacks_per_session,
        ..Janks::default()
    };
    let mut one = watch(&limited(1));
    let (offsets, stall) = run(&mut one, 0, 2_300);
    assert_eq!((offsets.len(), &*missing(stall)), (1, ""));
    let (offsets, stall) = run(&mut one, 10_000, 2_300);
    let used_up = "the stacks of this session were used up: jank.max_stacks_per_session is 1";
    assert_eq!((offsets.len(), &*missing(stall)), (0, used_up));
    let (_, stall) = run(&mut watch(&limited(0)), 0, 2_300);
    let off = "stacks are switched off: jank.max_stacks_per_session is 0";
    assert_eq!(&*missing(stall), off);
    let late = watch(&limited(1)).finished(at(0), at(2_300));
    assert_eq!(&*missing(late), "the stall was noticed only after its end");
}

#[test]
fn the_fifth_short_stall_in_a_minute_is_caught_and_none_after_it() {
    let mut watch = watch(&Janks::default());
    for number in 0..4 {
        let (offsets, stall) = run(&mut watch, number * 1_000, 350);
        assert_eq!((offsets, stall), (vec![], None), "message {number}");
    }
    let (offsets, stall) = run(&mut watch, 4_000, 350);
    assert_eq!(offsets, [300]);
    assert_eq!(stall.unwrap().jank.strategy, strategy(300, 5, 60_000));
    for number in 5..63 {
        let (offsets, stall) = run(&mut watch, number * 1_000, 350);
        assert_eq!(
            (offsets, stall),
            (vec![], None),
            "more than one stall in a period"
        );
    }
    // The period is over at 64 s, and counting starts again.
    let caught: Vec<_> = (64..80)
        .filter(|number| run(&mut watch, number * 1_000, 350).1.is_some())
        .collect();
    assert_eq!(caught, [68]);
}

#[test]
fn five_short_stalls_over_more_than_a_minute_do_not_count() {
    let mut watch = watch(&Janks::default());
    for number in 0..40 {
        assert_eq!(run(&mut watch, number * 15_000, 350).1, None);
    }
}

#[test]
fn a_stall_for_which_both_strategies_fire_is_one_event_with_the_higher_threshold() {
    let mut watch = watch(&Janks::default());
    for number in 0..4 {
        run(&mut watch, number * 1_000, 350);
    }
    let (offsets, stall) = run(&mut watch, 4_000, 2_500);
    assert_eq!(offsets, [300, 400, 500, 600, 700, 800, 900, 1_000]);
    assert_eq!(stall.unwrap().jank.strategy, strategy(2_000, 1, 0));
}

#[test]
fn five_seconds_are_an_anr_whatever_strategies_are_set() {
    let (_, stall) = run(&mut watch(&Janks::default()), 0, 5_000);
    let jank = stall.unwrap().jank;
    assert_eq!(
        (jank.kind, jank.strategy),
        (JankKind::Anr, strategy(2_000, 1, 0))
    );

    let none = Janks {
        strategies: vec![],
        ..Janks::default()
    };
    let mut watch = watch(&none);
    assert_eq!(run(&mut watch, 0, 4_990), (vec![], None));
    let (offsets, stall) = run(&mut watch, 10_000, 5_050);
    assert_eq!(offsets, [5_000]);
    assert_eq!(stall.unwrap().jank.strategy, strategy(5_000, 1, 0));
}

#[test]
fn a_stall_detected_too_late_has_no_stack() {
    let mut watch = watch(&Janks::default());
    let stall = watch.finished(at(0), at(2_100)).unwrap();
    assert_eq!(stall.requested, 0);
    for now in [2_200, 9_000] {
        assert_eq!(watch.due(at(0), at(now)), None, "the message is over");
    }
    assert_eq!(watch.finished(at(0), at(2_100)), None, "reported twice");
}

#[test]
fn further_stacks_leave_half_of_the_sessions_stacks_to_first_ones() {
    let config = Janks {
        max_stacks_per_session: 10,
        ..Janks::default()
    };
    let mut watch = watch(&config);
    let stacks = |watch: &mut StallWatch| -> Vec<_> {
        let stalls = 0..12;
        stalls
            .map(|number| run(watch, number * 10_000, 2_450).0.len())
            .collect()
    };
    assert_eq!(stacks(&mut watch), [5, 2, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]);
    watch.new_session();
    let (offsets, _) = run(&mut watch, 200_000, 2_450);
    assert_eq!(offsets.len(), 5);
}

#[test]
fn a_stall_in_progress_can_be_saved() {
    let mut watch = watch(&Janks::default());
    assert_eq!(watch.so_far(at(0)), None);
    assert!(watch.due(at(0), at(6_000)).is_some());
    let so_far = watch.so_far(at(6_000)).unwrap();
    assert_eq!(
        (so_far.jank.kind, so_far.jank.duration_ms),
        (JankKind::Anr, 6_000)
    );
    assert!(
        watch.finished(at(0), at(7_000)).is_some(),
        "the stall should still end"
    );
}

#[test]
fn the_watchdog_sleeps_until_something_may_happen() {
    let mut watch = watch(&Janks::default());
    assert_eq!(watch.look_again_in_us(None, at(0)), 300_000);
    assert_eq!(watch.look_again_in_us(Some(at(0)), at(100)), 200_000);
    assert_eq!(watch.look_again_in_us(Some(at(0)), at(1_900)), 100_000);
    assert!(watch.due(at(0), at(2_000)).is_some());
    assert_eq!(watch.look_again_in_us(Some(at(0)), at(2_040)), 60_000);
}

#[test]
fn settings_change_during_a_stall() {
    let clock = LoopClock::default();
    let mut watch = watch(&Janks::default());
    watch.watch(&clock, at(0));
    clock.begin(at(1_000));
    assert!(watch.watch(&clock, at(3_100)).capture.is_some());
    let rare = Janks {
        strategies: vec![strategy(30_000, 1, 0)],
        ..Janks::default()
    };
    watch.set_config(&rare);
    assert_eq!(
        watch.watch(&clock, at(3_150)).capture,
        None,
        "less than 100 ms apart"
    );
    clock.end(at(3_300));
    let finished = watch.watch(&clock, at(3_400)).finished;
    assert_eq!(
        finished.len(),
        1,
        "a stall detected earlier should be reported"
    );
    assert_eq!(watch.shortest_us(), 5_000_000);
}

/// Returns which messages are stalls by the definition, as (start, highest threshold that fired).
fn model(config: &Janks, messages: &[(u64, u64)]) -> Vec<(u64, u32)> {
    let mut stalls = Vec::new();
    let mut counted: Vec<Vec<u64>> = vec![Vec::new(); config.strategies.len()];
    let mut caught: Vec<Option<u64>> = vec![None; config.strategies.len()];
    for (start, took) in messages {
        let mut held = None;
        for (index, rule) in config.strategies.iter().enumerate() {
            let period = u64::from(rule.period_ms);
            let quiet = caught[index].is_some_and(|before| *start < before + period);
            if *took < u64::from(rule.threshold_ms) || quiet {
                continue;
            }
            counted[index].push(*start);
            let since = |one: &&u64| *start == **one || start - **one < period;
            if counted[index].iter().filter(since).count() >= rule.count as usize {
                counted[index].clear();
                caught[index] = Some(*start);
                held = held.max(Some(rule.threshold_ms));
            }
        }
        if held.is_none() && *took >= u64::from(config.anr_ms) {
            held = Some(config.anr_ms);
        }
        stalls.extend(held.map(|threshold| (*start, threshold)));
    }
    stalls
}

fn some_config() -> impl Strategy<Value = Janks> {
    let rule = (16_u32..800, 1_u32..6, 0_u32..8_000);
    let rules = prop::collection::vec(rule, 0..4);
    (rules, 1_000_u32..3_000, 0_u32..12).prop_map(|(rules, anr_ms, max_stacks_per_session)| Janks {
        strategies: rules
            .into_iter()
            .map(|(t, n, p)| strategy(t, n, p))
            .collect(),
        anr_ms,
        max_stacks_per_session,
        ..Janks::default()
    })
}

proptest! {
    #[test]
    fn stalls_match_the_definition_whenever_the_watchdog_checks(
        config in some_config(),
        messages in prop::collection::vec((1_u64..500, prop_oneof![3 => 0_u64..900, 1 => 0_u64..4_000]), 1..60),
        pauses in prop::collection::vec(1_u64..700, 1..20),
    ) {
        let mut now = 0;
        let messages: Vec<_> = messages.into_iter().map(|(gap, took)| {
            let start = now + gap;
            now = start + took;
            (start, took)
        }).collect();
        let clock = LoopClock::default();
        let mut watch = watch(&config);
        watch.watch(&clock, at(0));
        let mut pauses = pauses.iter().cycle();
        let mut next_look = *pauses.next().unwrap();
        let (mut stalls, mut captures) = (Vec::new(), Vec::new());
        for (start, took) in &messages {
            clock.begin(at(*start));
            while next_look < start + took {
                let watched = watch.watch(&clock, at(next_look.max(*start)));
                stalls.extend(watched.finished);
                captures.extend(watched.capture);
                next_look += pauses.next().unwrap();
            }
            clock.end(at(start + took));
            // Avoid checks so rare that the ring overflows, which another test covers.
            if next_look > start + 3_000 {
                stalls.extend(watch.watch(&clock, at(start + took)).finished);
            }
        }
        stalls.extend(watch.watch(&clock, at(now)).finished);
        prop_assert_eq!(clock.take_lost(), 0);

        let seen: Vec<_> = stalls.iter().map(|stall| (stall.began.as_millis(), stall.jank.strategy.threshold_ms)).collect();
        prop_assert_eq!(seen, model(&config, &messages));
        prop_assert!(captures.len() <= config.max_stacks_per_session as usize);
        for capture in &captures {
            let (start, took) = messages.iter().find(|(start, _)| at(*start) == capture.began).unwrap();
            prop_assert!(u64::from(capture.offset_ms) <= *took, "after message {} has ended", start);
            prop_assert!(stalls.iter().any(|stall| stall.began == capture.began), "a stack of an unreported message");
        }
        for stall in &stalls {
            let taken = captures.iter().filter(|capture| capture.began == stall.began).count();
            prop_assert_eq!(taken, stall.requested as usize);
            prop_assert!(taken <= 8);
        }
    }
}
