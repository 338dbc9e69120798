//! Messages for incoming webhooks of Slack and those who speak like it (Mattermost, Rocket.Chat, Discord's `/slack`).

use serde_json::{Value, json};

use super::digest::digest_text;
use super::message::{Message, Parcel};

/// Slack cuts longer texts off.
const MOST_CHARS: usize = 12_000;

pub(super) fn body(parcel: &Parcel<'_>) -> Value {
    let text = match parcel.message {
        Message::Incidents(told) => {
            let lines = told.incidents.iter().map(|incident| {
                format!(
                    "• {} (<{}|open>)",
                    escaped(&incident.summary),
                    parcel.link(incident)
                )
            });
            let lines: Vec<_> = lines.collect();
            lines.join("\n")
        }
        Message::Digest { digest } => format!("```\n{}\n```", escaped(&digest_text(digest))),
    };
    let text = format!("*{}*\n{text}", escaped(parcel.subject));
    json!({"text": text.chars().take(MOST_CHARS).collect::<String>()})
}

/// The three characters that mean something to Slack.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
