//! The text of a response, limited to a size that assistants accept.

use anyhow::{Context, bail};

/// About 25,000 tokens, the most that common assistants accept.
const LONGEST: usize = 100_000;

/// Returns the JSON of a response without white space.
pub(super) fn text(answer: &[u8]) -> anyhow::Result<String> {
    let value: serde_json::Value =
        serde_json::from_slice(answer).context("the answer of the server is not JSON")?;
    let text = value.to_string();
    if text.len() > LONGEST {
        bail!(
            "the answer has {} bytes, the limit is {LONGEST}: use a lower `limit`, fewer measures, more filters or a shorter period",
            text.len()
        );
    }
    Ok(text)
}
