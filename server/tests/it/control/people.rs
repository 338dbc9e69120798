//! Users, their roles, their invitations and their sessions.

use std::time::Duration;

use futures_util::future::join_all;
use unjank_database::{
    Actor, Control, ControlError, FirstAdmin, Hidden, Invitation, Membership, NewSession, NewUser,
    OpenInvitation, Role, Rotation, TokenExchange, TokensOfUser, User,
};
use uuid::Uuid;

use super::place::Place;
use super::{ANN, at, done, hash, on_both_engines, refused, with_project};

on_both_engines![
    a_user_is_found_however_the_address_is_written,
    users_are_listed_page_by_page,
    roles_are_set_changed_and_removed,
    an_invitation_is_taken_once_however_many_try,
    an_invitation_expires_and_can_be_cancelled,
    of_several_set_ups_one_wins,
    reuse_of_a_refresh_token_ends_its_session,
    one_of_several_uses_of_a_refresh_token_succeeds,
    tabs_that_refresh_at_once_all_stay_logged_in,
    sessions_end_with_the_password_and_with_the_user,
    a_token_made_while_its_session_was_revoked_is_dead,
    expired_refresh_tokens_are_deleted,
];

async fn with_user(control: &Control, email: &str) -> User {
    let new = NewUser {
        email: email.to_owned(),
        name: "Bob".to_owned(),
        password_hash: None,
        is_admin: false,
    };
    control.create_user(new, &ANN, at(0)).await.unwrap()
}

async fn with_session(control: &Control, user: Uuid, token: &str) -> Uuid {
    let new = NewSession {
        user,
        token_hash: hash(token),
        expires_at: at(1_000),
        ends_at: None,
    };
    let actor = Actor::user(user);
    let session = control.create_session(new, &actor, at(1)).await.unwrap();
    session.id
}

fn exchange(old: &str, new: &str) -> TokenExchange {
    TokenExchange {
        old: hash(old),
        new: hash(new),
        expires_at: at(2_000),
    }
}

async fn a_user_is_found_however_the_address_is_written(place: Place) {
    let control = &place.control;
    let user = with_user(control, " Bob@Example.com ").await;
    assert_eq!(user.email, "bob@example.com");
    assert!(!user.is_admin && user.password_hash.is_none());
    assert_eq!(control.user(user.id).await.unwrap(), user);
    let found = control.user_by_email("BOB@example.COM").await.unwrap();
    assert_eq!(found, user);
    let again = NewUser {
        email: "bob@EXAMPLE.com".to_owned(),
        name: "Bob".to_owned(),
        password_hash: None,
        is_admin: true,
    };
    let again = control.create_user(again, &ANN, at(1));
    refused(control, again, ControlError::AlreadyExists).await;
    let nobody = control.user_by_email("nobody").await;
    assert_eq!(nobody.unwrap_err(), ControlError::NotFound);
    let phc = Hidden("$argon2id$secret".to_owned());
    control
        .set_password(user.id, phc.clone(), &ANN, at(2))
        .await
        .unwrap();
    let user = control.user(user.id).await.unwrap();
    assert!(!format!("{user:?}").contains("argon2id"));
    assert_eq!(user.password_hash, Some(phc));
}

async fn users_are_listed_page_by_page(place: Place) {
    let control = &place.control;
    for email in ["c@x", "a@x", "b@x"] {
        with_user(control, email).await;
    }
    let first = control.users(None, 2).await.unwrap();
    let emails: Vec<_> = first.iter().map(|user| user.email.as_str()).collect();
    assert_eq!(emails, ["a@x", "b@x"]);
    let rest = control.users(Some("b@x"), 2).await.unwrap();
    assert_eq!((rest.len(), rest[0].email.as_str()), (1, "c@x"));
}

async fn roles_are_set_changed_and_removed(place: Place) {
    let control = &place.control;
    let user = with_user(control, "bob@x").await.id;
    with_project(control, "shop").await;
    with_project(control, "bank").await;
    let membership = |project: &str, role| Membership {
        user,
        project: project.to_owned(),
        role,
    };
    for (n, one) in [
        ("shop", Role::Viewer),
        ("bank", Role::Editor),
        ("shop", Role::Admin),
    ]
    .into_iter()
    .enumerate()
    {
        let time = at(i64::try_from(n).unwrap());
        control
            .set_membership(&membership(one.0, one.1), &ANN, time)
            .await
            .unwrap();
    }
    let roles = control.roles_of(user).await.unwrap();
    let (bank, shop) = (
        membership("bank", Role::Editor),
        membership("shop", Role::Admin),
    );
    assert_eq!(roles, [bank, shop.clone()]);
    assert_eq!(control.members_of("shop").await.unwrap(), [shop]);
    let nowhere = membership("none", Role::Admin);
    let nowhere = control.set_membership(&nowhere, &ANN, at(4));
    refused(control, nowhere, ControlError::NotFound).await;
    control
        .remove_membership(user, "shop", &ANN, at(5))
        .await
        .unwrap();
    let twice = control.remove_membership(user, "shop", &ANN, at(5)).await;
    assert_eq!(twice, Err(ControlError::NotFound));
    assert!(control.members_of("shop").await.unwrap().is_empty());
}

async fn an_invitation_is_taken_once_however_many_try(place: Place) {
    let user = with_user(&place.control, "bob@x").await.id;
    let invitation = Invitation {
        token_hash: hash("link"),
        user,
        expires_at: at(100),
    };
    let control = &place.control;
    control
        .create_invitation(&invitation, &ANN, at(1))
        .await
        .unwrap();
    let takers = (0..20).map(|_| {
        let control = place.control.clone();
        async move {
            control
                .take_invitation(hash("link"), &Actor::system("http"), at(2))
                .await
        }
    });
    let (taken, refused): (Vec<_>, Vec<_>) =
        join_all(takers).await.into_iter().partition(Result::is_ok);
    assert_eq!(taken, [Ok(user)]);
    assert_eq!(refused, vec![Err(ControlError::NotFound); 19]);
    let audited = done(control).await;
    let count = audited
        .iter()
        .filter(|one| *one == "invitation.taken")
        .count();
    assert_eq!(count, 1);
}

async fn an_invitation_expires_and_can_be_cancelled(place: Place) {
    let control = &place.control;
    let user = with_user(control, "bob@x").await.id;
    let invitation = |link| Invitation {
        token_hash: hash(link),
        user,
        expires_at: at(100),
    };
    let open = async || control.open_invitations(None, 10).await.unwrap();
    assert_eq!(open().await, []);
    let one = invitation("one");
    control.create_invitation(&one, &ANN, at(1)).await.unwrap();
    let take = |link, time| control.take_invitation(hash(link), &ANN, time);
    refused(control, take("one", at(100)), ControlError::NotFound).await;
    // It is expired, and still in the list.
    let expected = OpenInvitation {
        user,
        expires_at: at(100),
    };
    assert_eq!(open().await, [expected]);
    let cancel = || control.cancel_invitation(user, &ANN, at(2));
    cancel().await.unwrap();
    refused(control, take("one", at(3)), ControlError::NotFound).await;
    refused(control, cancel(), ControlError::NotFound).await;
    assert_eq!(open().await, []);
    let two = invitation("two");
    control.create_invitation(&two, &ANN, at(4)).await.unwrap();
    assert_eq!(take("two", at(99)).await, Ok(user));
    assert_eq!(open().await, []);
}

async fn of_several_set_ups_one_wins(place: Place) {
    let set_up = |n: usize| {
        let control = place.control.clone();
        let first = FirstAdmin {
            email: format!("{n}@example.com"),
            name: "Ann".to_owned(),
            password_hash: Hidden("hash".to_owned()),
        };
        async move { control.create_first_admin(first, at(1)).await }
    };
    assert!(!place.control.has_users().await.unwrap());
    let (won, lost): (Vec<_>, Vec<_>) = join_all((0..20).map(set_up))
        .await
        .into_iter()
        .partition(Result::is_ok);
    assert_eq!((won.len(), lost.len()), (1, 19));
    assert!(
        lost.iter()
            .all(|one| *one == Err(ControlError::AlreadyExists))
    );
    assert_eq!(place.control.users(None, 10).await.unwrap().len(), 1);
    assert!(won[0].as_ref().unwrap().is_admin);
    assert!(place.control.has_users().await.unwrap());
    let later = set_up(20).await;
    assert_eq!(later, Err(ControlError::AlreadyExists));
}

async fn reuse_of_a_refresh_token_ends_its_session(place: Place) {
    let control = &place.control;
    let user = with_user(control, "bob@x").await.id;
    let session = with_session(control, user, "t1").await;
    let other = with_session(control, user, "other").await;
    let rotated = control.rotate_session(exchange("t1", "t2"), at(10)).await;
    let Ok(Rotation::Rotated(rotated)) = rotated else {
        panic!("{rotated:?}")
    };
    assert_eq!((rotated.id, rotated.created_at), (session, at(1)));
    assert_eq!(
        (rotated.last_used_at, rotated.expires_at),
        (at(10), at(2_000))
    );
    let alive = control.sessions_of(user, at(11)).await.unwrap();
    assert_eq!(alive.len(), 2);
    assert_eq!(alive[0], rotated);
    let before = done(control).await.len();
    let reused = Rotation::Reused { session, user };
    let stolen = control.rotate_session(exchange("t1", "t3"), at(12)).await;
    assert_eq!(stolen.unwrap(), reused);
    assert_eq!(done(control).await[before..], ["session.reused"]);
    let owner = control.rotate_session(exchange("t2", "t4"), at(13)).await;
    assert_eq!(owner.unwrap(), Rotation::Ended);
    let alive = control.sessions_of(user, at(14)).await.unwrap();
    assert_eq!(alive.iter().map(|one| one.id).collect::<Vec<_>>(), [other]);
    let unknown = control.rotate_session(exchange("t9", "t5"), at(15));
    refused(control, unknown, ControlError::NotFound).await;
}

async fn one_of_several_uses_of_a_refresh_token_succeeds(place: Place) {
    let user = with_user(&place.control, "bob@x").await.id;
    with_session(&place.control, user, "t").await;
    let uses = (0..8).map(|n| {
        let control = place.control.clone();
        async move {
            let exchange = exchange("t", &format!("t{n}"));
            control.rotate_session(exchange, at(10)).await.unwrap()
        }
    });
    let outcomes = join_all(uses).await;
    let rotated = outcomes
        .iter()
        .filter(|one| matches!(one, Rotation::Rotated(_)));
    assert_eq!(rotated.count(), 1);
    let reused = outcomes
        .iter()
        .filter(|one| matches!(one, Rotation::Reused { .. }));
    assert_eq!(reused.count(), 7);
    assert!(
        place
            .control
            .sessions_of(user, at(11))
            .await
            .unwrap()
            .is_empty()
    );
}

async fn tabs_that_refresh_at_once_all_stay_logged_in(place: Place) {
    let user = with_user(&place.control, "bob@x").await.id;
    let session = with_session(&place.control, user, "t1").await;
    let before = done(&place.control).await;
    let tabs = (0..8).map(|_| {
        let control = place.control.clone();
        async move { control.rotate_session(exchange("t1", "t2"), at(10)).await }
    });
    for tab in join_all(tabs).await {
        let Ok(Rotation::Rotated(rotated)) = tab else {
            panic!("{tab:?}")
        };
        assert_eq!((rotated.id, rotated.last_used_at), (session, at(10)));
    }
    let control = &place.control;
    let late = control
        .rotate_session(exchange("t1", "t2"), at(40) - Duration::from_micros(1))
        .await;
    assert!(matches!(late, Ok(Rotation::Rotated(_))), "{late:?}");
    // One session, with one token.
    assert_eq!(control.sessions_of(user, at(40)).await.unwrap().len(), 1);
    assert_eq!(done(control).await, before);
    let next = control.rotate_session(exchange("t2", "t3"), at(41)).await;
    assert!(matches!(next, Ok(Rotation::Rotated(_))), "{next:?}");
    let stolen = control.rotate_session(exchange("t1", "t2"), at(42)).await;
    assert_eq!(stolen.unwrap(), Rotation::Reused { session, user });
    let over = control.rotate_session(exchange("t2", "t3"), at(43)).await;
    assert!(!matches!(over, Ok(Rotation::Rotated(_))), "{over:?}");
    assert!(control.sessions_of(user, at(44)).await.unwrap().is_empty());
    // A late refresh from another tab does not bring back a session that was revoked, or whose user was disabled.
    for (token, next) in [("out", "out2"), ("off", "off2")] {
        let session = with_session(control, user, token).await;
        control
            .rotate_session(exchange(token, next), at(50))
            .await
            .unwrap();
        if token == "out" {
            control.revoke_session(session, &ANN, at(51)).await.unwrap();
        } else {
            let revoke = TokensOfUser::Revoke;
            let disabled = control.disable_user(user, revoke, &ANN, at(51));
            disabled.await.unwrap();
        }
        let again = control.rotate_session(exchange(token, next), at(52)).await;
        assert!(!matches!(again, Ok(Rotation::Rotated(_))), "{again:?}");
    }
}

async fn sessions_end_with_the_password_and_with_the_user(place: Place) {
    let control = &place.control;
    let user = with_user(control, "bob@x").await.id;
    let one = with_session(control, user, "one").await;
    with_session(control, user, "two").await;
    control.revoke_session(one, &ANN, at(3)).await.unwrap();
    let twice = control.revoke_session(one, &ANN, at(3));
    refused(control, twice, ControlError::NotFound).await;
    assert_eq!(control.sessions_of(user, at(4)).await.unwrap().len(), 1);
    let password = Hidden("phc".to_owned());
    control
        .set_password(user, password, &ANN, at(5))
        .await
        .unwrap();
    assert!(control.sessions_of(user, at(6)).await.unwrap().is_empty());
    with_session(control, user, "three").await;
    let disabled = control.disable_user(user, TokensOfUser::Revoke, &ANN, at(7));
    disabled.await.unwrap();
    let ended = control
        .rotate_session(exchange("three", "four"), at(8))
        .await;
    assert_eq!(ended.unwrap(), Rotation::Ended);
    let new = NewSession {
        user,
        token_hash: hash("five"),
        expires_at: at(1_000),
        ends_at: None,
    };
    let disabled = control.create_session(new, &ANN, at(9));
    refused(control, disabled, ControlError::NotFound).await;
    control.enable_user(user, &ANN, at(10)).await.unwrap();
    control.create_session(new, &ANN, at(11)).await.unwrap();
    control
        .revoke_sessions_of(user, &ANN, at(12))
        .await
        .unwrap();
    assert!(control.sessions_of(user, at(13)).await.unwrap().is_empty());
}

async fn a_token_made_while_its_session_was_revoked_is_dead(place: Place) {
    let control = &place.control;
    let user = with_user(control, "bob@x").await.id;
    let session = with_session(control, user, "t1").await;
    control
        .rotate_session(exchange("t1", "t2"), at(10))
        .await
        .unwrap();
    control.revoke_session(session, &ANN, at(11)).await.unwrap();
    // Simulate a rotation that added its token just after the revocation looked for tokens.
    place
        .execute("UPDATE sessions SET revoked_at = NULL WHERE rotated_to IS NULL")
        .await;
    assert!(control.sessions_of(user, at(12)).await.unwrap().is_empty());
    let late = control.rotate_session(exchange("t2", "t3"), at(12)).await;
    assert_eq!(late.unwrap(), Rotation::Ended);
}

async fn expired_refresh_tokens_are_deleted(place: Place) {
    let control = &place.control;
    let user = with_user(control, "bob@x").await.id;
    with_session(control, user, "t1").await;
    control
        .rotate_session(exchange("t1", "t2"), at(10))
        .await
        .unwrap();
    assert_eq!(control.forget_expired(at(999)).await.unwrap(), 0);
    assert_eq!(control.forget_expired(at(1_001)).await.unwrap(), 1);
    assert_eq!(control.sessions_of(user, at(1_001)).await.unwrap().len(), 1);
}
