//! Evaluations of alert rules: no server overwrites an evaluation that it has not seen.

use futures_util::future::join_all;
use unjank_database::{AlertRule, Evaluated, JsonText, RuleText};

use super::place::Place;
use super::{ANN, at, on_both_engines, with_project};

on_both_engines![
    one_of_several_evaluations_with_the_same_start_is_saved,
    an_evaluation_that_began_before_the_latest_is_discarded,
];

async fn rule(place: &Place) -> AlertRule {
    with_project(&place.control, "shop").await;
    let text = RuleText {
        document: JsonText::new(&serde_json::json!({})),
        name: "a rule".to_owned(),
        enabled: true,
        ends: None,
    };
    let rule = place.control.create_alert_rule("shop", text, &ANN, at(1));
    rule.await.unwrap()
}

async fn one_of_several_evaluations_with_the_same_start_is_saved(place: Place) {
    let rule = rule(&place).await;
    let handles = [place.control.clone(), place.another().await];
    let mut before = None;
    for n in 2..6 {
        let evaluations = (0..8_usize).map(|server| {
            let done = Evaluated::new((rule.id, rule.revision), before, at(n));
            handles[server % 2].save_evaluation(done)
        });
        let kept = join_all(evaluations).await;
        let kept = kept.into_iter().filter(|kept| *kept == Ok(true)).count();
        assert_eq!(kept, 1, "evaluation {n}");
        before = Some(at(n));
    }
}

async fn an_evaluation_that_began_before_the_latest_is_discarded(place: Place) {
    let rule = rule(&place).await;
    let keep = |before, now| {
        let done = Evaluated::new((rule.id, rule.revision), before, now);
        place.control.save_evaluation(done)
    };
    assert!(keep(None, at(2)).await.unwrap());
    assert!(keep(Some(at(2)), at(100)).await.unwrap());
    // This evaluation began from outdated states, whatever its clock shows.
    assert!(!keep(Some(at(2)), at(3)).await.unwrap());
    assert!(!keep(Some(at(2)), at(200)).await.unwrap());
    assert!(keep(Some(at(100)), at(101)).await.unwrap());
}
