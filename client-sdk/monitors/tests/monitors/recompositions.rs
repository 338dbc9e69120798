//! Redraws of UI functions.

use proptest::prelude::*;
use unjank_monitors::{Recompositions, Scene, Uptime};

fn at(millis: u64) -> Uptime {
    Uptime::from_millis(millis)
}

#[test]
fn causes_are_counted_separately_and_a_new_page_ends_the_window() {
    let mut redraws = Recompositions::new(10_000, Scene::new("Cart"));
    for (function, cause, time) in [
        ("List", "items", 100),
        ("List", "scroll", 200),
        ("Row", "items", 300),
        ("List", "items", 400),
    ] {
        assert!(redraws.redrawn(function, cause, at(time)).is_empty());
    }
    let events = redraws.set_scene(at(2_100), Scene::new("Feed"));
    let seen: Vec<_> = events
        .iter()
        .map(|event| (&*event.function, &*event.cause, event.count))
        .collect();
    assert_eq!(
        seen,
        [
            ("List", "items", 2),
            ("List", "scroll", 1),
            ("Row", "items", 1)
        ]
    );
    assert!(
        events
            .iter()
            .all(|event| (&*event.page, event.window_ms, event.uptime_ms) == ("Cart", 2_000, 100))
    );
    assert!(redraws.redrawn("List", "items", at(3_000)).is_empty());
    assert!(redraws.poll(at(12_999)).is_empty());
    assert_eq!(
        redraws.redrawn("List", "items", at(50_000))[0].window_ms,
        10_000
    );
}

#[test]
fn the_257th_pair_is_counted_as_dropped() {
    let mut redraws = Recompositions::new(10_000, Scene::default());
    for number in 0..300 {
        assert!(
            redraws
                .redrawn("List", &number.to_string(), at(0))
                .is_empty()
        );
    }
    assert_eq!(
        (redraws.flush(at(1)).len(), redraws.take_dropped()),
        (256, 44)
    );
}

proptest! {
    #[test]
    fn every_redraw_is_in_one_event(steps in prop::collection::vec((0_u8..4, 0_u8..4, 0_u64..900), 0..200)) {
        let mut redraws = Recompositions::new(1_000, Scene::default());
        let mut now = 0;
        let mut events = Vec::new();
        for (function, cause, pause) in &steps {
            now += pause;
            events.extend(redraws.redrawn(&function.to_string(), &cause.to_string(), at(now)));
        }
        events.extend(redraws.flush(at(now)));
        prop_assert_eq!(events.iter().map(|event| event.count as usize).sum::<usize>(), steps.len());
        prop_assert!(events.iter().all(|event| event.window_ms <= 1_000));
    }
}
