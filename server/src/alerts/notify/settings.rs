//! The settings of a channel: a public part and a sealed one. Both are checked before they are saved.

use reqwest::Url;
use serde::{Deserialize, Serialize};
use unjank_database::{Channel, ChannelKind, ControlError};
use uuid::Uuid;

use super::Outbound;

/// The default hour of the daily digest: 07:00 UTC.
const DIGEST_HOUR: u8 = 7;
const MOST_RECIPIENTS: usize = 20;
const SHORTEST_KEY: usize = 16;
const LONGEST_TEXT: usize = 4_096;

/// The settings that the API returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChannelSettings {
    /// The recipients of mail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// The host of the URL, by which users recognize the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The hour of the daily digest, in UTC.
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

/// The settings that the API never returns. Their `Debug` output hides them.
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
    /// Whether a URL has another origin than the saved one.
    #[must_use]
    pub fn changes_origin(&self, url: &str) -> bool {
        let origin = |url: &str| Url::parse(url).map(|url| url.origin()).ok();
        origin(url) != origin(&self.url)
    }
}

impl std::fmt::Debug for ChannelSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChannelSecret(***)")
    }
}

/// Why the settings of a channel are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidChannel(pub String);

impl ChannelSettings {
    /// Reads the settings of a channel.
    ///
    /// # Errors
    /// If they are not readable, for example because a newer version wrote them.
    pub fn read(channel: &Channel) -> Result<Self, ControlError> {
        serde_json::from_value(channel.fields.settings.clone()).map_err(|error| {
            let name = &channel.fields.name;
            ControlError::Unavailable(format!(
                "the settings of the channel {name} are not readable: {error}"
            ))
        })
    }
}

impl ChannelSecret {
    /// Returns the context that the secret of a channel is sealed with.
    #[must_use]
    pub fn context(channel: Uuid) -> String {
        format!("channel:{channel}")
    }

    pub fn parse(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|_| "the data is damaged".to_owned())
    }

    /// Checks all settings of a channel, and sets the host.
    pub fn check(
        &self,
        kind: ChannelKind,
        settings: &mut ChannelSettings,
        outbound: &Outbound,
    ) -> Result<(), InvalidChannel> {
        let fault = |text: &str| Err(InvalidChannel(text.to_owned()));
        if settings.digest_hour > 23 {
            return fault("`digest_hour` must be 0 to 23, in UTC");
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
            return fault(
                "`url`, `signing_key`, `username` and `password` must be at most 4096 bytes each",
            );
        }
        if self.password.is_some() && self.username.is_none() {
            return fault("`password` requires `username`");
        }
        settings.host = None;
        if kind == ChannelKind::Email {
            if *self != Self::default() {
                return fault(
                    "a mail channel has no `url` and no secrets: set the recipients in `to`",
                );
            }
            return recipients(&settings.to);
        }
        if !settings.to.is_empty() {
            return fault("`to` is only for mail: remove it");
        }
        if self.url.is_empty() {
            return fault("`url` is missing: set the address to post messages to");
        }
        let url = outbound.target(&self.url).map_err(InvalidChannel)?;
        settings.host = url.host_str().map(|host| with_port(&url, host));
        match (&self.signing_key, kind) {
            (Some(_), ChannelKind::Slack | ChannelKind::Alertmanager) => {
                fault("only a webhook is signed: remove `signing_key`")
            }
            (Some(key), _) if key.len() < SHORTEST_KEY => {
                fault("`signing_key` must have at least 16 characters: use `openssl rand -hex 32`")
            }
            _ => Ok(()),
        }
    }
}

fn with_port(url: &Url, host: &str) -> String {
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

fn recipients(to: &[String]) -> Result<(), InvalidChannel> {
    if to.is_empty() || to.len() > MOST_RECIPIENTS {
        return Err(InvalidChannel(format!(
            "`to` must have 1 to {MOST_RECIPIENTS} addresses"
        )));
    }
    for address in to {
        if address.parse::<lettre::Address>().is_err() {
            return Err(InvalidChannel(format!(
                "`to`: {address} is not an e-mail address"
            )));
        }
    }
    Ok(())
}
