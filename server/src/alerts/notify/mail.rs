//! Sends mail through the operator's mail server, as text and as HTML that `maud` escapes.

use std::time::{Duration, UNIX_EPOCH};

use lettre::message::header::ContentType;
use lettre::message::{Attachment, Mailbox, MultiPart, SinglePart};
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use maud::{DOCTYPE, Markup, html};
use sha2::{Digest as _, Sha256};
use unjank_foundation::clock::UnixTime;

use super::digest::{digest_html, digest_text, traffic_csv, users_csv};
use super::message::{Message, OutgoingMessage};
use super::outcome::Outcome;
use super::signature::hex;

/// The timeout of each SMTP command.
const LONGEST: Duration = Duration::from_secs(10);

/// The mail server of the settings, if there is one. Its `Debug` output hides the password.
#[derive(Clone)]
pub struct Mailer(Option<(AsyncSmtpTransport<Tokio1Executor>, Mailbox)>);

impl std::fmt::Debug for Mailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() {
            "Mailer(***)"
        } else {
            "Mailer(none)"
        })
    }
}

impl Mailer {
    /// Takes a URL such as `smtps://user:password@host` or `smtp://host:587?tls=required`.
    pub fn new(url: Option<&str>, from: &str) -> anyhow::Result<Self> {
        let Some(url) = url else {
            return Ok(Self(None));
        };
        // No error may quote the URL, which contains a password.
        let transport = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(|_| {
            anyhow::anyhow!(
                "the URL of the mail server must have a form such as smtps://user:password@mail.example.com or smtp://mail.example.com:587?tls=required"
            )
        })?;
        let from = from
            .parse()
            .map_err(|error| anyhow::anyhow!("invalid sender of mail `{from}`: {error}"))?;
        Ok(Self(Some((transport.timeout(Some(LONGEST)).build(), from))))
    }
}

pub(super) async fn send(mailer: &Mailer, to: &[String], parcel: &OutgoingMessage<'_>) -> Outcome {
    let Some((transport, from)) = &mailer.0 else {
        return Outcome::later(
            "no mail server is configured: the operator must set UNJANK_SMTP_URL",
        );
    };
    let mail = match written(from.clone(), to, parcel) {
        Ok(mail) => mail,
        Err(error) => return Outcome::Never(format!("the mail cannot be composed: {error}")),
    };
    match transport.send(mail).await {
        Ok(_) => Outcome::Delivered,
        Err(error) if error.is_permanent() => {
            Outcome::Never(format!("the mail server refused the mail: {error}"))
        }
        Err(error) => Outcome::later(format!("the mail could not be sent: {error}")),
    }
}

fn written(
    from: Mailbox,
    to: &[String],
    parcel: &OutgoingMessage<'_>,
) -> anyhow::Result<lettre::Message> {
    // Every attempt has the same id, so that mailboxes can drop duplicates.
    let id = hex(&Sha256::digest(parcel.key));
    let domain = from.email.domain().to_owned();
    let sent_at = UNIX_EPOCH + parcel.now.since(UnixTime::default());
    let mut mail = lettre::Message::builder()
        .from(from)
        .subject(one_line(parcel.subject))
        .date(sent_at)
        .message_id(Some(format!("<{id}@{domain}>")));
    for address in to {
        mail = mail.to(address.parse()?);
    }
    let both = MultiPart::alternative_plain_html(text(parcel), page(parcel).into_string());
    let Message::Digest { digest } = parcel.message else {
        return Ok(mail.multipart(both)?);
    };
    let table = |kind: &str, text: String| -> anyhow::Result<SinglePart> {
        let name = format!("{kind}-{}-{}.csv", digest.project, digest.day);
        Ok(Attachment::new(name).body(text, ContentType::parse("text/csv")?))
    };
    let parts = MultiPart::mixed()
        .multipart(both)
        .singlepart(table("traffic", traffic_csv(digest))?)
        .singlepart(table("traffic-of-users", users_csv(digest))?);
    Ok(mail.multipart(parts)?)
}

fn one_line(text: &str) -> String {
    text.chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

fn text(parcel: &OutgoingMessage<'_>) -> String {
    match parcel.message {
        Message::Digest { digest } => digest_text(digest),
        Message::Incidents(message) => {
            let parts = message
                .incidents
                .iter()
                .map(|one| format!("{}\n{}\n{}\n", one.title, one.summary, parcel.link(one)));
            parts.collect::<Vec<_>>().join("\n")
        }
    }
}

fn page(parcel: &OutgoingMessage<'_>) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { (parcel.subject) } }
            body style="font-family: sans-serif; line-height: 1.4" {
                @match parcel.message {
                    Message::Digest { digest } => { (digest_html(digest)) }
                    Message::Incidents(message) => {
                        h2 { (parcel.subject) }
                        @for one in &message.incidents {
                            p {
                                strong { (one.title) } " (" (one.severity.as_str()) ")" br;
                                (one.summary) br;
                                a href=(parcel.link(one)) { "Open" }
                            }
                        }
                    }
                }
                p style="color: #666" { "Sent by unjank for the project " (parcel.project) "." }
            }
        }
    }
}
