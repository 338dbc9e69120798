//! Messages for incoming webhooks of Slack and compatible services (Mattermost, Rocket.Chat, Discord's `/slack`).
//!
//! Names in messages come from apps and are untrusted: they must not mention people, create links or show images.

use std::sync::LazyLock;

use regex::Regex;
use reqwest::Url;
use serde_json::{Value, json};

use super::digest::digest_text;
use super::message::{Message, OutgoingMessage};

/// Slack truncates longer texts.
const MOST_CHARS: usize = 12_000;

/// Slack and others turn such a name into a link.
static WWW: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?i)(\bwww)\.").expect("a pattern that tests compile"));
const NO_WIDTH: char = '\u{200b}';

/// The markup of a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    /// Three special characters are escaped as entities.
    Slack,
    /// The special characters of Markdown are escaped with a backslash. A zero-width space breaks what only some receivers support:
    /// mentions, links in angle brackets, bare links.
    Markdown,
}

impl Dialect {
    fn for_host(url: &Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        let is_slack = ["slack.com", "slack-gov.com"]
            .iter()
            .any(|domain| host == *domain || host.ends_with(&format!(".{domain}")));
        if is_slack {
            Self::Slack
        } else {
            Self::Markdown
        }
    }

    fn escaped(self, text: &str) -> String {
        let mut escaped = String::with_capacity(text.len());
        for char in text.chars() {
            match (self, char) {
                (Self::Slack, '&') => escaped.push_str("&amp;"),
                (Self::Slack, '<') => escaped.push_str("&lt;"),
                (Self::Slack, '>') => escaped.push_str("&gt;"),
                (Self::Markdown, '\\' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '!') => {
                    escaped.extend(['\\', char]);
                }
                (Self::Markdown, '@' | '<' | '~') => escaped.extend([char, NO_WIDTH]),
                (_, char) if char.is_control() => escaped.push(' '),
                (_, char) => escaped.push(char),
            }
        }
        let unlinked = escaped.replace("://", ":\u{200b}//");
        WWW.replace_all(&unlinked, "${1}\u{200b}.").into_owned()
    }

    fn link(self, url: &str) -> String {
        match self {
            Self::Slack => format!("<{url}|open>"),
            Self::Markdown => format!("[open]({url})"),
        }
    }

    fn bold(self, text: &str) -> String {
        let text = self.escaped(text);
        match self {
            Self::Slack => format!("*{text}*"),
            Self::Markdown => format!("**{text}**"),
        }
    }

    /// Formats a block of code. Special in it are only its end, for Slack the three characters, and for others mentions.
    fn block(self, text: &str) -> String {
        let text = text.replace('`', "'");
        let text = match self {
            Self::Slack => text
                .replace('&', "&amp;")
                .replace('<', "&lt;")
                .replace('>', "&gt;"),
            Self::Markdown => text.replace('@', "@\u{200b}"),
        };
        format!("```\n{text}\n```")
    }
}

/// Formats a message for the receiver at a URL.
pub(super) fn body(parcel: &OutgoingMessage<'_>, url: &Url) -> Value {
    let dialect = Dialect::for_host(url);
    let text = match parcel.message {
        Message::Incidents(message) => {
            let lines = message.incidents.iter().map(|incident| {
                let summary = dialect.escaped(&incident.summary);
                format!("• {summary} ({})", dialect.link(&parcel.link(incident)))
            });
            let lines: Vec<_> = lines.collect();
            lines.join("\n")
        }
        Message::Digest { digest } => dialect.block(&digest_text(digest)),
    };
    let text = format!("{}\n{text}", dialect.bold(parcel.subject));
    let text: String = text.chars().take(MOST_CHARS).collect();
    json!({"text": text, "unfurl_links": false, "unfurl_media": false})
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str =
        "<!channel> @all [pay](https://evil.example) ![x](https://evil.example/x.png) *b* `c` &";

    #[test]
    fn names_are_plain_text_for_every_receiver() {
        let slack = "https://hooks.slack.com/services/T/B/x".parse().unwrap();
        let text = Dialect::for_host(&slack).escaped(NAME);
        assert!(text.starts_with("&lt;!channel&gt; @all [pay]"), "{text}");
        for other in [
            "https://chat.example.com/hooks/x",
            "https://discord.com/api/webhooks/1/x/slack",
            "https://notslack.com/",
        ] {
            let text = Dialect::for_host(&other.parse().unwrap()).escaped(NAME);
            let expected = "<\u{200b}\\!channel> @\u{200b}all \\[pay\\]\\(https:\u{200b}//evil";
            assert!(text.starts_with(expected), "{text}");
            assert!(!text.contains("@a"), "{text}");
        }
    }

    #[test]
    fn text_in_a_block_does_not_end_it() {
        for dialect in [Dialect::Slack, Dialect::Markdown] {
            let block = dialect.block("a\n```\n@everyone <!here>");
            assert_eq!(block.matches("```").count(), 2);
            assert!(!block.contains("<!") || dialect == Dialect::Markdown);
        }
    }
}
