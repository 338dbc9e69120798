//! Saved views: their names, their addresses, and their number.

use unjank_database::{ControlError, SavedViewChange};

use super::place::Place;
use super::{ANN, at, done, on_both_engines, refused, with_project};

on_both_engines![
    views_are_listed_by_name_and_changed_and_deleted_in_their_project_only,
    a_name_is_unique_in_its_project,
    a_project_has_at_most_100_views,
    only_addresses_of_pages_are_saved,
];

async fn views_are_listed_by_name_and_changed_and_deleted_in_their_project_only(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    with_project(control, "bank").await;
    let late = ("shop", "Release 4.12", "/?app_version=4.12.0");
    let late = control.create_saved_view(late, &ANN, at(1)).await.unwrap();
    let early = ("shop", "Janks of Müller's team", "/jank?owner=M%C3%BCller");
    let early = control.create_saved_view(early, &ANN, at(2)).await.unwrap();
    let listed = control.saved_views("shop").await.unwrap();
    assert_eq!(listed, [early.clone(), late.clone()]);
    assert_eq!(control.saved_views("bank").await.unwrap(), []);

    let rename = SavedViewChange {
        name: Some("Checkout team"),
        address: None,
    };
    let foreign = control.update_saved_view(("bank", early.id), rename, &ANN, at(3));
    refused(control, foreign, ControlError::NotFound).await;
    let renamed = control
        .update_saved_view(("shop", early.id), rename, &ANN, at(3))
        .await
        .unwrap();
    assert_eq!(
        (renamed.name.as_str(), renamed.address.as_str()),
        ("Checkout team", "/jank?owner=M%C3%BCller")
    );
    assert_eq!((renamed.created_at, renamed.updated_at), (at(2), at(3)));
    let moved = SavedViewChange {
        name: None,
        address: Some("/jank?range=30d"),
    };
    let moved = control
        .update_saved_view(("shop", early.id), moved, &ANN, at(4))
        .await
        .unwrap();
    assert_eq!(
        (moved.name.as_str(), moved.address.as_str()),
        ("Checkout team", "/jank?range=30d")
    );

    let foreign = control.delete_saved_view(("bank", late.id), &ANN, at(5));
    refused(control, foreign, ControlError::NotFound).await;
    control
        .delete_saved_view(("shop", late.id), &ANN, at(5))
        .await
        .unwrap();
    assert_eq!(control.saved_views("shop").await.unwrap(), [moved]);
    let actions = done(control).await;
    assert_eq!(
        actions[2..],
        [
            "saved_view.created",
            "saved_view.created",
            "saved_view.updated",
            "saved_view.updated",
            "saved_view.deleted"
        ]
    );
    let nowhere = control.create_saved_view(("none", "A", "/"), &ANN, at(6));
    refused(control, nowhere, ControlError::NotFound).await;
}

async fn a_name_is_unique_in_its_project(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    with_project(control, "bank").await;
    for project in ["shop", "bank"] {
        let view = (project, "Checkout", "/jank");
        control.create_saved_view(view, &ANN, at(1)).await.unwrap();
    }
    let same = control.create_saved_view(("shop", "Checkout", "/"), &ANN, at(2));
    refused(control, same, ControlError::AlreadyExists).await;
    let other = control
        .create_saved_view(("shop", "Search", "/"), &ANN, at(2))
        .await
        .unwrap();
    let rename = SavedViewChange {
        name: Some("Checkout"),
        address: None,
    };
    let renamed = control.update_saved_view(("shop", other.id), rename, &ANN, at(3));
    refused(control, renamed, ControlError::AlreadyExists).await;
    let long = "é".repeat(81);
    for name in ["", "  ", "a\nb", long.as_str()] {
        let refusal = control
            .create_saved_view(("shop", name, "/"), &ANN, at(4))
            .await;
        assert!(
            matches!(refusal, Err(ControlError::Invalid(_))),
            "{name}: {refusal:?}"
        );
    }
    let longest = "é".repeat(80);
    control
        .create_saved_view(("shop", &longest, "/"), &ANN, at(4))
        .await
        .unwrap();
}

async fn a_project_has_at_most_100_views(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    with_project(control, "bank").await;
    let mut last = None;
    for number in 0..100 {
        let name = format!("View {number}");
        let view = control.create_saved_view(("shop", &name, "/frames"), &ANN, at(number));
        last = Some(view.await.unwrap().id);
    }
    let full = ControlError::Invalid(
        "a project can have at most 100 saved views; delete one first".to_owned(),
    );
    let one_more = control.create_saved_view(("shop", "One more", "/"), &ANN, at(200));
    refused(control, one_more, full).await;
    control
        .create_saved_view(("bank", "One more", "/"), &ANN, at(200))
        .await
        .unwrap();
    control
        .delete_saved_view(("shop", last.unwrap()), &ANN, at(201))
        .await
        .unwrap();
    control
        .create_saved_view(("shop", "One more", "/"), &ANN, at(202))
        .await
        .unwrap();
}

async fn only_addresses_of_pages_are_saved(place: Place) {
    let control = &place.control;
    with_project(control, "shop").await;
    let longest = format!("/jank?{}", "a".repeat(1_994));
    for (number, address) in [
        "/",
        "/?range=24h",
        "/jank/123?app_version=4.12.0&app_version=4.13.0",
        "/spans?name=com.example.Shop%23pay%28%29&from=2026-11-20T10%3A00%3A00Z",
        "/jank?category=caf%C3%A9+au+lait&link=http%3A%2F%2Fexample.com",
        &longest,
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("View {number}");
        let view = control.create_saved_view(("shop", &name, address), &ANN, at(1));
        assert_eq!(view.await.unwrap().address, address);
    }
    let too_long = format!("{longest}a");
    let saved = control.saved_views("shop").await.unwrap();
    for address in [
        "",
        "jank",
        "//example.com",
        "/\\example.com",
        "https://example.com",
        "javascript:alert(1)",
        "/javascript:alert(1)",
        "/jank?next=https://example.com",
        "/jank//x",
        "/jank#top",
        "/jank?a=\"b\"",
        "/jank?a=<b>",
        "/jank?a=b c",
        "/jank?a=b\n",
        "/jank?caf\u{e9}",
        "/jank\u{0}",
        "/../etc",
        "/jank/./x",
        "/api/v1/projects",
        "/v1/config",
        "/openapi.json",
        &too_long,
    ] {
        let create = control.create_saved_view(("shop", "Wrong", address), &ANN, at(2));
        let change = SavedViewChange {
            name: None,
            address: Some(address),
        };
        let update = control.update_saved_view(("shop", saved[0].id), change, &ANN, at(2));
        for refusal in [create.await, update.await] {
            assert!(
                matches!(refusal, Err(ControlError::Invalid(_))),
                "{address}: {refusal:?}"
            );
        }
    }
    assert_eq!(control.saved_views("shop").await.unwrap(), saved);
}
