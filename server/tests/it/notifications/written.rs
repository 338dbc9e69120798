//! Messages are saved once and claimed by one server, and alerts are repeated, on both engines.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use unjank_database::{
    Attempt, ChannelFields, ChannelKind, Hidden, NewChannel, NotificationFilter, Severity,
    UnannouncedRule, new_id,
};
use uuid::Uuid;

use super::incidents::Database;
use crate::control::place::Place;
use crate::control::{ANN, at, on_both_engines, with_project};

on_both_engines![
    concurrent_servers_save_one_message,
    a_claim_belongs_to_one_server_until_it_expires,
    announced_incidents_and_their_ends_are_repeated,
    a_lease_belongs_to_one_server_until_it_expires,
];

async fn with_channel(place: &Place) -> Uuid {
    with_project(&place.control, "default").await;
    let fields = ChannelFields {
        name: "ops".to_owned(),
        settings: json!({}),
        secret: Hidden("sealed".to_owned()),
        least_severity: Severity::Warning,
        incidents: true,
        digest: false,
        enabled: true,
    };
    let new = NewChannel {
        id: new_id(at(1)),
        project: "default".to_owned(),
        kind: ChannelKind::Webhook,
        fields,
    };
    let made = place.control.create_channel(&new, &ANN, at(1)).await;
    made.unwrap().id
}

async fn concurrent_servers_save_one_message(place: Place) {
    with_channel(&place).await;
    let other = place.another().await;
    let rule = Database(place.url.clone()).rule().await;
    let unannounced = UnannouncedRule {
        project: "default".to_owned(),
        rule: rule.id.to_string(),
    };
    for round in 1..=5 {
        let fired = rule
            .fire(&["critical", "warning", "info"], at(2).as_micros())
            .await;
        assert_eq!(
            place
                .control
                .unannounced(at(3), at(2) - Duration::from_micros(1))
                .await
                .unwrap(),
            []
        );
        assert_eq!(
            place.control.unannounced(at(3), at(2)).await.unwrap(),
            std::slice::from_ref(&unannounced)
        );
        let writes = (0..6).map(|number| {
            let control = if number % 2 == 0 {
                &place.control
            } else {
                &other
            };
            control.announce_incidents(&unannounced, at(3))
        });
        let written: Result<Vec<_>, _> = join_all(writes).await.into_iter().collect();
        assert_eq!(
            written
                .unwrap()
                .iter()
                .map(|one| one.messages)
                .sum::<usize>(),
            1
        );
        assert_eq!(place.control.unannounced(at(3), at(3)).await.unwrap(), []);
        let filter = NotificationFilter::default();
        let log = place
            .control
            .notifications("default", &filter, 100)
            .await
            .unwrap();
        assert_eq!(log.len(), round);
        assert_eq!(log[0].body["incidents"].as_array().unwrap().len(), 2);
        let named = |id: &Uuid| log.iter().any(|one| one.key.ends_with(&id.to_string()));
        assert!(fired[..2].iter().any(named));
    }
}

async fn a_claim_belongs_to_one_server_until_it_expires(place: Place) {
    let channel = with_channel(&place).await;
    let other = place.another().await;
    let rule = Database(place.url.clone()).rule().await;
    let unannounced = UnannouncedRule {
        project: "default".to_owned(),
        rule: rule.id.to_string(),
    };
    rule.fire(&["critical"], at(2).as_micros()).await;
    place
        .control
        .announce_incidents(&unannounced, at(2))
        .await
        .unwrap();
    let claims = (0..6).map(|number| {
        let control = if number % 2 == 0 {
            &place.control
        } else {
            &other
        };
        control.claim(at(3), at(60), 10)
    });
    let claimed: Result<Vec<_>, _> = join_all(claims).await.into_iter().collect();
    let claimed = claimed.unwrap().concat();
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].channel, channel);
    assert!(other.claim(at(59), at(90), 10).await.unwrap().is_empty());
    // The server died. The next server takes the claim, and the dead one can no longer settle the message.
    let again = other.claim(at(60), at(120), 10).await.unwrap();
    assert_eq!((again.len(), again[0].attempts), (1, 2));
    assert!(!place.control.is_claimed(&claimed[0]).await.unwrap());
    assert!(other.is_claimed(&again[0]).await.unwrap());
    let done = Attempt::Delivered;
    assert!(
        !place
            .control
            .settle(&claimed[0], &done, at(61))
            .await
            .unwrap()
    );
    assert!(other.settle(&again[0], &done, at(61)).await.unwrap());
    assert!(!other.is_claimed(&again[0]).await.unwrap());
    assert!(
        place
            .control
            .claim(at(999), at(1_000), 10)
            .await
            .unwrap()
            .is_empty()
    );
    assert_eq!(place.control.backlog().await.unwrap().waiting, 0);
}

async fn announced_incidents_and_their_ends_are_repeated(place: Place) {
    let control = &place.control;
    let channel = with_channel(&place).await;
    let database = Database(place.url.clone());
    let rule = Database(place.url.clone()).rule().await;
    let unannounced = UnannouncedRule {
        project: "default".to_owned(),
        rule: rule.id.to_string(),
    };
    let announce = async |n: i64| {
        let announced = control.announce_incidents(&unannounced, at(n)).await;
        assert_eq!(announced.unwrap().messages, 1);
    };
    let repeated = async |since: i64| {
        let all = control.incidents_to_repeat(channel, at(since)).await;
        let all = all.unwrap().into_iter();
        all.map(|one| (one.id, one.resolved_at)).collect::<Vec<_>>()
    };
    let first = rule.fire(&["critical"], at(2).as_micros()).await[0];
    assert!(repeated(0).await.is_empty());
    announce(3).await;
    assert_eq!(repeated(3).await, [(first, None)]);
    rule.resolve(&[first], at(10).as_micros()).await;
    assert!(repeated(0).await.is_empty(), "not announced yet");
    announce(11).await;
    assert_eq!(repeated(9).await, [(first, Some(at(10)))]);
    assert!(repeated(10).await.is_empty());
    // The alert fires again, so its earlier end must not be repeated.
    let again = rule.fire(&["critical"], at(20).as_micros()).await[0];
    let labels = format!("(SELECT labels FROM incidents WHERE id = '{first}')");
    let same = format!("UPDATE incidents SET labels = {labels} WHERE id = '{again}'");
    database.execute(&same).await;
    assert!(repeated(9).await.is_empty());
    announce(21).await;
    assert_eq!(repeated(9).await, [(again, None)]);
}

async fn a_lease_belongs_to_one_server_until_it_expires(place: Place) {
    let control = &place.control;
    assert!(control.take_lease("x", "one", at(0), at(10)).await.unwrap());
    assert!(
        !control
            .take_lease("x", "other", at(10), at(20))
            .await
            .unwrap()
    );
    assert!(control.take_lease("x", "one", at(9), at(12)).await.unwrap());
    assert!(
        control
            .take_lease("y", "other", at(9), at(12))
            .await
            .unwrap()
    );
    assert!(
        control
            .take_lease("x", "other", at(13), at(20))
            .await
            .unwrap()
    );
    assert!(
        !control
            .take_lease("x", "one", at(14), at(30))
            .await
            .unwrap()
    );
    // A lease with seven eighths of its time left is not written again. One with less is.
    for (renewed, is_free) in [(2, true), (3, false)] {
        let name = format!("renewed at {renewed}");
        let take = async |holder: &str, now| {
            let taken = control.take_lease(&name, holder, at(now), at(now + 16));
            taken.await.unwrap()
        };
        assert!(take("one", 0).await);
        assert!(take("one", renewed).await);
        assert_eq!(take("other", 17).await, is_free, "{name}");
    }
}
