//! The runs of an erasure.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use unjank_database::{
    AlertRule, AlertState, ChannelFields, ChannelKind, Commented, Control, ControlError, Erasure,
    ErasureKind, ErasureState, Evaluated, GroupState, Hidden, Incident, IncidentKind,
    IncidentState, JsonText, NewChannel, NewMute, NewNotification, NotificationFilter, RuleText,
    Severity, UnannouncedRule, new_id,
};
use uuid::Uuid;

use super::place::Place;
use super::{ANN, at, on_both_engines, with_project};

on_both_engines![
    an_earlier_run_of_a_pass_saves_nothing,
    alerts_forget_the_subject_and_keep_other_groups,
    alerts_forget_incidents_of_rules_with_the_subject_in_a_filter,
    the_first_evaluation_of_a_rule_during_an_erasure_is_discarded,
    a_message_is_not_saved_if_an_erasure_finished_while_its_rows_were_read,
];

async fn next(control: &Control) -> Vec<Erasure> {
    let none = BTreeSet::new();
    let pass = control.next_pass(at(3), &none, at(3));
    pass.await.unwrap()
}

fn counted(pass: &mut [Erasure], rows: u64) {
    pass[0].receipt.rows.insert("spans".to_owned(), rows);
}

async fn an_earlier_run_of_a_pass_saves_nothing(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let subject = ("shop", ErasureKind::Install, &*Uuid::new_v4().to_string());
    let erasure = control.request_erasure(subject, &ANN, at(1)).await.unwrap();
    let mut paused = next(control).await;
    counted(&mut paused, 4);
    assert!(control.save_pass(&paused).await.unwrap());

    let mut later = next(control).await;
    assert_eq!(later[0].receipt, paused[0].receipt);
    counted(&mut paused, 5);
    assert!(!control.save_pass(&paused).await.unwrap());
    assert!(!control.finish_pass(&paused, at(4)).await.unwrap());
    let stored = control.erasure("shop", erasure.id).await.unwrap();
    assert_eq!(
        (stored.state, stored.receipt),
        (ErasureState::Running, later[0].receipt.clone())
    );

    counted(&mut later, 8);
    assert!(control.finish_pass(&later, at(5)).await.unwrap());
    assert!(!control.finish_pass(&later, at(6)).await.unwrap());
    let stored = control.erasure("shop", erasure.id).await.unwrap();
    assert_eq!(
        (stored.state, stored.finished_at),
        (ErasureState::Done, Some(at(5)))
    );
    assert_eq!(stored.receipt, later[0].receipt);
    assert!(!control.save_pass(&paused).await.unwrap());
    assert!(next(control).await.is_empty());
}

/// An open incident of a group with one dimension.
fn incident(rule: &AlertRule, (dimension, id): (&str, &str)) -> Incident {
    Incident {
        id: new_id(at(2)),
        project: "shop".to_owned(),
        rule: rule.id,
        group_key: JsonText::new(&json!({ dimension: id })),
        kind: IncidentKind::Alert,
        title: "Heavy traffic".to_owned(),
        severity: Severity::Critical,
        owner: String::new(),
        labels: BTreeMap::from([(dimension.to_owned(), id.to_owned())]),
        summary: format!("traffic of {id}"),
        link: String::new(),
        evidence: JsonText::new(&json!({"group": { dimension: id }})),
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

async fn with_channel(control: &Control) -> Uuid {
    let fields = ChannelFields {
        name: "ops".to_owned(),
        settings: json!({}),
        secret: Hidden("sealed".to_owned()),
        least_severity: Severity::Info,
        incidents: true,
        digest: true,
        enabled: true,
    };
    let new = NewChannel {
        id: new_id(at(1)),
        project: "shop".to_owned(),
        kind: ChannelKind::Webhook,
        fields,
    };
    control.create_channel(&new, &ANN, at(1)).await.unwrap().id
}

async fn with_rule(control: &Control) -> AlertRule {
    let text = RuleText {
        document: JsonText::new(&json!({})),
        name: "a rule".to_owned(),
        enabled: true,
        ends: None,
    };
    let rule = control.create_alert_rule("shop", text, &ANN, at(1));
    rule.await.unwrap()
}

/// The state of the group of an open incident.
fn firing(opened: &Incident) -> AlertState {
    AlertState {
        group_key: opened.group_key.clone(),
        state: GroupState::Firing,
        since: at(2),
        seen_at: at(2),
        base: None,
        incident: Some(opened.id),
    }
}

async fn save_and_announce(control: &Control, round: Evaluated) {
    let unannounced = UnannouncedRule {
        project: "shop".to_owned(),
        rule: round.rule.to_string(),
    };
    assert!(control.save_evaluation(round).await.unwrap());
    let announced = control.announce_incidents(&unannounced, at(2)).await;
    assert_eq!(announced.unwrap().messages, 1);
}

/// Opens an incident of each group, with a state, a mute, a comment and a message about both.
async fn with_incidents(control: &Control, groups: [(&str, &str); 2]) -> (AlertRule, [Uuid; 2]) {
    let rule = with_rule(control).await;
    let mut round = Evaluated::new((rule.id, rule.revision), None, at(2));
    let incidents = groups.map(|group| incident(&rule, group));
    let ids = incidents.each_ref().map(|incident| incident.id);
    for opened in incidents {
        round.states.push(firing(&opened));
        round.opened.push(opened);
    }
    save_and_announce(control, round).await;
    for ((dimension, id), incident) in groups.into_iter().zip(ids) {
        let mute = NewMute {
            project: "shop".to_owned(),
            rule: Some(rule.id),
            group_key: Some(JsonText::new(&json!({ dimension: id }))),
            starts_at: at(2),
            ends_at: at(100),
            reason: "planned".to_owned(),
        };
        control.create_mute(mute, &ANN, at(2)).await.unwrap();
        let on = (Commented::Incident(incident), "Heavy traffic");
        let commented = control.add_comment("shop", on, "known", &ANN, at(2));
        commented.await.unwrap();
    }
    (rule, ids)
}

/// The bodies of all messages, as text.
async fn messages(control: &Control) -> Vec<String> {
    let filter = NotificationFilter::default();
    let all = control.notifications("shop", &filter, 100).await.unwrap();
    all.iter().map(|one| one.body.to_string()).collect()
}

async fn alerts_forget_the_subject_and_keep_other_groups(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let channel = with_channel(control).await;
    let [gone, kept] = [Uuid::new_v4(), Uuid::new_v4()].map(|id| id.to_string());
    let users = ["ann \"a\"", "ann"].map(|id| ("user_id", id));
    let installs = [&gone, &kept].map(|id| ("install_id", id.as_str()));
    let capitals = gone.to_uppercase();
    for (kind, groups, subject) in [
        (ErasureKind::User, users, users[0].1),
        (ErasureKind::Install, installs, capitals.as_str()),
    ] {
        let (rule, incidents) = with_incidents(control, groups).await;
        let digest = NewNotification {
            project: "shop".to_owned(),
            channel,
            key: format!("digest:{kind:?}"),
            thread: "digest".to_owned(),
            subject: "unjank".to_owned(),
            body: json!({"digest": {"traffic": groups.map(|(dimension, id)| json!({ dimension: id }))}}),
        };
        let before = control.finished_erasures("shop").await.unwrap();
        assert!(control.notify(&digest, &before, at(2)).await.unwrap());

        let rows = erase(control, (kind, subject)).await;
        let expected = [
            ("alert_states", 1),
            ("incident_channels", 1),
            ("incident_comments", 1),
            ("incidents", 1),
            ("mutes", 1),
            ("notifications", 2),
        ];
        let expected = expected.map(|(table, rows)| (table.to_owned(), rows));
        assert_eq!(rows, BTreeMap::from(expected));

        only_the_second_is_left(control, (&rule, incidents), groups).await;
        // This evaluation may have read rows of the subject before they were deleted.
        let mut outdated = Evaluated::new((rule.id, rule.revision), Some(at(2)), at(6));
        outdated.opened.push(incident(&rule, groups[0]));
        assert_eq!(control.save_evaluation(outdated).await, Ok(false));
    }
}

async fn only_the_second_is_left(
    control: &Control,
    (rule, incidents): (&AlertRule, [Uuid; 2]),
    groups: [(&str, &str); 2],
) {
    let erased = control.incident("shop", incidents[0]).await;
    assert_eq!(erased, Err(ControlError::NotFound));
    assert!(control.incident("shop", incidents[1]).await.is_ok());
    let [erased, kept] = groups.map(|(dimension, id)| JsonText::new(&json!({ dimension: id })));
    let states = control.alert_states(rule.id).await.unwrap();
    assert_eq!((states.len(), &states[0].group_key), (1, &kept));
    let mutes = control.mutes("shop", at(5)).await.unwrap();
    let muted = mutes.iter().filter(|mute| mute.rule == Some(rule.id));
    let muted: Vec<_> = muted.filter_map(|mute| mute.group_key.as_ref()).collect();
    assert_eq!(muted, [&kept]);
    let texts = messages(control).await;
    let naming = |group: &JsonText| {
        let member = group.as_str().trim_matches(['{', '}']);
        texts.iter().filter(|text| text.contains(member)).count()
    };
    assert_eq!((naming(&erased), naming(&kept)), (0, 2), "{texts:?}");
}

async fn erase(control: &Control, (kind, subject): (ErasureKind, &str)) -> BTreeMap<String, u64> {
    let erasure = control.request_erasure(("shop", kind, subject), &ANN, at(2));
    let id = erasure.await.unwrap().id;
    let pass = next(control).await;
    assert!(control.finish_pass(&pass, at(4)).await.unwrap());
    control.erasure("shop", id).await.unwrap().receipt.rows
}

async fn alerts_forget_incidents_of_rules_with_the_subject_in_a_filter(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    with_channel(control).await;
    let [gone, kept] = [Uuid::new_v4(), Uuid::new_v4()].map(|id| id.to_string());
    for (kind, subject, filters) in [
        (
            ErasureKind::Install,
            &*gone,
            [
                json!({"install_id": [kept, gone.to_uppercase()]}),
                json!({"install_id": [kept]}),
            ],
        ),
        (
            ErasureKind::User,
            "ann \"a\"",
            [
                json!({"contains.user_id": ["ann \"a\""]}),
                json!({"user_id": ["ann"], "page": ["ann \"a\""]}),
            ],
        ),
    ] {
        let rule = with_rule(control).await;
        let mut round = Evaluated::new((rule.id, rule.revision), None, at(2));
        for (group, filters) in ["/cart", "/pay"].into_iter().zip(filters) {
            let mut opened = incident(&rule, ("page", group));
            let evidence = json!({"metric": {"filters": filters}, "group": {"page": group}});
            opened.evidence = JsonText::new(&evidence);
            opened.link = format!("/frames?{filters}");
            round.states.push(firing(&opened));
            round.opened.push(opened);
        }
        let incidents = [round.opened[0].id, round.opened[1].id];
        save_and_announce(control, round).await;

        let rows = erase(control, (kind, subject)).await;
        let expected = [
            ("alert_states", 1),
            ("incident_channels", 1),
            ("incidents", 1),
            ("notifications", 1),
        ];
        let expected = expected.map(|(table, rows)| (table.to_owned(), rows));
        assert_eq!(rows, BTreeMap::from(expected), "{kind:?}");
        let erased = control.incident("shop", incidents[0]).await;
        assert_eq!(erased, Err(ControlError::NotFound));
        assert!(control.incident("shop", incidents[1]).await.is_ok());
        let states = control.alert_states(rule.id).await.unwrap();
        assert_eq!((states.len(), states[0].incident), (1, Some(incidents[1])));
        let texts = messages(control).await.concat();
        let is_told = |id: Uuid| texts.contains(&id.to_string());
        assert!(!is_told(incidents[0]) && is_told(incidents[1]), "{texts}");
    }
}

async fn the_first_evaluation_of_a_rule_during_an_erasure_is_discarded(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let id = Uuid::new_v4().to_string();
    let rule = with_rule(control).await;
    // It has read rows of the install, and has not saved its result yet.
    let mut first = Evaluated::new((rule.id, rule.revision), None, at(3));
    first.opened.push(incident(&rule, ("install_id", &id)));
    assert_eq!(
        erase(control, (ErasureKind::Install, &id)).await,
        BTreeMap::new()
    );
    assert_eq!(control.save_evaluation(first).await, Ok(false));
    let known = control.alert_rule("shop", rule.id).await.unwrap();
    let later = Evaluated::new((rule.id, rule.revision), known.evaluated_at, at(6));
    assert_eq!(control.save_evaluation(later).await, Ok(true));
}

async fn a_message_is_not_saved_if_an_erasure_finished_while_its_rows_were_read(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let channel = with_channel(control).await;
    let id = Uuid::new_v4().to_string();
    let digest = NewNotification {
        project: "shop".to_owned(),
        channel,
        key: "digest".to_owned(),
        thread: "digest".to_owned(),
        subject: "unjank".to_owned(),
        body: json!({"digest": {"traffic": [{"install_id": id}]}}),
    };
    let before = control.finished_erasures("shop").await.unwrap();
    erase(control, (ErasureKind::Install, &id)).await;
    let saved = control.notify(&digest, &before, at(5)).await;
    assert_eq!((saved, messages(control).await), (Ok(false), Vec::new()));
    // Rows that arrived after the request of the erasure are kept.
    let after = control.finished_erasures("shop").await.unwrap();
    assert_eq!(control.notify(&digest, &after, at(5)).await, Ok(true));
}
