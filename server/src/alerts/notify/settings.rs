//! What is set of a channel: what may be shown, and what is sealed. Checked before it is kept.

use reqwest::Url;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Outbound;
use crate::store::control::{Channel, ChannelKind};

/// The hour at which the digest of yesterday is made when nobody chose one: 07:00 UTC.
const DIGEST_HOUR: u8 = 7;
const MOST_RECIPIENTS: usize = 20;
const SHORTEST_KEY: usize = 16;
const LONGEST_TEXT: usize = 4_096;

/// What may be shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSettings {
    /// Whom mail goes to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Of the URL, by which people tell their channels apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Of the day, in UTC.
    #[serde(default = "digest_hour")]
    pub digest_hour: u8,
}

fn digest_hour() -> u8 {
    DIGEST_HOUR
}

impl Default for ChannelSettings {
    fn default() -> Self {
        Self {
            to: Vec::new(),
            host: None,
            digest_hour: DIGEST_HOUR,
        }
    }
}

/// What may not. Does not print.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSecret {
    /// Empty for mail.
    #[serde(default)]
    pub url: String,
    #[serde(default)]
    pub signing_key: Option<String>,
    #[serde(default)]
    pub username: Option<String>,
    #[serde(default)]
    pub password: Option<String>,
}

impl ChannelSecret {
    /// Whether a URL is of another server than the one that is kept.
    #[must_use]
    pub fn leads_elsewhere(&self, url: &str) -> bool {
        let origin = |url: &str| Url::parse(url).map(|url| url.origin()).ok();
        origin(url) != origin(&self.url)
    }
}

impl std::fmt::Debug for ChannelSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChannelSecret(***)")
    }
}

/// Why a channel cannot be like that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unfit(pub String);

impl ChannelSettings {
    #[must_use]
    pub fn of(channel: &Channel) -> Self {
        serde_json::from_value(channel.fields.settings.clone()).unwrap_or_default()
    }
}

impl ChannelSecret {
    /// What a channel's secret is sealed for.
    #[must_use]
    pub fn context(channel: Uuid) -> String {
        format!("channel:{channel}")
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|_| "it is damaged".to_owned())
    }

    /// Checks everything together, and notes the host.
    pub fn check(
        &self,
        kind: ChannelKind,
        settings: &mut ChannelSettings,
        outbound: &Outbound,
    ) -> Result<(), Unfit> {
        let fault = |text: &str| Err(Unfit(text.to_owned()));
        if settings.digest_hour > 23 {
            return fault("`digest_hour` is 0 to 23, in UTC");
        }
        let texts = [
            Some(&self.url),
            self.signing_key.as_ref(),
            self.username.as_ref(),
            self.password.as_ref(),
        ];
        if texts
            .into_iter()
            .flatten()
            .any(|text| text.len() > LONGEST_TEXT)
        {
            return fault("`url`, `signing_key`, `username` and `password` are 4096 bytes at most");
        }
        if self.password.is_some() && self.username.is_none() {
            return fault("a `password` needs a `username`");
        }
        settings.host = None;
        if kind == ChannelKind::Email {
            if *self != Self::default() {
                return fault(
                    "mail goes to `to`, by the operator's mail server: it has no `url`, no secrets",
                );
            }
            return recipients(&settings.to);
        }
        if !settings.to.is_empty() {
            return fault("`to` is for mail");
        }
        if self.url.is_empty() {
            return fault("`url` is missing: where messages are posted");
        }
        let url = outbound.target(&self.url).map_err(Unfit)?;
        settings.host = url.host_str().map(|host| with_port(&url, host));
        match (&self.signing_key, kind) {
            (Some(_), ChannelKind::Slack | ChannelKind::Alertmanager) => {
                fault("only a webhook is signed: leave `signing_key` out")
            }
            (Some(key), _) if key.len() < SHORTEST_KEY => {
                fault("`signing_key` has at least 16 characters: `openssl rand -hex 32` makes one")
            }
            _ => Ok(()),
        }
    }
}

fn with_port(url: &Url, host: &str) -> String {
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn recipients(to: &[String]) -> Result<(), Unfit> {
    if to.is_empty() || to.len() > MOST_RECIPIENTS {
        return Err(Unfit(format!("`to` has 1 to {MOST_RECIPIENTS} addresses")));
    }
    for address in to {
        if address.parse::<lettre::Address>().is_err() {
            return Err(Unfit(format!("`to`: {address} is not an e-mail address")));
        }
    }
    Ok(())
}
