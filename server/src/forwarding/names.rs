//! Names of obfuscated functions in requests: readable ones if the project has the mapping, otherwise those that devices sent.

use std::collections::HashMap;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;
use unjank_protocol::Frame;
use unjank_stacks::function_key;

use super::Forwarder;
use crate::forward::{Piece, obfuscated_functions, with_names};
use crate::symbols::named_function;

/// How long a request waits for a mapping that is being prepared.
const PATIENCE: Duration = Duration::from_secs(5);

impl Forwarder {
    /// Replaces the keys of functions in a request, once: a repeated request has the same names.
    pub(super) async fn name_functions(&self, project: &str, piece: &mut Piece) {
        if !std::mem::take(&mut piece.has_keys) {
            return;
        }
        let body = piece.body.clone();
        let Ok(reported) = spawn_blocking(move || functions(&body)).await else {
            return;
        };
        let found = self.readable(project, &reported);
        let readable = timeout(PATIENCE, found).await.unwrap_or_default();
        let names: HashMap<_, _> = reported.into_iter().chain(readable).collect();
        let body = piece.body.clone();
        if let Ok(Some(body)) = spawn_blocking(move || with_names(&body, &names)).await {
            piece.body = body;
        }
    }

    /// Returns the functions that a mapping of the project names.
    async fn readable(
        &self,
        project: &str,
        reported: &[(String, Frame<'static>)],
    ) -> Vec<(String, Frame<'static>)> {
        // One request at a time, because mappings take memory while they are open.
        let _turn = self.naming.lock().await;
        let stacks = reported.iter().map(|(_, function)| vec![function.clone()]);
        let revision = self.access.symbol_revisions(project).files;
        let symbolicator = &self.symbolicator;
        let readable = symbolicator.symbolicate(project, revision, stacks.collect());
        match readable.await {
            Ok(readable) => (reported.iter().zip(readable))
                .filter_map(|((key, _), stack)| Some((key.clone(), named_function(&stack.frames)?)))
                .collect(),
            Err(error) => {
                tracing::debug!(project, %error, "functions are forwarded with the names that devices sent");
                Vec::new()
            }
        }
    }
}

/// The obfuscated functions of a request. Other functions may look like them.
fn functions(body: &[u8]) -> Vec<(String, Frame<'static>)> {
    let all = obfuscated_functions(body).into_iter();
    all.filter(|(key, function)| function_key(function).as_ref() == Some(key))
        .collect()
}
