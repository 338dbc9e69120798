//! A server with stored batches, and a viewer who queries it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Answer, Server};

pub(crate) struct Asked {
    pub(crate) server: Server,
    pub(crate) token: String,
}

impl Asked {
    /// Starts a server and stores the batches, of which nothing may be rejected.
    pub(crate) async fn of(batches: &[Value]) -> Self {
        let server = Server::start().await;
        server.ready().await;
        for batch in batches {
            let answer = server.send(batch).await;
            assert_eq!(answer.status, 202, "{}", answer.body);
            assert_eq!(answer.body["rejected"], json!([]));
        }
        server.drained().await;
        let token = server.token("viewer --project default").await;
        Self { server, token }
    }

    /// Requests a path of the default project.
    pub(crate) async fn ask(&self, path: &str) -> Answer {
        let path = format!("/api/v1/projects/default/{path}");
        self.server
            .call(&self.token, Method::GET, &path, None)
            .await
    }
}
