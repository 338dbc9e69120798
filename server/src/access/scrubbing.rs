//! Saves a project's scrubbing rules, and tries rules on stored texts.

use serde::Serialize;
use unjank_database::{Actor, Control, ControlError, JsonText};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use super::compiling::{Busy, compiling};
use crate::ingest::{Scrubbing, ScrubbingDocument, ScrubbingError};
use crate::store::StoredText;

/// The maximum number of examples in a trial's result.
const MOST_EXAMPLES: usize = 50;
/// The maximum number of characters shown of each.
const MOST_CHARS: usize = 300;

#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error(transparent)]
    Document(#[from] ScrubbingError),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Busy(#[from] Busy),
}

/// Compiles a document off the request threads.
pub async fn compile(document: ScrubbingDocument, actor: &Actor) -> Result<Scrubbing, SaveError> {
    let compiled = compiling(actor.holder(), move || Scrubbing::new(document));
    Ok(compiled.await??)
}

/// Saves a document if it is valid.
pub async fn save(
    control: &Control,
    project: &str,
    document: ScrubbingDocument,
    (actor, at): (&Actor, UnixTime),
) -> Result<(), SaveError> {
    let compiled = compile(document, actor).await?;
    let document = JsonText::new(compiled.document());
    control.set_scrubbing(project, &document, actor, at).await?;
    Ok(())
}

/// The effect of a document on stored texts.
#[derive(Debug, Default, Serialize, ToSchema)]
#[schema(as = ScrubbingTried)]
pub struct Tried {
    /// Distinct texts examined.
    pub texts: usize,
    /// Texts that would change.
    pub changed: usize,
    /// Examples of texts that would change, the most frequent first.
    pub examples: Vec<Example>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScrubbedText)]
pub struct Example {
    /// `span`, `page`, `span_event`, `attribute`, `log_line`, `request_path`, `metric` or `user_id`.
    pub place: String,
    /// The name of the attribute, or empty.
    pub attribute: String,
    /// The number of events of the last day with this text.
    pub events: u64,
    pub before: String,
    pub after: String,
}

/// Tries a document on texts.
pub async fn try_on(
    scrubbing: Scrubbing,
    texts: Vec<StoredText>,
    actor: &Actor,
) -> Result<Tried, SaveError> {
    let tried = compiling(actor.holder(), move || {
        let mut tried = Tried {
            texts: texts.len(),
            ..Tried::default()
        };
        for one in texts {
            let Some(after) = scrubbing.try_on(&one.attribute, &one.text) else {
                continue;
            };
            tried.changed += 1;
            if tried.examples.len() < MOST_EXAMPLES {
                tried.examples.push(Example {
                    place: one.place,
                    attribute: one.attribute,
                    events: one.events,
                    before: one.text.chars().take(MOST_CHARS).collect(),
                    after: after.chars().take(MOST_CHARS).collect(),
                });
            }
        }
        tried
    });
    Ok(tried.await?)
}
