//! Accounts at an identity provider, on both engines.

use futures_util::future::join_all;
use unjank_database::{
    Actor, Admission, Control, ControlError, FederatedLogin, GivenRoles, NewApiToken, NewUser,
    ProviderEmail, Refusal, Role, TokenScope, User,
};

use super::place::Place;
use super::{ANN, at, done, hash, on_both_engines, with_project};

on_both_engines![
    a_person_is_made_linked_and_found_again,
    many_first_logins_at_once_make_one_person,
    roles_and_tokens_follow_the_provider,
    one_of_the_last_two_operators_stays,
    an_account_can_be_unlinked,
];

fn provider() -> Actor {
    Actor::system("openid-connect https://sso.example.com")
}

fn login(subject: &str, roles: Option<GivenRoles>) -> FederatedLogin {
    FederatedLogin {
        issuer: "https://sso.example.com".to_owned(),
        subject: subject.to_owned(),
        email: ProviderEmail::Verified(format!("{subject}@example.com")),
        name: "Bob New".to_owned(),
        roles,
        creates_people: true,
    }
}

fn roles(operator: bool, projects: &[(&str, Role)]) -> Option<GivenRoles> {
    let projects = projects.iter();
    Some(GivenRoles {
        operator,
        projects: projects
            .map(|(project, role)| ((*project).to_owned(), *role))
            .collect(),
    })
}

async fn admit(control: &Control, login: &FederatedLogin) -> Admission {
    control.admit(login, &provider(), at(5)).await.unwrap()
}

async fn admitted(control: &Control, login: &FederatedLogin) -> User {
    match admit(control, login).await {
        Admission::Admitted(user) => user,
        Admission::Refused(refusal) => panic!("{refusal:?}"),
    }
}

async fn a_person_is_made_linked_and_found_again(place: Place) {
    let control = &place.control;
    let bob = admitted(control, &login("bob", None)).await;
    assert_eq!(done(control).await, ["user.created", "identity.linked"]);
    assert_eq!(
        (bob.email.as_str(), bob.is_admin),
        ("bob@example.com", false)
    );
    let issuers = control.issuers_of(bob.id).await.unwrap();
    assert_eq!(issuers, ["https://sso.example.com"]);
    assert_eq!(control.linked_users(None, 10).await.unwrap(), [bob.id]);
    let others = control.linked_users(Some("bob@example.com"), 10).await;
    assert!(others.unwrap().is_empty());
    let mut again = login("bob", None);
    again.email = ProviderEmail::Missing;
    again.creates_people = false;
    assert_eq!(admitted(control, &again).await, bob);
    // Another account with the same address is refused. An account of another provider is linked.
    let mut other = login("bob", None);
    other.subject = "bob-2".to_owned();
    let refused = Admission::Refused(Refusal::LinkedElsewhere);
    assert_eq!(admit(control, &other).await, refused);
    other.issuer = "https://other.example.com".to_owned();
    assert_eq!(admitted(control, &other).await, bob);
    assert_eq!(done(control).await.len(), 3);
    for subject in ["", "a\0b", &"s".repeat(256)] {
        let error = control
            .admit(&login(subject, None), &provider(), at(6))
            .await;
        assert!(matches!(error, Err(ControlError::Invalid(_))), "{error:?}");
    }
}

async fn many_first_logins_at_once_make_one_person(place: Place) {
    let control = &place.control;
    let login = login("bob", None);
    let actor = provider();
    let all = join_all((0..8).map(|_| control.admit(&login, &actor, at(5)))).await;
    for one in all {
        match one {
            Ok(Admission::Admitted(_)) | Err(ControlError::AlreadyExists) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(control.users(None, 10).await.unwrap().len(), 1);
}

async fn with_token(control: &Control, maker: &User, project: Option<&str>, secret: &str) {
    let new = NewApiToken {
        project: project.map(str::to_owned),
        name: secret.to_owned(),
        prefix: "ujt_test".to_owned(),
        hash: hash(secret),
        role: Role::Viewer,
        scope: TokenScope::All,
        expires_at: None,
    };
    let actor = Actor::user(maker.id);
    control.create_api_token(new, &actor, at(6)).await.unwrap();
}

async fn works(control: &Control, secret: &str) -> bool {
    let token = control.api_token_by_hash(hash(secret)).await.unwrap();
    token.revoked_at.is_none()
}

async fn roles_and_tokens_follow_the_provider(place: Place) {
    let control = &place.control;
    for project in ["app", "shop", "web"] {
        with_project(control, project).await;
    }
    let first = roles(
        false,
        &[
            ("app", Role::Admin),
            ("shop", Role::Admin),
            ("gone", Role::Admin),
        ],
    );
    let bob = admitted(control, &login("bob", first)).await;
    for project in ["app", "shop"] {
        with_token(control, &bob, Some(project), project).await;
    }
    let before = done(control).await.len();
    let same = roles(false, &[("app", Role::Admin), ("shop", Role::Admin)]);
    admitted(control, &login("bob", same)).await;
    assert_eq!(done(control).await.len(), before, "nothing was changed");
    let less = roles(
        false,
        &[
            ("app", Role::Admin),
            ("shop", Role::Editor),
            ("web", Role::Viewer),
        ],
    );
    admitted(control, &login("bob", less)).await;
    assert!(works(control, "app").await);
    assert!(!works(control, "shop").await);
    let held = control.roles_of(bob.id).await.unwrap();
    let held: Vec<_> = held
        .iter()
        .map(|one| (one.project.as_str(), one.role))
        .collect();
    assert_eq!(
        held,
        [
            ("app", Role::Admin),
            ("shop", Role::Editor),
            ("web", Role::Viewer)
        ]
    );
    assert!(
        admitted(control, &login("bob", roles(true, &[])))
            .await
            .is_admin
    );
    assert!(
        works(control, "app").await,
        "an operator is admin of all projects"
    );
    with_token(control, &bob, None, "all").await;
    let none = Admission::Refused(Refusal::NoRole);
    assert_eq!(admit(control, &login("bob", roles(false, &[]))).await, none);
    assert!(!works(control, "app").await);
    assert!(!works(control, "all").await);
    assert!(!control.user(bob.id).await.unwrap().is_admin);
    assert_eq!(control.roles_of(bob.id).await.unwrap(), []);
    assert_eq!(admit(control, &login("new", roles(false, &[]))).await, none);
    assert_eq!(control.users(None, 10).await.unwrap().len(), 1);
}

async fn one_of_the_last_two_operators_stays(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    for name in ["ann", "bob"] {
        let new = NewUser {
            email: format!("{name}@example.com"),
            name: name.to_owned(),
            password_hash: Some(unjank_database::Hidden("hash".to_owned())),
            is_admin: true,
        };
        control.create_user(new, &ANN, at(1)).await.unwrap();
    }
    let viewer = || roles(false, &[("shop", Role::Viewer)]);
    let (ann, bob) = (login("ann", viewer()), login("bob", viewer()));
    let actor = provider();
    let (ann, bob) = tokio::join!(
        control.admit(&ann, &actor, at(5)),
        control.admit(&bob, &actor, at(5))
    );
    let is_operator = |one: Result<Admission, ControlError>| match one.unwrap() {
        Admission::Admitted(user) => user.is_admin,
        Admission::Refused(refusal) => panic!("{refusal:?}"),
    };
    assert!(is_operator(ann) != is_operator(bob));
}

async fn an_account_can_be_unlinked(place: Place) {
    let control = &place.control;
    let bob = admitted(control, &login("bob", None)).await;
    control
        .unlink_identities(bob.id, &ANN, at(6))
        .await
        .unwrap();
    let nothing = control.unlink_identities(bob.id, &ANN, at(7)).await;
    assert_eq!(nothing, Err(ControlError::NotFound));
    let mut other = login("bob", None);
    other.subject = "bob-2".to_owned();
    assert_eq!(admitted(control, &other).await.id, bob.id);
}
