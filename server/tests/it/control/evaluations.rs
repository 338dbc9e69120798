//! Evaluations of alert rules: no server overwrites an evaluation that it has not seen.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use serde_json::json;
use unjank_database::{
    AlertRule, AlertState, Evaluated, GroupMove, GroupState, Incident, IncidentKind, IncidentState,
    JsonText, NewMute, RuleText, Severity, new_id,
};
use uuid::Uuid;

use super::place::Place;
use super::{ANN, at, on_both_engines, with_project};

on_both_engines![
    one_of_several_evaluations_with_the_same_start_is_saved,
    an_evaluation_that_began_before_the_latest_is_discarded,
    a_discarded_evaluation_moves_no_group,
];

async fn rule(place: &Place) -> AlertRule {
    with_project(&place.control, "shop").await;
    let text = RuleText {
        document: JsonText::new(&json!({})),
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

fn key(group: &str) -> JsonText {
    JsonText::new(&json!({ "group_id": group }))
}

fn incident(rule: &AlertRule, group: &str) -> Incident {
    Incident {
        id: new_id(at(2)),
        project: "shop".to_owned(),
        rule: rule.id,
        group_key: key(group),
        kind: IncidentKind::Alert,
        title: "Stalls".to_owned(),
        severity: Severity::Critical,
        owner: String::new(),
        labels: BTreeMap::from([("group_id".to_owned(), group.to_owned())]),
        summary: String::new(),
        link: String::new(),
        evidence: JsonText::new(&json!({})),
        state: IncidentState::Firing,
        started_at: at(2),
        resolved_at: None,
        resolved_because: None,
        acknowledged_at: None,
        acknowledged_by: None,
        assignee: None,
        action: None,
    }
}

/// The move of group 1, as a server found it.
fn moved(rule: &AlertRule, incident: Uuid, to: &str) -> GroupMove {
    GroupMove {
        rule: rule.id,
        from: key("1"),
        to: key(to),
        incident: Some(incident),
        group: BTreeMap::from([("group_id".to_owned(), to.to_owned())]),
    }
}

async fn a_discarded_evaluation_moves_no_group(place: Place) {
    let (control, rule) = (&place.control, rule(&place).await);
    let opened = incident(&rule, "1");
    let id = opened.id;
    let mut first = Evaluated::new((rule.id, rule.revision), None, at(2));
    first.states.push(AlertState {
        group_key: key("1"),
        state: GroupState::Firing,
        since: at(2),
        seen_at: at(2),
        base: None,
        incident: Some(id),
    });
    first.opened.push(opened);
    assert!(control.save_evaluation(first).await.unwrap());
    let mute = NewMute {
        project: "shop".to_owned(),
        rule: Some(rule.id),
        group_key: Some(key("1")),
        starts_at: at(2),
        ends_at: at(100),
        reason: "planned".to_owned(),
    };
    control.create_mute(mute, &ANN, at(2)).await.unwrap();
    // Of two servers that began from the same state, the one with the later answer saves first.
    for (to, n, is_saved) in [("3", 3, true), ("2", 4, false)] {
        let mut done = Evaluated::new((rule.id, rule.revision), Some(at(2)), at(n));
        done.moved.push(moved(&rule, id, to));
        assert_eq!(control.save_evaluation(done).await, Ok(is_saved));
        let known = control.incident("shop", id).await.unwrap();
        assert_eq!(
            (&known.group_key, &*known.labels["group_id"]),
            (&key("3"), "3")
        );
        let states = control.alert_states(rule.id).await.unwrap();
        assert_eq!((states.len(), &states[0].group_key), (1, &key("3")));
        let mutes = control.mutes("shop", at(5)).await.unwrap();
        assert_eq!(mutes[0].group_key, Some(key("3")));
    }
}
