//! A server that is held up between its claim on a message and the request does not send what another server has sent since.

use std::time::Duration;

use serde_json::json;
use sqlx::{Connection, PgConnection};
use unjank_database::{
    Attempt, NewNotification, Notification, NotificationFilter, NotificationState,
};
use unjank_foundation::clock::UnixTime;

use super::receiver::Receiver;
use super::webhook;
use crate::control::place::Place;
use crate::server::{NOW, Server};
use crate::wait;

async fn only_message(place: &Place) -> Notification {
    let filter = NotificationFilter::default();
    let log = place.control.notifications("default", &filter, 10).await;
    log.unwrap().remove(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_another_server_has_taken_over_is_not_sent_late() {
    let place = Place::postgres().await;
    let settings = [
        "--database-url",
        place.url.as_str(),
        "--notify-allow",
        "127.0.0.1",
    ];
    let server = Server::with(&settings).await;
    let receiver = Receiver::start().await;
    let token = server.token("admin").await;
    let channel = webhook(&server, &token, "ops", &receiver.url).await;
    let message = |key: &str| NewNotification {
        project: "default".to_owned(),
        channel: channel.parse().unwrap(),
        key: key.to_owned(),
        thread: "a rule".to_owned(),
        subject: String::new(),
        body: json!({"status": "firing", "incidents": []}),
    };
    let start = UnixTime::from_micros(NOW);
    let due = start + Duration::from_secs(5);
    let control = &place.control;
    let before = control.finished_erasures("default").await.unwrap();
    let first = control.notify(&message("first"), &before, due).await;
    assert!(first.unwrap());
    // The server claims the message, and then waits to read its channel.
    let mut lock = PgConnection::connect(&place.url).await.unwrap();
    for sql in ["BEGIN", "LOCK TABLE channels IN ACCESS EXCLUSIVE MODE"] {
        sqlx::query(sql).execute(&mut lock).await.unwrap();
    }
    server.pass(Duration::from_secs(6));
    wait::until("the claim of the server", async || {
        only_message(&place).await.state == NotificationState::Sending
    })
    .await;
    // Another server delivers it after the claim has ended.
    let later = start + Duration::from_secs(40);
    let until = later + Duration::from_secs(30);
    let claimed = place.control.claim(later, until, 10).await.unwrap();
    assert_eq!((claimed.len(), claimed[0].attempts), (1, 2));
    let settled = place
        .control
        .settle(&claimed[0], &Attempt::Delivered, later);
    assert!(settled.await.unwrap());
    sqlx::query("COMMIT").execute(&mut lock).await.unwrap();
    lock.close().await.unwrap();
    let second = control.notify(&message("second"), &before, due).await;
    assert!(second.unwrap());
    let received = receiver.has(1).await;
    assert_eq!(received[0].key(), "second");
}
