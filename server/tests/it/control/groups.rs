//! Decisions about groups of janks, and comments on them.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use unjank_database::{
    Actor, Commented, Control, ControlError, ErasureKind, GroupDecision, HandledGroup, NewDecision,
};

use super::place::Place;
use super::{ANN, at, done, on_both_engines, refused, with_project};

on_both_engines![
    a_group_is_resolved_ignored_and_reopened,
    one_of_twenty_editors_decides_each_time,
    comments_are_bounded_and_only_their_author_or_an_admin_deletes_them,
    decisions_and_comments_follow_a_moved_group,
    what_is_later_than_the_question_for_moves_stays,
    projects_do_not_share_groups_and_take_them_along,
];

const GROUP: Commented = Commented::JankGroup(7);
const OTHER: Commented = Commented::JankGroup(8);

fn decision(state: GroupDecision, version: &str, expected_revision: i64) -> NewDecision {
    NewDecision {
        group: 7,
        title: "Cart.total".to_owned(),
        state,
        app_id: "shop".to_owned(),
        app_version: version.to_owned(),
        expected_revision,
    }
}

async fn decide(control: &Control, new: NewDecision) -> Result<HandledGroup, ControlError> {
    let later = at(1 + new.expected_revision);
    control.decide_on_group("shop", new, &ANN, later).await
}

async fn a_group_is_resolved_ignored_and_reopened(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    assert_eq!(control.handled_group("shop", 7).await.unwrap(), None);
    let resolved = decision(GroupDecision::Resolved, "4.12.0", 0);
    let resolved = decide(control, resolved).await.unwrap();
    assert_eq!(
        (resolved.app_version.as_str(), resolved.revision),
        ("4.12.0", 1)
    );
    assert_eq!(resolved.changed_by, ANN.to_string());
    let ignored = decision(GroupDecision::Ignored, "4.13.0", 1);
    let ignored = decide(control, ignored).await.unwrap();
    assert_eq!(control.closed_groups("shop").await.unwrap(), [ignored]);
    let open = decision(GroupDecision::Open, "4.13.0", 2);
    let open = decide(control, open).await.unwrap();
    assert_eq!((open.app_version.as_str(), open.revision), ("", 3));
    assert_eq!(control.closed_groups("shop").await.unwrap(), []);
    assert_eq!(control.handled_group("shop", 7).await.unwrap(), Some(open));
    let without_version = decide(control, decision(GroupDecision::Resolved, "", 3));
    let reason = "`app_id` and `app_version` must be 1 to 200 characters";
    refused(
        control,
        without_version,
        ControlError::Invalid(reason.to_owned()),
    )
    .await;
    assert_eq!(
        done(control).await[1..],
        [
            "jank_group.resolved",
            "jank_group.ignored",
            "jank_group.reopened"
        ]
    );
}

async fn one_of_twenty_editors_decides_each_time(place: Place) {
    with_project(&place.control, "shop").await;
    let handles = [place.control.clone(), place.another().await];
    for revision in 0..3 {
        let editors = (0..20).map(|n| {
            let new = decision(GroupDecision::Resolved, "4.12.0", revision);
            decide(&handles[n % 2], new)
        });
        let (decided, refused): (Vec<_>, Vec<_>) =
            join_all(editors).await.into_iter().partition(Result::is_ok);
        assert_eq!(decided.len(), 1, "{refused:?}");
        let current = revision + 1;
        assert_eq!(refused, vec![Err(ControlError::Conflict { current }); 19]);
    }
}

async fn comment(control: &Control, text: &str, actor: &Actor) -> Result<uuid::Uuid, ControlError> {
    let made = control.add_comment("shop", (GROUP, "Cart.total"), text, actor, at(1));
    made.await.map(|comment| comment.id)
}

async fn comments_are_bounded_and_only_their_author_or_an_admin_deletes_them(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let other = Actor::cli("ben");
    let first = comment(control, "  <b>hot</b>\nfix  ", &ANN).await.unwrap();
    let known = control.comments("shop", GROUP).await.unwrap();
    assert_eq!(known[0].text, "<b>hot</b>\nfix");
    for text in ["", "  ", "\u{7}", &"x".repeat(2_001)] {
        let error = comment(control, text, &ANN).await.unwrap_err();
        assert!(matches!(error, ControlError::Invalid(_)), "{error}");
    }
    comment(control, &"ü".repeat(2_000), &ANN).await.unwrap();
    for _ in 2..200 {
        comment(control, "more", &other).await.unwrap();
    }
    let one_too_many = comment(control, "one too many", &ANN);
    let limit = "the group has 200 comments, which is the limit; delete one of yours first";
    refused(
        control,
        one_too_many,
        ControlError::Invalid(limit.to_owned()),
    )
    .await;
    let by_other = control.delete_comment("shop", (GROUP, first), &other, at(2));
    refused(control, by_other, ControlError::NotFound).await;
    let in_other_group = control.delete_comment("shop", (OTHER, first), &ANN, at(2));
    refused(control, in_other_group, ControlError::NotFound).await;
    let in_other_group = control.delete_any_comment("shop", (OTHER, first), &other, at(2));
    refused(control, in_other_group, ControlError::NotFound).await;
    let own = control.delete_comment("shop", (GROUP, first), &ANN, at(2));
    own.await.unwrap();
    let again = control.delete_any_comment("shop", (GROUP, first), &other, at(2));
    refused(control, again, ControlError::NotFound).await;
    comment(control, "one more", &ANN).await.unwrap();
    assert_eq!(control.comments("shop", GROUP).await.unwrap().len(), 200);
}

async fn decisions_and_comments_follow_a_moved_group(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let resolved = decision(GroupDecision::Resolved, "4.12.0", 0);
    decide(control, resolved).await.unwrap();
    comment(control, "hot", &ANN).await.unwrap();
    let known = control.groups_with_handling("shop").await.unwrap();
    assert_eq!(known, [(7, at(1))]);
    let moved = control.move_group_handling("shop", known[0], 8);
    moved.await.unwrap();
    let known = control.groups_with_handling("shop").await.unwrap();
    assert_eq!(known, [(8, at(1))]);
    let moved = control.handled_group("shop", 8).await.unwrap().unwrap();
    assert_eq!(
        (moved.state, moved.app_version.as_str()),
        (GroupDecision::Resolved, "4.12.0")
    );
    assert_eq!(control.comments("shop", OTHER).await.unwrap().len(), 1);
    // The decision about the group that is left counts.
    let ignored = decision(GroupDecision::Ignored, "4.13.0", 0);
    decide(control, ignored).await.unwrap();
    let moved = control.move_group_handling("shop", known[0], 7);
    moved.await.unwrap();
    let left = control.closed_groups("shop").await.unwrap();
    assert_eq!((left.len(), left[0].state), (1, GroupDecision::Ignored));
    assert_eq!(control.comments("shop", GROUP).await.unwrap().len(), 1);
}

/// While a server looks up where the stacks of a group are, the group may get them back.
async fn what_is_later_than_the_question_for_moves_stays(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let resolved = decision(GroupDecision::Resolved, "4.12.0", 0);
    decide(control, resolved).await.unwrap();
    comment(control, "old", &ANN).await.unwrap();
    let known = control.groups_with_handling("shop").await.unwrap();
    let ignored = decision(GroupDecision::Ignored, "4.13.0", 1);
    let ignored = decide(control, ignored).await.unwrap();
    let made = control.add_comment("shop", (GROUP, "Cart.total"), "new", &ANN, at(2));
    made.await.unwrap();
    let moved = control.move_group_handling("shop", known[0], 8);
    moved.await.unwrap();
    assert_eq!(control.closed_groups("shop").await.unwrap(), [ignored]);
    let comments = control.comments("shop", GROUP).await.unwrap();
    assert_eq!((comments.len(), comments[0].text.as_str()), (1, "new"));
    assert_eq!(control.comments("shop", OTHER).await.unwrap().len(), 1);
    // Nor is the later decision deleted if the other group has its own.
    let mut other = decision(GroupDecision::Resolved, "4.13.0", 0);
    other.group = 8;
    decide(control, other).await.unwrap();
    let moved = control.move_group_handling("shop", known[0], 8);
    moved.await.unwrap();
    assert_eq!(control.closed_groups("shop").await.unwrap().len(), 2);
}

async fn projects_do_not_share_groups_and_take_them_along(place: Place) {
    let control = &place.control;
    for project in ["shop", "other"] {
        with_project(control, project).await;
        let new = decision(GroupDecision::Resolved, "4.12.0", 0);
        let decided = control.decide_on_group(project, new, &ANN, at(1));
        decided.await.unwrap();
        let commented = control.add_comment(project, (GROUP, "a"), "hot", &ANN, at(1));
        commented.await.unwrap();
    }
    let subject = ("shop", ErasureKind::Project, "");
    let requested = control.request_erasure(subject, &ANN, at(2));
    requested.await.unwrap();
    let none = BTreeSet::new();
    let pass = control.next_pass(at(3), &none, at(3));
    let pass = pass.await.unwrap();
    assert!(control.finish_pass(&pass, at(3)).await.unwrap());
    let left = control.groups_with_handling("shop").await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    let left = control.groups_with_handling("other").await.unwrap();
    assert_eq!(left, [(7, at(1))]);
}
