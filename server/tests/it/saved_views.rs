//! Saved views over HTTP: who reads and changes them, and that no path of the server's own is saved.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::Server;

const VIEWS: &str = "/api/v1/projects/default/views";

#[tokio::test(flavor = "multi_thread")]
async fn editors_save_rename_and_delete_views_that_viewers_read() {
    let server = Server::away(&[]).await;
    let editor = server.token("editor --project default").await;
    let viewer = server.token("viewer --project default").await;
    let call = async |token: &str, method, path: &str, body| {
        server
            .call(token, method, &format!("{VIEWS}{path}"), body)
            .await
    };
    let view = json!({"name": "Checkout", "address": "/jank?range=24h&page=Checkout"});
    let made = call(&editor, Method::POST, "", Some(view.clone())).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let again = call(&editor, Method::POST, "", Some(view.clone())).await;
    assert_eq!(again.outcome(), (409, "exists".to_owned()));
    let elsewhere = json!({"name": "Elsewhere", "address": "https://example.com"});
    let elsewhere = call(&editor, Method::POST, "", Some(elsewhere)).await;
    assert_eq!(elsewhere.outcome(), (422, "invalid".to_owned()));
    let foreign = call(&viewer, Method::POST, "", Some(view)).await;
    assert_eq!(foreign.status, 403);

    let path = format!("/{}", made.body["id"].as_str().unwrap());
    let rename = Some(json!({"name": "Checkout, last day"}));
    let renamed = call(&editor, Method::PATCH, &path, rename).await;
    assert_eq!(renamed.status, 200, "{}", renamed.body);
    let listed = call(&viewer, Method::GET, "", None).await.body;
    assert_eq!(listed["views"], json!([renamed.body]));
    assert_eq!(listed["views"][0]["name"], "Checkout, last day");
    assert_eq!(
        listed["views"][0]["address"],
        "/jank?range=24h&page=Checkout"
    );

    let deleted = call(&editor, Method::DELETE, &path, None).await;
    assert_eq!(deleted.status, 204);
    let gone = call(&editor, Method::DELETE, &path, None).await;
    assert_eq!(gone.outcome(), (404, "not_found".to_owned()));
    let listed = call(&viewer, Method::GET, "", None).await.body;
    assert_eq!(listed["views"], json!([]));

    let admin = server.token("admin").await;
    let audit = "/api/v1/projects/default/audit?action=saved_view.deleted";
    let entries = server.call(&admin, Method::GET, audit, None).await.body;
    assert_eq!(entries["entries"][0]["subject_name"], "Checkout, last day");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_documented_path_of_the_server_is_saved_as_a_view() {
    let server = Server::away(&[]).await;
    let editor = server.token("editor --project default").await;
    let document = include_str!("../../openapi.json");
    let document: Value = serde_json::from_str(document).unwrap();
    for path in document["paths"].as_object().unwrap().keys() {
        let address = path.replace(['{', '}'], "");
        let view =
            json!({"name": address.chars().take(80).collect::<String>(), "address": address});
        let answer = server.call(&editor, Method::POST, VIEWS, Some(view)).await;
        assert_eq!(answer.outcome(), (422, "invalid".to_owned()), "{address}");
    }
}
