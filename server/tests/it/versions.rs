//! The versions of the apps, and when each began to reach users.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::asked::Asked;
use crate::server::batch;

const DAY: Duration = Duration::from_secs(86_400);
const HOUR_US: i64 = 3_600_000_000;

/// Sends a batch of each of these installs.
async fn send(asked: &Asked, app: &str, version: &str, installs: &[Uuid]) {
    for install in installs {
        let mut batch = batch();
        batch["resource"]["app_id"] = json!(app);
        batch["resource"]["app_version"] = json!(version);
        batch["resource"]["install_id"] = json!(install);
        batch["batch_id"] = json!(Uuid::new_v4());
        batch["spans"] = json!([]);
        let request = asked.server.request_with("any-key").body(batch.to_string());
        assert_eq!(request.send().await.unwrap().status(), 202);
    }
    asked.server.drained().await;
}

fn installs(count: usize) -> Vec<Uuid> {
    std::iter::repeat_with(Uuid::new_v4).take(count).collect()
}

/// The version, and the hours from the first batch of all to its first batch, to its last one, and until it reached users.
async fn versions(asked: &Asked) -> Vec<(String, i64, i64, Option<i64>)> {
    let answer = asked.ask("versions").await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let all = answer.body["versions"].as_array().unwrap().clone();
    let begin = all.iter().map(|one| one["first_seen"].as_i64().unwrap());
    let begin = begin.min().unwrap();
    let hours = |time: &Value| time.as_i64().map(|time| (time - begin) / HOUR_US);
    let row = |one: &Value| {
        let name = format!(
            "{} {}",
            one["app_id"].as_str().unwrap(),
            one["app_version"].as_str().unwrap()
        );
        let (first, last) = (hours(&one["first_seen"]), hours(&one["last_seen"]));
        (
            name,
            first.unwrap(),
            last.unwrap(),
            hours(&one["reached_users"]),
        )
    };
    all.iter().map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_reaches_users_on_the_first_day_with_five_percent_of_installs() {
    let asked = Asked::of(&[]).await;
    let users = installs(150);
    // A tester and then a few users run the next version, which are less than 5 % of the installs.
    send(&asked, "shop", "4.11.0", &users).await;
    send(&asked, "shop", "4.12.0", &installs(1)).await;
    asked.server.pass(DAY);
    send(&asked, "shop", "4.11.0", &users[4..]).await;
    send(&asked, "shop", "4.12.0", &users[..4]).await;
    asked.server.pass(DAY);
    send(&asked, "shop", "4.11.0", &users[10..]).await;
    send(&asked, "shop", "4.12.0", &users[..10]).await;
    asked.server.pass(DAY);
    // Another app has its own installs, and its first version was in use when its data begins.
    send(&asked, "till", "1.0", &installs(1)).await;

    let found = versions(&asked).await;
    let [new, old, till] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!((new.0.as_str(), new.1, new.2), ("shop 4.12.0", 0, 48));
    // The day of UTC begins up to 24 hours before.
    assert!(
        new.3.is_some_and(|hour| (25..=48).contains(&hour)),
        "{new:?}"
    );
    assert_eq!((old.0.as_str(), old.2, old.3), ("shop 4.11.0", 48, None));
    assert_eq!((till.0.as_str(), till.1, till.3), ("till 1.0", 72, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_reaches_users_in_its_first_hour_if_it_is_rolled_out_at_once() {
    let asked = Asked::of(&[]).await;
    send(&asked, "shop", "4.11.0", &installs(2)).await;
    asked.server.pass(DAY);
    send(&asked, "shop", "4.12.0", &installs(1)).await;
    let found = versions(&asked).await;
    assert_eq!(
        found,
        [
            ("shop 4.12.0".to_owned(), 24, 24, Some(24)),
            ("shop 4.11.0".to_owned(), 0, 0, None),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_are_listed_by_number_then_by_build_then_by_first_sight() {
    let asked = Asked::of(&[]).await;
    let schemes = [
        ("builds", vec!["4.10.0 (41)", "4.10.0 (9)", "4.9.0 (40)"]),
        ("plus", vec!["1.4.0+10", "1.4.0+9", "1.4.0"]),
        (
            "stages",
            vec!["2.0.0", "2.0.0-RC1", "2.0.0-beta10", "2.0.0-beta2"],
        ),
        ("names", vec!["5.0", "autumn", "summer", "spring"]),
        ("commits", vec!["1.0+0a1b2c3", "1.0+f00ba42"]),
        ("parts", vec!["1.2.3.4.10", "1.2.3.4.9"]),
    ];
    // The last of each list is sent first. Only names and commits depend on it, so the others begin in the middle.
    for place in (0..4).rev() {
        let due = schemes.iter().filter_map(|(app, versions)| {
            let place = match *app {
                "names" | "commits" => place,
                _ => (place + 1) % 4,
            };
            versions.get(place).map(|version| (*app, *version))
        });
        for (app, version) in due {
            send(&asked, app, version, &installs(1)).await;
        }
        asked.server.pass(DAY / 24);
    }
    let found = versions(&asked).await;
    for (app, versions) in schemes {
        let listed = found
            .iter()
            .filter_map(|one| one.0.strip_prefix(&format!("{app} ")));
        assert_eq!(listed.collect::<Vec<_>>(), versions);
    }
}
