//! Projects, keys and tokens.

use serde_json::json;
use unjank_database::{
    Action, Actor, AuditFilter, ControlError, DeviceKeyAlgorithm, DeviceTokens, Hidden, KeyChange,
    NewApiToken, NewDeviceKey, NewIngestKey, ProjectSettings, Quotas, Role, SignalQuotas,
    TokenScope,
};

use super::place::Place;
use super::{ANN, at, done, hash, on_both_engines, refused, settings, with_project};

on_both_engines![
    changes_of_one_project_at_the_same_time_all_count,
    a_project_is_made_found_and_changed,
    a_change_that_is_refused_leaves_nothing_in_the_audit,
    a_change_that_cannot_be_audited_does_not_happen,
    the_audit_is_read_page_by_page_and_by_subject,
    ingest_keys_rotate_with_an_overlap,
    only_the_named_fields_of_a_key_change,
    other_projects_cannot_see_or_revoke_keys_and_tokens,
    device_keys_are_kept_until_revoked,
    device_tokens_can_be_required_only_with_an_active_device_key,
    api_tokens_are_found_by_hash,
    no_secret_is_printed_or_audited,
];

fn ingest_key(project: &str, secret: &str) -> NewIngestKey {
    NewIngestKey {
        project: project.to_owned(),
        name: "android".to_owned(),
        prefix: "uj_12345".to_owned(),
        hash: hash(secret),
        app_ids: Some(vec!["com.shop".to_owned()]),
        quotas: Quotas {
            events_per_second: Some(100),
            bytes_per_day: None,
        },
        expires_at: None,
    }
}

/// A change that replaces all settings.
fn to(
    settings: ProjectSettings,
) -> impl FnOnce(ProjectSettings) -> Result<ProjectSettings, ControlError> {
    |_| Ok(settings)
}

async fn changes_of_one_project_at_the_same_time_all_count(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let one_more = |known: ProjectSettings| {
        let quota = known.quotas.events_per_second.unwrap_or(0);
        let quotas = Quotas {
            events_per_second: Some(quota + 1),
            ..known.quotas
        };
        Ok::<_, ControlError>(ProjectSettings { quotas, ..known })
    };
    let changes = (0..20).map(|_| control.update_project("shop", one_more, &ANN, at(1)));
    for changed in futures_util::future::join_all(changes).await {
        changed.unwrap();
    }
    let quotas = control.project("shop").await.unwrap().settings.quotas;
    assert_eq!(quotas.events_per_second, Some(20));
}

async fn a_project_is_made_found_and_changed(place: Place) {
    let control = &place.control;
    let made = control
        .create_project("shop", settings("Shop"), &ANN, at(0))
        .await
        .unwrap();
    assert_eq!(control.project("shop").await.unwrap(), made);
    let signals = [("spans", Some(500)), ("metrics", Some(0)), ("janks", None)];
    let changed = ProjectSettings {
        quotas: Quotas {
            events_per_second: Some(5),
            bytes_per_day: Some(1 << 40),
        },
        signal_quotas: SignalQuotas::new(signals).unwrap(),
        ..settings("The shop")
    };
    let updated = control
        .update_project("shop", to(changed.clone()), &ANN, at(1))
        .await
        .unwrap();
    assert_eq!((&updated.settings, updated.created_at), (&changed, at(0)));
    with_project(control, "a-shop").await;
    with_project(control, "0").await;
    let projects = control.projects().await.unwrap();
    let ids: Vec<_> = projects.iter().map(|one| one.id.as_str()).collect();
    assert_eq!(ids, ["0", "a-shop", "shop"]);
    assert_eq!(projects[2], updated);
    assert_eq!(
        control.project("none").await.unwrap_err(),
        ControlError::NotFound
    );
}

async fn a_change_that_is_refused_leaves_nothing_in_the_audit(place: Place) {
    let control = &place.control;
    let ann = &*ANN;
    with_project(control, "shop").await;
    let again = control.create_project("shop", settings("Shop"), ann, at(1));
    refused(control, again, ControlError::AlreadyExists).await;
    let missing = control.update_project("none", to(settings("None")), ann, at(1));
    refused(control, missing, ControlError::NotFound).await;
    let orphan = control.create_ingest_key(ingest_key("none", "secret"), ann, at(1));
    refused(control, orphan, ControlError::NotFound).await;
    let before = done(control).await;
    let long = "a".repeat(64);
    for id in ["", "-shop", "Shop", "shöp", "a b", "a/b", long.as_str()] {
        let refusal = control.create_project(id, settings("x"), ann, at(1)).await;
        assert!(matches!(refusal, Err(ControlError::Invalid(_))), "{id}");
    }
    let refusal = control
        .create_project("x", settings("a\0b"), ann, at(1))
        .await;
    assert!(matches!(refusal, Err(ControlError::Invalid(_))));
    let nul = Actor::cli("a\0b");
    if place.url.starts_with("postgres") {
        let refusal = control
            .create_project("x", settings("x"), &nul, at(1))
            .await;
        assert!(
            matches!(refusal, Err(ControlError::Invalid(_))),
            "{refusal:?}"
        );
    }
    assert_eq!(done(control).await, before);
}

async fn a_change_that_cannot_be_audited_does_not_happen(place: Place) {
    let control = &place.control;
    place.execute("ALTER TABLE audit RENAME TO away").await;
    let refusal = control
        .create_project("shop", settings("Shop"), &ANN, at(0))
        .await;
    assert!(
        matches!(refusal, Err(ControlError::Unavailable(_))),
        "{refusal:?}"
    );
    place.execute("ALTER TABLE away RENAME TO audit").await;
    assert_eq!(
        control.project("shop").await.unwrap_err(),
        ControlError::NotFound
    );
}

async fn the_audit_is_read_page_by_page_and_by_subject(place: Place) {
    let control = &place.control;
    let bob = Actor::user(uuid::Uuid::from_u128(7));
    for n in 0..5 {
        let id = format!("p{n}");
        // Two projects have the same time. A page that ends between them must not lose the second.
        control
            .create_project(&id, settings(&id), &bob, at(n / 2))
            .await
            .unwrap();
    }
    control
        .update_project("p3", to(settings("Three")), &ANN, at(9))
        .await
        .unwrap();
    let mut filter = AuditFilter::default();
    let mut seen = Vec::new();
    loop {
        let page = control.audit(&filter, 2).await.unwrap();
        let Some(last) = page.last() else { break };
        filter.before = Some(last.cursor());
        seen.extend(page.into_iter().map(|entry| (entry.at, entry.subject)));
    }
    assert_eq!(seen[0], (at(9), "p3".to_owned()));
    assert!(seen.is_sorted_by(|a, b| a.0 >= b.0));
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 6);
    let of = |project: Option<&str>, action| AuditFilter {
        project: project.map(str::to_owned),
        action,
        ..AuditFilter::default()
    };
    let of_p3 = control.audit(&of(Some("p3"), None), 10).await.unwrap();
    assert_eq!(of_p3.len(), 2);
    assert_eq!((&of_p3[0].actor, &of_p3[1].actor), (&*ANN, &bob));
    assert_eq!(
        of_p3[0].detail,
        json!({
            "name": "Three", "quotas": {"events_per_second": null, "bytes_per_day": null}, "signal_quotas": {},
            "device_tokens": "optional",
        })
    );
    let updates = of(None, Some(Action::ProjectUpdated));
    assert_eq!(control.audit(&updates, 10).await.unwrap(), of_p3[..1]);
    let by_ann = AuditFilter {
        actor: Some(ANN.clone()),
        ..AuditFilter::default()
    };
    assert_eq!(control.audit(&by_ann, 10).await.unwrap(), of_p3[..1]);
    let first_second = AuditFilter {
        from: Some(at(0)),
        to: Some(at(1)),
        subject: Some("p1".to_owned()),
        ..AuditFilter::default()
    };
    let found = control.audit(&first_second, 10).await.unwrap();
    assert_eq!((found.len(), found[0].subject.as_str()), (1, "p1"));
}

async fn ingest_keys_rotate_with_an_overlap(place: Place) {
    let control = &place.control;
    let ann = &*ANN;
    with_project(control, "shop").await;
    let old = control
        .create_ingest_key(ingest_key("shop", "old"), ann, at(1))
        .await
        .unwrap();
    let any = NewIngestKey {
        app_ids: None,
        ..ingest_key("shop", "new")
    };
    let new = control.create_ingest_key(any, ann, at(2)).await.unwrap();
    let again = control.create_ingest_key(ingest_key("shop", "old"), ann, at(2));
    refused(control, again, ControlError::AlreadyExists).await;
    let expiry = |expires_at| KeyChange {
        project: "shop".to_owned(),
        id: old.id,
        expires_at: Some(expires_at),
        quotas: None,
    };
    control
        .change_ingest_key(expiry(Some(at(10))), ann, at(3))
        .await
        .unwrap();
    let ids = async |now| -> Vec<_> {
        let keys = control.active_ingest_keys(now).await.unwrap();
        keys.iter().map(|key| key.id).collect()
    };
    assert_eq!(ids(at(9)).await, [old.id, new.id]);
    assert_eq!(ids(at(10)).await, [new.id]);
    let revived = control.change_ingest_key(expiry(None), ann, at(10));
    refused(control, revived, ControlError::NotFound).await;
    control
        .revoke_ingest_key("shop", new.id, ann, at(11))
        .await
        .unwrap();
    assert!(ids(at(11)).await.is_empty());
    let keys = control.ingest_keys("shop").await.unwrap();
    assert_eq!((keys[0].id, keys[1].id), (new.id, old.id));
    assert!(!keys[0].is_active(at(11)) && keys[1].is_active(at(9)));
    assert_eq!((&keys[0].app_ids, &keys[1].app_ids), (&None, &old.app_ids));
    assert_eq!(keys[1].created_by, "cli:ann");
    assert_eq!(keys[1].quotas, old.quotas);
}

async fn only_the_named_fields_of_a_key_change(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let key = ingest_key("shop", "secret");
    let key = control.create_ingest_key(key, &ANN, at(1)).await.unwrap();
    let change = |expires_at, quotas| KeyChange {
        project: "shop".to_owned(),
        id: key.id,
        expires_at,
        quotas,
    };
    let quotas = Quotas {
        events_per_second: None,
        bytes_per_day: Some(7),
    };
    let before = done(control).await.len();
    for (time, expires_at, quotas) in [
        (2, None, Some(quotas)),
        (3, Some(Some(at(100))), None),
        (4, Some(None), Some(Quotas::default())),
    ] {
        let wanted = change(expires_at, quotas);
        control
            .change_ingest_key(wanted, &ANN, at(time))
            .await
            .unwrap();
        let now = control.ingest_keys("shop").await.unwrap().remove(0);
        let seen = (now.expires_at, now.quotas);
        let expected = match time {
            2 => (None, quotas.unwrap()),
            3 => (
                Some(at(100)),
                Quotas {
                    events_per_second: None,
                    bytes_per_day: Some(7),
                },
            ),
            _ => (None, Quotas::default()),
        };
        assert_eq!(seen, expected);
    }
    let actions = [
        "ingest_key.quotas_set",
        "ingest_key.expiry_set",
        "ingest_key.expiry_set",
        "ingest_key.quotas_set",
    ];
    assert_eq!(done(control).await[before..], actions);
    let nothing = control.change_ingest_key(change(None, None), &ANN, at(5));
    let reason = "nothing to change; set `expires_at` or `quotas`".to_owned();
    refused(control, nothing, ControlError::Invalid(reason)).await;
    let foreign = KeyChange {
        project: "bank".to_owned(),
        ..change(Some(None), None)
    };
    let foreign = control.change_ingest_key(foreign, &ANN, at(5));
    refused(control, foreign, ControlError::NotFound).await;
}

async fn other_projects_cannot_see_or_revoke_keys_and_tokens(place: Place) {
    let control = &place.control;
    let ann = &*ANN;
    with_project(control, "shop").await;
    with_project(control, "bank").await;
    let key = control
        .create_ingest_key(ingest_key("bank", "secret"), ann, at(1))
        .await
        .unwrap();
    let foreign = control.revoke_ingest_key("shop", key.id, ann, at(2));
    refused(control, foreign, ControlError::NotFound).await;
    let token = control
        .create_api_token(api_token(Some("bank"), "t"), ann, at(1))
        .await
        .unwrap();
    for project in [Some("shop"), None] {
        let foreign = control.revoke_api_token(token.id, project, ann, at(2));
        refused(control, foreign, ControlError::NotFound).await;
    }
    assert!(control.ingest_keys("shop").await.unwrap().is_empty());
    assert!(control.api_tokens(None).await.unwrap().is_empty());
}

async fn device_keys_are_kept_until_revoked(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let new = device_key();
    let key = control
        .create_device_key(new.clone(), &ANN, at(1))
        .await
        .unwrap();
    assert_eq!(control.active_device_keys().await.unwrap()[0], key);
    control
        .revoke_device_key("shop", key.id, &ANN, at(2))
        .await
        .unwrap();
    let twice = control.revoke_device_key("shop", key.id, &ANN, at(3)).await;
    assert_eq!(twice, Err(ControlError::NotFound));
    assert!(control.active_device_keys().await.unwrap().is_empty());
    let kept = control.device_keys("shop").await.unwrap();
    assert_eq!(
        (kept[0].revoked_at, &kept[0].material),
        (Some(at(2)), &new.material)
    );
}

fn device_key() -> NewDeviceKey {
    NewDeviceKey {
        project: "shop".to_owned(),
        algorithm: DeviceKeyAlgorithm::EdDsa,
        material: Hidden("-----BEGIN PUBLIC KEY-----".to_owned()),
        audience: "unjank".to_owned(),
    }
}

async fn device_tokens_can_be_required_only_with_an_active_device_key(place: Place) {
    let control = &place.control;
    let ann = &*ANN;
    with_project(control, "shop").await;
    with_project(control, "bank").await;
    let asking = |name| ProjectSettings {
        device_tokens: DeviceTokens::Required,
        ..settings(name)
    };
    let locked_out = "the project has no active device key, so every device would be locked out; register one first";
    let locked_out = ControlError::Invalid(locked_out.to_owned());
    let made = control.create_project("new", asking("New"), ann, at(1));
    refused(control, made, locked_out.clone()).await;
    let key = control.create_device_key(device_key(), ann, at(1)).await;
    let key = key.unwrap().id;
    for (project, error) in [
        ("bank", locked_out.clone()),
        ("none", ControlError::NotFound),
    ] {
        let foreign = control.update_project(project, to(asking("Bank")), ann, at(2));
        refused(control, foreign, error).await;
    }
    let asked = control
        .update_project("shop", to(asking("Shop")), ann, at(3))
        .await;
    assert_eq!(asked.unwrap().settings, asking("Shop"));
    // The last key can be revoked, and the project can still be changed.
    control
        .revoke_device_key("shop", key, ann, at(4))
        .await
        .unwrap();
    let named = control
        .update_project("shop", to(asking("Named")), ann, at(5))
        .await;
    assert_eq!(named.unwrap().settings, asking("Named"));
    let open = control
        .update_project("shop", to(settings("Open")), ann, at(6))
        .await;
    assert_eq!(open.unwrap().settings, settings("Open"));
    let again = control.update_project("shop", to(asking("Shop")), ann, at(7));
    refused(control, again, locked_out).await;
}

fn api_token(project: Option<&str>, secret: &str) -> NewApiToken {
    NewApiToken {
        project: project.map(str::to_owned),
        name: "ci".to_owned(),
        prefix: "ujt_1234".to_owned(),
        hash: hash(secret),
        role: Role::Editor,
        scope: TokenScope::All,
        expires_at: Some(at(100)),
    }
}

async fn api_tokens_are_found_by_hash(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let token = control
        .create_api_token(api_token(Some("shop"), "one"), &ANN, at(1))
        .await
        .unwrap();
    let instance = control
        .create_api_token(api_token(None, "two"), &ANN, at(2))
        .await
        .unwrap();
    let before = done(control).await;
    control.touch_api_token(token.id, at(5)).await.unwrap();
    control.touch_api_token(token.id, at(4)).await.unwrap();
    assert_eq!(done(control).await, before);
    let found = control.api_token_by_hash(hash("one")).await.unwrap();
    assert_eq!(
        (found.id, found.last_used_at, found.role),
        (token.id, Some(at(5)), Role::Editor)
    );
    assert!(found.is_active(at(99)) && !found.is_active(at(100)));
    control
        .revoke_api_token(instance.id, None, &ANN, at(6))
        .await
        .unwrap();
    assert_eq!(
        control.api_tokens(None).await.unwrap()[0].revoked_at,
        Some(at(6))
    );
    assert_eq!(control.api_tokens(Some("shop")).await.unwrap(), [found]);
    assert_eq!(
        control.api_token_by_hash(hash("three")).await.unwrap_err(),
        ControlError::NotFound
    );
}

async fn no_secret_is_printed_or_audited(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let key = control
        .create_ingest_key(ingest_key("shop", "secret"), &ANN, at(1))
        .await
        .unwrap();
    let device_key = NewDeviceKey {
        project: "shop".to_owned(),
        algorithm: DeviceKeyAlgorithm::Hs256,
        material: Hidden("sealed-secret".to_owned()),
        audience: "unjank".to_owned(),
    };
    let device_key = control
        .create_device_key(device_key, &ANN, at(2))
        .await
        .unwrap();
    let audit = control.audit(&AuditFilter::default(), 10).await.unwrap();
    let printed = format!("{key:?}{device_key:?}{audit:?}");
    assert!(printed.contains("SecretHash(hidden)"));
    let first_bytes = format!("{:?}", &hash("secret").0[..4]);
    for secret in ["sealed-secret", first_bytes.trim_matches(['[', ']'])] {
        assert!(!printed.contains(secret), "{secret} in {printed}");
    }
}
