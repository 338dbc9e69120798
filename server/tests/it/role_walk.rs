//! Every route for users and API tokens requires its role.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::Server;

/// Each route for users and API tokens, with the lowest role that can call it.
const ROUTES: &str = "
viewer GET /api/v1/projects/default/alert-rules
viewer GET /api/v1/projects/default/alert-rules/00000000-0000-0000-0000-000000000000
viewer POST /api/v1/projects/default/alert-rules/check
viewer POST /api/v1/projects/default/alert-rules/preview
viewer GET /api/v1/projects/default/alert-rules/templates
editor POST /api/v1/projects/default/alert-rules
editor PUT /api/v1/projects/default/alert-rules/00000000-0000-0000-0000-000000000000
editor DELETE /api/v1/projects/default/alert-rules/00000000-0000-0000-0000-000000000000
viewer GET /api/v1/projects/default/incidents
viewer GET /api/v1/projects/default/incidents/00000000-0000-0000-0000-000000000000
editor POST /api/v1/projects/default/incidents/00000000-0000-0000-0000-000000000000/acknowledge
editor DELETE /api/v1/projects/default/incidents/00000000-0000-0000-0000-000000000000/acknowledge
editor PUT /api/v1/projects/default/incidents/00000000-0000-0000-0000-000000000000/assignee
editor POST /api/v1/projects/default/incidents/00000000-0000-0000-0000-000000000000/comments
editor DELETE /api/v1/projects/default/incidents/00000000-0000-0000-0000-000000000000/comments/00000000-0000-0000-0000-000000000000
editor GET /api/v1/projects/default/assignees
viewer GET /api/v1/projects/default/mutes
editor POST /api/v1/projects/default/mutes
editor DELETE /api/v1/projects/default/mutes/00000000-0000-0000-0000-000000000000
viewer GET /api/v1/projects/default/config
viewer POST /api/v1/projects/default/config/check
viewer POST /api/v1/projects/default/config/preview
viewer POST /api/v1/projects/default/config/device
viewer GET /api/v1/projects/default/config/revisions
viewer GET /api/v1/projects/default/config/revisions/1
viewer GET /api/v1/projects/default/query/no-signal-0
viewer GET /api/v1/projects/default/query/no-signal-0/series
viewer GET /api/v1/projects/default/query/no-signal-0/distribution
viewer GET /api/v1/projects/default/query/no-signal-0/significance
viewer GET /api/v1/projects/default/query/no-signal-0/attributes
viewer GET /api/v1/projects/default/janks/stacks
viewer GET /api/v1/projects/default/janks/flame
viewer GET /api/v1/projects/default/janks/folded
viewer GET /api/v1/projects/default/janks/speedscope
viewer GET /api/v1/projects/default/janks/events
viewer GET /api/v1/projects/default/janks/groups/1
viewer GET /api/v1/projects/default/janks/handling
viewer GET /api/v1/projects/default/janks/groups/1/handling
editor PUT /api/v1/projects/default/janks/groups/1/handling
editor POST /api/v1/projects/default/janks/groups/1/comments
editor DELETE /api/v1/projects/default/janks/groups/1/comments/00000000-0000-0000-0000-000000000000
editor POST /api/v1/projects/default/janks/groups/1/owner-rule
viewer GET /api/v1/projects/default/traces
viewer GET /api/v1/projects/default/export/no-table-0
viewer GET /api/v1/projects/default/report
viewer GET /api/v1/projects/default/books
viewer GET /api/v1/projects/default/traces/00000000000000000000000000000000
viewer GET /api/v1/projects/default/traces/00000000000000000000000000000000/chrome
viewer GET /api/v1/projects/default/spans/inside
viewer GET /api/v1/projects/default/spans/flame
viewer GET /api/v1/projects/default/spans/folded
viewer GET /api/v1/projects/default/spans/speedscope
viewer GET /api/v1/projects/default/spans/packages
viewer GET /api/v1/projects/default/app-starts
viewer GET /api/v1/projects/default/versions
viewer GET /api/v1/projects/default/sessions
viewer GET /api/v1/projects/default/sessions/00000000-0000-0000-0000-000000000000
viewer GET /api/v1/projects/default/keys
viewer GET /api/v1/projects/default/rules
viewer POST /api/v1/projects/default/rules/check
viewer POST /api/v1/projects/default/rules/dry-run
viewer GET /api/v1/projects/default/rules/owners
viewer GET /api/v1/projects/default/rules/revisions
viewer GET /api/v1/projects/default/rules/revisions/1
viewer GET /api/v1/projects/default/rules/reclassification
editor PUT /api/v1/projects/default/rules
editor POST /api/v1/projects/default/rules/rollback
editor PUT /api/v1/projects/default/config
editor POST /api/v1/projects/default/config/rollback
editor POST /api/v1/projects/default/config/kill
viewer GET /api/v1/projects/default/config/kill
editor POST /api/v1/projects/default/config/switch-on
viewer GET /api/v1/projects/default/config/rollout
admin GET /api/v1/projects/default/audit
admin GET /api/v1/projects/default/members
admin PUT /api/v1/projects/default/members/00000000-0000-0000-0000-000000000000
admin DELETE /api/v1/projects/default/members/00000000-0000-0000-0000-000000000000
admin GET /api/v1/projects/default/device-keys
admin POST /api/v1/projects/default/device-keys
admin DELETE /api/v1/projects/default/device-keys/00000000-0000-0000-0000-000000000000
admin GET /api/v1/users
admin POST /api/v1/users
admin DELETE /api/v1/users/00000000-0000-0000-0000-000000000000
admin POST /api/v1/users/00000000-0000-0000-0000-000000000000/enable
admin POST /api/v1/users/00000000-0000-0000-0000-000000000000/invitation
admin DELETE /api/v1/users/00000000-0000-0000-0000-000000000000/invitation
admin GET /api/v1/audit
admin POST /api/v1/projects/default/keys
admin GET /api/v1/projects/default/keys/refused
admin PATCH /api/v1/projects/default/keys/00000000-0000-0000-0000-000000000000
admin DELETE /api/v1/projects/default/keys/00000000-0000-0000-0000-000000000000
admin GET /api/v1/projects/default
admin PATCH /api/v1/projects/default
admin GET /api/v1/projects/default/tokens
admin POST /api/v1/projects/default/tokens
admin DELETE /api/v1/projects/default/tokens/00000000-0000-0000-0000-000000000000
viewer GET /api/v1/projects/default/scrubbing
admin PUT /api/v1/projects/default/scrubbing
admin POST /api/v1/projects/default/scrubbing/dry-run
viewer GET /api/v1/projects/default/storage
admin PUT /api/v1/projects/default/storage
viewer GET /api/v1/projects/default/source-links
editor PUT /api/v1/projects/default/source-links
viewer POST /api/v1/projects/default/source-links/preview
admin GET /api/v1/projects/default/forward
admin PUT /api/v1/projects/default/forward
viewer GET /api/v1/projects/default/trace-links
editor PUT /api/v1/projects/default/trace-links
viewer GET /api/v1/projects/default/views
editor POST /api/v1/projects/default/views
editor PATCH /api/v1/projects/default/views/00000000-0000-0000-0000-000000000000
editor DELETE /api/v1/projects/default/views/00000000-0000-0000-0000-000000000000
admin DELETE /api/v1/projects/default/data
admin GET /api/v1/projects/default/erasures
admin GET /api/v1/projects/default/erasures/00000000-0000-0000-0000-000000000000
admin DELETE /api/v1/projects/default
admin GET /api/v1/erasures
admin GET /api/v1/tokens
admin POST /api/v1/tokens
admin DELETE /api/v1/tokens/00000000-0000-0000-0000-000000000000
admin GET /api/v1/projects
admin POST /api/v1/projects
editor GET /api/v1/projects/default/channels
admin POST /api/v1/projects/default/channels
admin PATCH /api/v1/projects/default/channels/00000000-0000-0000-0000-000000000000
admin DELETE /api/v1/projects/default/channels/00000000-0000-0000-0000-000000000000
admin POST /api/v1/projects/default/channels/00000000-0000-0000-0000-000000000000/test
viewer GET /api/v1/projects/default/notifications
editor POST /api/v1/projects/default/notifications/00000000-0000-0000-0000-000000000000/retry
viewer GET /api/v1/projects/default/digest
viewer GET /api/v1/projects/default/symbols/files
editor DELETE /api/v1/projects/default/symbols/files/00000000-0000-0000-0000-000000000000
viewer GET /api/v1/projects/default/symbols/missing
viewer GET /api/v1/projects/default/symbols/check
";

/// Routes that are public or require only a login.
const WITHOUT_A_ROLE: [&str; 12] = [
    "setup",
    "login",
    "invitation",
    "session",
    "session/refresh",
    "session/methods",
    "session/oidc",
    "session/oidc/callback",
    "me",
    "me/password",
    "me/sessions",
    "me/sessions/{session}",
];

#[test]
fn the_walk_covers_every_documented_route() {
    let document = include_str!("../../openapi.json");
    let document: Value = serde_json::from_str(document).unwrap();
    let mut documented = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        let Some(route) = path.strip_prefix("/api/v1/") else {
            continue;
        };
        if WITHOUT_A_ROLE.contains(&route) {
            continue;
        }
        let methods = operations.as_object().unwrap().keys();
        let methods = methods.filter(|key| *key != "parameters");
        documented
            .extend(methods.map(|method| format!("{} {}", method.to_uppercase(), shape(path))));
    }
    let walked: BTreeSet<String> = ROUTES
        .trim()
        .lines()
        .map(|route| {
            let (_, route) = route.split_once(' ').unwrap();
            let (method, path) = route.split_once(' ').unwrap();
            format!("{method} {}", shape(path))
        })
        .collect();
    assert_eq!(walked, documented);
}

/// Replaces the parameters of a path with `_`.
fn shape(path: &str) -> String {
    let names = |part: &&str| {
        part.starts_with('{')
            || *part == "default"
            || part.chars().any(|char| char.is_ascii_digit())
    };
    let parts = path.trim_start_matches("/api/v1/").split('/');
    let parts: Vec<&str> = parts
        .map(|part| if names(&part) { "_" } else { part })
        .collect();
    parts.join("/")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_requires_its_role() {
    let server = Server::start().await;
    let roles = ["nobody", "viewer", "editor", "admin"];
    let mut tokens = vec!["ujt_nothing".to_owned()];
    for role in &roles[1..] {
        tokens.push(server.token(role).await);
    }
    for route in ROUTES.trim().lines() {
        let [needed, method, path] = route.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{route}")
        };
        let method: Method = method.parse().unwrap();
        let needed = roles.iter().position(|role| *role == needed).unwrap();
        for (has, token) in tokens.iter().enumerate() {
            let answer = server
                .call(token, method.clone(), path, Some(json!("no object")))
                .await;
            let refused = matches!(answer.status.as_u16(), 401 | 403);
            assert_eq!(
                refused,
                has < needed,
                "{method} {path} as {}: {}",
                roles[has],
                answer.status
            );
        }
    }
    // A project's token cannot find out whether another project exists.
    let token = server.token("admin --project default").await;
    let other = server
        .call(&token, Method::GET, "/api/v1/projects/other/config", None)
        .await;
    assert_eq!(other.outcome(), (404, "project_unknown".to_owned()));
    assert_eq!(
        server
            .call(&token, Method::GET, "/api/v1/projects", None)
            .await
            .status,
        403
    );
}
