//! Classifies a chunk of stored stacks.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use unjank_foundation::clock::UnixTime;
use unjank_stacks::RuleSet;

use crate::store::{Failure, NewClass, StoredStack};

/// The time limit of a chunk. Slow rules end it early, so that other projects get their turn.
const LONGEST_PIECE: Duration = Duration::from_secs(2);

/// Classifies stacks in the order of their hashes until time runs out, but at least one. `now` is the time before they were read.
pub(super) async fn classify(
    rules: &Arc<RuleSet>,
    mut stacks: Vec<StoredStack>,
    now: UnixTime,
) -> Result<Vec<NewClass>, Failure> {
    let rules = Arc::clone(rules);
    let classes = move || {
        stacks.sort_unstable_by_key(|stack| stack.hash);
        let began = Instant::now();
        let class = |stack: StoredStack| NewClass {
            stack_hash: stack.hash,
            class: rules.rules().classify(&stack.frames),
            // Must be later than the row it replaces, even if the clock of the server that wrote that row was ahead.
            classified_at: now.max(stack.classified_at + Duration::from_micros(1)),
        };
        let mut classes = Vec::with_capacity(stacks.len());
        for stack in stacks {
            classes.push(class(stack));
            if began.elapsed() >= LONGEST_PIECE {
                break;
            }
        }
        classes
    };
    let classes = tokio::task::spawn_blocking(classes).await;
    classes.map_err(|error| Failure::Later(error.to_string()))
}
