//! Comments on incidents, and the people that incidents are assigned to.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use unjank_database::{
    Actor, Assignee, Commented, Control, ControlError, ErasureKind, Evaluated, Incident,
    IncidentFilter, IncidentKind, IncidentState, JsonText, Membership, NewUser, Role, RuleText,
    Severity, TokensOfUser, new_id,
};
use uuid::Uuid;

use super::place::Place;
use super::{ANN, at, done, on_both_engines, refused, with_project};

on_both_engines![
    comments_are_bounded_and_only_their_author_or_an_admin_deletes_them,
    an_incident_is_assigned_only_to_a_person_who_may_see_the_project,
    a_person_who_loses_access_is_no_longer_the_assignee,
    projects_take_comments_and_assignees_along,
];

/// Opens an incident of a new rule.
async fn with_incident(control: &Control, project: &str) -> Uuid {
    let text = RuleText {
        document: JsonText::new(&json!({})),
        name: "a rule".to_owned(),
        enabled: true,
        ends: None,
    };
    let rule = control.create_alert_rule(project, text, &ANN, at(1));
    let rule = rule.await.unwrap();
    let id = new_id(at(2));
    let mut round = Evaluated::new((rule.id, rule.revision), None, at(2));
    round.outcome = "firing";
    round.opened.push(Incident {
        id,
        project: project.to_owned(),
        rule: rule.id,
        group_key: JsonText::new(&json!({})),
        kind: IncidentKind::Alert,
        title: "Checkout is slow".to_owned(),
        severity: Severity::Critical,
        owner: String::new(),
        labels: BTreeMap::new(),
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
    });
    assert!(control.save_evaluation(round).await.unwrap());
    id
}

async fn with_person(control: &Control, name: &str, is_admin: bool) -> Uuid {
    let new = NewUser {
        email: format!("{}@example.com", name.to_lowercase()),
        name: name.to_owned(),
        password_hash: None,
        is_admin,
    };
    control.create_user(new, &ANN, at(0)).await.unwrap().id
}

async fn with_member(control: &Control, user: Uuid) {
    let membership = Membership {
        user,
        project: "shop".to_owned(),
        role: Role::Viewer,
    };
    let set = control.set_membership(&membership, &ANN, at(1));
    set.await.unwrap();
}

async fn assign(
    control: &Control,
    incident: Uuid,
    user: Option<Uuid>,
) -> Result<Option<Assignee>, ControlError> {
    let assigned = control.assign_incident(("shop", incident), user, &ANN, at(3));
    assigned.await.map(|incident| incident.assignee)
}

/// Adds a comment `n` seconds after the start of the test, and returns its id.
async fn add(
    (control, on): (&Control, Commented),
    text: &str,
    actor: &Actor,
    n: i64,
) -> Result<Uuid, ControlError> {
    let added = control.add_comment("shop", (on, "Checkout is slow"), text, actor, at(n));
    added.await.map(|comment| comment.id)
}

/// The ids of the incidents that a person sees as assigned.
async fn assigned_to(control: &Control, user: Uuid) -> Vec<Uuid> {
    let filter = IncidentFilter {
        assignee: Some(user),
        ..IncidentFilter::default()
    };
    let found = control.incidents("shop", &filter, 50).await.unwrap();
    found.into_iter().map(|incident| incident.id).collect()
}

async fn comments_are_bounded_and_only_their_author_or_an_admin_deletes_them(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let on = Commented::Incident(with_incident(control, "shop").await);
    let (incident, other) = ((control, on), Actor::cli("ben"));
    let first = add(incident, " known\n", &ANN, 3).await.unwrap();
    for text in ["", "  ", "\u{7}", &"x".repeat(2_001)] {
        let error = add(incident, text, &ANN, 3).await.unwrap_err();
        assert!(matches!(error, ControlError::Invalid(_)), "{error}");
    }
    for n in 1..200 {
        add(incident, "more", &other, 3 + n).await.unwrap();
    }
    let limit = "the incident has 200 comments, which is the limit; delete one of yours first";
    let limit = ControlError::Invalid(limit.to_owned());
    let one_too_many = add(incident, "one too many", &ANN, 300);
    refused(control, one_too_many, limit).await;
    let known = control.comments("shop", on).await.unwrap();
    assert_eq!((known.len(), known[0].id), (200, first));
    assert_eq!(known[0].text, "known");
    let by_other = control.delete_comment("shop", (on, first), &other, at(400));
    refused(control, by_other, ControlError::NotFound).await;
    let elsewhere = control.delete_comment("bank", (on, first), &ANN, at(400));
    refused(control, elsewhere, ControlError::NotFound).await;
    let elsewhere = control.delete_any_comment("bank", (on, first), &other, at(400));
    refused(control, elsewhere, ControlError::NotFound).await;
    let by_admin = control.delete_any_comment("shop", (on, first), &other, at(400));
    by_admin.await.unwrap();
    add(incident, "one more", &ANN, 500).await.unwrap();
    let actions = done(control).await;
    assert_eq!(
        actions[actions.len() - 2..],
        ["incident.comment_deleted", "incident.commented"]
    );
}

async fn an_incident_is_assigned_only_to_a_person_who_may_see_the_project(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let incident = with_incident(control, "shop").await;
    let bob = with_person(control, "Bob", false).await;
    let eve = with_person(control, "Eve", true).await;
    let reason = "only a person who may see the project can be assigned";
    for stranger in [bob, Uuid::nil()] {
        let reason = ControlError::Invalid(reason.to_owned());
        refused(control, assign(control, incident, Some(stranger)), reason).await;
    }
    with_member(control, bob).await;
    let people = control.assignees("shop").await.unwrap();
    let people: Vec<_> = people.iter().map(|one| (one.user, &*one.name)).collect();
    assert_eq!(people, [(bob, "Bob"), (eve, "Eve")]);
    let before = done(control).await.len();
    for user in [Some(bob), Some(bob), Some(eve), None, None] {
        let assigned = assign(control, incident, user).await.unwrap();
        assert_eq!(assigned.map(|one| one.user), user);
    }
    // What changes nothing is not in the log.
    let mut actions = done(control).await.split_off(before);
    actions.sort();
    assert_eq!(
        actions,
        [
            "incident.assigned",
            "incident.assigned",
            "incident.unassigned"
        ]
    );
    let unknown = assign(control, Uuid::nil(), Some(bob));
    refused(control, unknown, ControlError::NotFound).await;
}

async fn a_person_who_loses_access_is_no_longer_the_assignee(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let incident = with_incident(control, "shop").await;
    let bob = with_person(control, "Bob", false).await;
    with_member(control, bob).await;
    assign(control, incident, Some(bob)).await.unwrap();
    assert_eq!(assigned_to(control, bob).await, [incident]);
    let assignee = async || {
        let incident = control.incident("shop", incident).await.unwrap();
        incident.assignee.map(|one| one.name)
    };
    let removed = control.remove_membership(bob, "shop", &ANN, at(4));
    removed.await.unwrap();
    assert_eq!(assignee().await, None);
    assert!(assigned_to(control, bob).await.is_empty());
    with_member(control, bob).await;
    assert_eq!(assignee().await.as_deref(), Some("Bob"));
    let disabled = control.disable_user(bob, TokensOfUser::Revoke, &ANN, at(5));
    disabled.await.unwrap();
    assert_eq!(assignee().await, None);
    assert_eq!(control.assignees("shop").await.unwrap(), []);
}

async fn projects_take_comments_and_assignees_along(place: Place) {
    let control = &place.control;
    let eve = with_person(control, "Eve", true).await;
    let mut incidents = Vec::new();
    for project in ["shop", "other"] {
        with_project(control, project).await;
        let id = with_incident(control, project).await;
        let on = Commented::Incident(id);
        let added = control.add_comment(project, (on, "a"), "hot", &ANN, at(3));
        added.await.unwrap();
        let assigned = control.assign_incident((project, id), Some(eve), &ANN, at(3));
        assigned.await.unwrap();
        incidents.push(on);
    }
    let subject = ("shop", ErasureKind::Project, "");
    let requested = control.request_erasure(subject, &ANN, at(4));
    requested.await.unwrap();
    let none = BTreeSet::new();
    let pass = control.next_pass(at(5), &none, at(5));
    let pass = pass.await.unwrap();
    assert!(control.finish_pass(&pass, at(5)).await.unwrap());
    assert_eq!(control.comments("shop", incidents[0]).await.unwrap(), []);
    let left = control.comments("other", incidents[1]).await.unwrap();
    assert_eq!(left.len(), 1);
}
