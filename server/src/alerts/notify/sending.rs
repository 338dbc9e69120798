//! One attempt to send a message, in the format of its channel.

use unjank_database::{Channel, ChannelKind};

use super::message::OutgoingMessage;
use super::outbound::send;
use super::outcome::Outcome;
use super::settings::{ChannelSecret, ChannelSettings};
use super::{Notifier, alertmanager, mail, signature, slack, webhook};

impl Notifier {
    /// Sends a message in one attempt.
    pub async fn send(&self, channel: &Channel, parcel: &OutgoingMessage<'_>) -> Outcome {
        let context = ChannelSecret::context(channel.id);
        let opened = self.secret.open(&context, &channel.fields.secret.0);
        let secret = opened
            .map_err(|error| error.to_string())
            .and_then(|text| ChannelSecret::parse(&text));
        let secret = match secret {
            Ok(secret) => secret,
            Err(error) => {
                return Outcome::Never(format!(
                    "the secrets of this channel cannot be decrypted ({error}): enter its URL and secrets again"
                ));
            }
        };
        if channel.kind == ChannelKind::Email {
            return match ChannelSettings::read(channel) {
                Ok(settings) => mail::send(&self.mailer, &settings.to, parcel).await,
                Err(error) => Outcome::Never(error.to_string()),
            };
        }
        match self.request(channel, &secret, parcel) {
            Ok(request) => send(request).await,
            Err(error) => Outcome::Never(error),
        }
    }

    fn request(
        &self,
        channel: &Channel,
        secret: &ChannelSecret,
        parcel: &OutgoingMessage<'_>,
    ) -> Result<reqwest::RequestBuilder, String> {
        let mut url = self.outbound.target(&secret.url)?;
        let body = match channel.kind {
            ChannelKind::Webhook => webhook::body(channel, parcel),
            ChannelKind::Slack => slack::body(parcel, &url),
            ChannelKind::Alertmanager | ChannelKind::Email => {
                let path = format!("{}/api/v2/alerts", url.path().trim_end_matches('/'));
                url.set_path(&path);
                alertmanager::body(parcel)
            }
        };
        let body = body.to_string().into_bytes();
        let signed = secret
            .signing_key
            .as_ref()
            .map(|key| signature::headers(key, parcel.now, &body));
        let mut request = self.outbound.post(url, parcel.key, body);
        for (name, value) in signed.into_iter().flatten() {
            request = request.header(name, value);
        }
        if let Some(user) = &secret.username {
            request = request.basic_auth(user, secret.password.as_ref());
        }
        Ok(request)
    }
}
