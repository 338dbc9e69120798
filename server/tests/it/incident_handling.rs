//! Comments on incidents and their assignees, over HTTP.

use reqwest::Method;
use serde_json::{Value, json};

use crate::alerts::{Watched, slow_checkout, spans};
use crate::people::{Cookies, admin, as_person};

const PROJECT: &str = "/api/v1/projects/default";

/// A server with one incident.
struct Fired {
    watched: Watched,
    rule: String,
    incident: String,
}

impl Fired {
    async fn start() -> Self {
        let watched = Watched::start().await;
        watched.send(spans("4.12.0", &[800; 20])).await;
        watched.server.drained().await;
        let rule = watched.rule(slow_checkout()).await;
        let found = watched.incidents(|all| all.len() == 1).await;
        Self {
            rule: rule["id"].as_str().unwrap().to_owned(),
            incident: found[0]["id"].as_str().unwrap().to_owned(),
            watched,
        }
    }

    async fn get(&self) -> Value {
        let path = format!("incidents/{}", self.incident);
        self.watched.get(&path).await
    }

    async fn resolve(&self) {
        let path = format!("alert-rules/{}", self.rule);
        let deleted = self.watched.call(Method::DELETE, &path, None).await;
        assert_eq!(deleted.status, 204);
        let is_resolved = |all: &[Value]| all[0]["state"] == "resolved";
        self.watched.incidents(is_resolved).await;
    }

    /// The actions on the incident with a detail of theirs, sorted, because they have the same time.
    async fn audited(&self, detail: &str) -> Vec<String> {
        let admin = self.watched.server.token("admin").await;
        let path = format!("{PROJECT}/audit?subject={}", self.incident);
        let audit = self.watched.server.call(&admin, Method::GET, &path, None);
        let audit = audit.await.body;
        let entries = audit["entries"].as_array().unwrap().iter();
        let entries = entries.map(|one| {
            let action = one["action"].as_str().unwrap();
            format!("{action} {}", one["detail"][detail])
        });
        let mut entries: Vec<String> = entries.collect();
        entries.sort();
        entries
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_stay_with_an_incident_until_their_author_or_an_admin_deletes_them() {
    let fired = Fired::start().await;
    let watched = &fired.watched;
    let comments = format!("incidents/{}/comments", fired.incident);
    let text = "<img src=x onerror=alert(1)> 'a' OR 1=1 --\nKnown since Monday.";
    let body = Some(json!({"text": text}));
    let made = watched.call(Method::POST, &comments, body.clone()).await;
    assert_eq!(made.status, 201, "{}", made.body);
    assert_eq!(made.body["text"], text);
    // The name of the token.
    assert_eq!(made.body["author_name"], "test");
    let long = json!({"text": "x".repeat(2_001)});
    let long = watched.call(Method::POST, &comments, Some(long)).await;
    assert_eq!(long.outcome(), (422, "invalid".to_owned()));

    let viewer = watched.server.token("viewer --project default").await;
    let path = format!("{PROJECT}/{comments}");
    let refused = (watched.server)
        .call(&viewer, Method::POST, &path, body.clone())
        .await;
    assert_eq!(refused.outcome(), (403, "role".to_owned()));
    let path = format!("{PROJECT}/incidents/{}", fired.incident);
    let seen = (watched.server)
        .call(&viewer, Method::GET, &path, None)
        .await;
    assert_eq!(seen.body["comments"], json!([made.body]));
    let listed = watched.get("incidents").await;
    assert_eq!(listed["incidents"][0].get("comments"), None);

    let other = watched.server.token("editor --project default").await;
    let comment = made.body["id"].as_str().unwrap();
    let path = format!("{PROJECT}/{comments}/{comment}");
    let by_other = watched.server.call(&other, Method::DELETE, &path, None);
    assert_eq!(by_other.await.outcome(), (404, "not_found".to_owned()));
    fired.resolve().await;
    assert_eq!(fired.get().await["comments"][0]["text"], text);
    let own = format!("{comments}/{comment}");
    let own = watched.call(Method::DELETE, &own, None).await;
    assert_eq!(own.status, 204);
    assert_eq!(fired.get().await["comments"], json!([]));
    let late = watched.call(Method::POST, &comments, body).await;
    assert_eq!(late.status, 201, "{}", late.body);
    let admin = watched.server.token("admin --project default").await;
    let late = late.body["id"].as_str().unwrap();
    let path = format!("{PROJECT}/{comments}/{late}");
    let by_admin = watched.server.call(&admin, Method::DELETE, &path, None);
    assert_eq!(by_admin.await.status, 204);
    assert_eq!(fired.get().await["comments"], json!([]));
    assert_eq!(
        fired.audited("name").await,
        [
            "incident.comment_deleted \"Checkout is slow\"",
            "incident.comment_deleted \"Checkout is slow\"",
            "incident.commented \"Checkout is slow\"",
            "incident.commented \"Checkout is slow\""
        ]
    );
}

/// The installation as its admin Ann sees it.
struct Ann<'a> {
    fired: &'a Fired,
    cookies: Cookies,
}

impl Ann<'_> {
    async fn call(&self, method: Method, path: &str, body: Value) -> (u16, Value) {
        let server = &self.fired.watched.server;
        let answer = as_person(server, &self.cookies, method, path, body).await;
        (answer.status.as_u16(), answer.body)
    }

    /// Gives a person a role in the project.
    async fn admit(&self, user: &str) {
        let path = format!("/projects/default/members/{user}");
        let admitted = self.call(Method::PUT, &path, json!({"role": "viewer"}));
        assert_eq!(admitted.await.0, 204);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incident_is_assigned_until_its_person_loses_access() {
    let fired = Fired::start().await;
    let watched = &fired.watched;
    let cookies = admin(&watched.server).await;
    let ann = Ann {
        fired: &fired,
        cookies,
    };
    let (_, me) = ann.call(Method::GET, "/me", json!(null)).await;
    let new = json!({"email": "bob@example.com", "name": "Bob"});
    let (_, bob) = ann.call(Method::POST, "/users", new).await;
    let (me, bob) = (me["id"].as_str().unwrap(), bob["id"].as_str().unwrap());
    let path = format!("incidents/{}/assignee", fired.incident);
    let assign = async |body: Value| watched.call(Method::PUT, &path, Some(body)).await;
    let of = async |user: &str| {
        let found = watched.get(&format!("incidents?assignee={user}")).await;
        found["incidents"].as_array().unwrap().clone()
    };

    let stranger = assign(json!({"user": bob})).await;
    assert_eq!(stranger.outcome(), (422, "invalid".to_owned()));
    let without_user = assign(json!({})).await;
    assert_eq!(without_user.outcome(), (422, "invalid_body".to_owned()));
    ann.admit(bob).await;
    let people = watched.get("assignees").await;
    let [ann_body, bob_body] = [
        json!({"user": me, "name": "Ann"}),
        json!({"user": bob, "name": "Bob"}),
    ];
    assert_eq!(people["assignees"], json!([ann_body, bob_body]));
    let assigned = assign(json!({"user": bob})).await;
    assert_eq!(assigned.body["assignee"], bob_body, "{}", assigned.body);
    assert_eq!(assigned.body["comments"], json!([]));
    assert_eq!(of(bob).await[0]["assignee"], bob_body);
    assert!(of(me).await.is_empty());

    let member = format!("/projects/default/members/{bob}");
    ann.call(Method::DELETE, &member, json!(null)).await;
    assert_eq!(fired.get().await.get("assignee"), None);
    assert!(of(bob).await.is_empty());
    ann.admit(bob).await;
    assert_eq!(fired.get().await["assignee"], bob_body);
    let user = format!("/users/{bob}");
    ann.call(Method::DELETE, &user, json!(null)).await;
    assert_eq!(fired.get().await.get("assignee"), None);

    let nobody = assign(json!({"user": null})).await;
    assert_eq!(nobody.status, 200, "{}", nobody.body);
    let own = format!("/projects/default/{path}");
    let (_, own) = ann.call(Method::PUT, &own, json!({"user": me})).await;
    assert_eq!(own["assignee"], ann_body, "{own}");
    fired.resolve().await;
    assert_eq!(fired.get().await["assignee"], ann_body);
    assert_eq!(
        fired.audited("assignee").await,
        [
            "incident.assigned \"Ann\"",
            "incident.assigned \"Bob\"",
            "incident.unassigned null"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incident_of_another_project_is_not_found() {
    let fired = Fired::start().await;
    let cookies = admin(&fired.watched.server).await;
    let ann = Ann {
        fired: &fired,
        cookies,
    };
    let (made, body) = ann
        .call(Method::POST, "/projects", json!({"id": "bank"}))
        .await;
    assert_eq!(made, 201, "{body}");
    let incident = format!("/projects/bank/incidents/{}", fired.incident);
    for (method, path, body) in [
        (Method::GET, "", json!(null)),
        (Method::PUT, "/assignee", json!({"user": null})),
        (Method::POST, "/comments", json!({"text": "hot"})),
    ] {
        let path = format!("{incident}{path}");
        let (status, body) = ann.call(method, &path, body).await;
        assert_eq!(
            (status, &body["code"]),
            (404, &json!("not_found")),
            "{path}"
        );
    }
    let viewer = fired.watched.server.token("viewer --project default").await;
    let path = format!("{PROJECT}/incidents/{}/assignee", fired.incident);
    let body = Some(json!({"user": null}));
    let refused = fired.watched.server.call(&viewer, Method::PUT, &path, body);
    assert_eq!(refused.await.outcome(), (403, "role".to_owned()));
}
