//! Settings of notifications: the allowed targets and the mail server.

use clap::Args;
use unjank_foundation::secret::Secret;

use crate::alerts::notify::AllowedTargets;

/// A part of the settings of `unjank serve`.
#[derive(Args, Clone, Debug)]
pub struct Notifications {
    /// The URL of this server for its users, such as <https://unjank.example.com>. Links in notifications begin with it. Unset: the
    /// address of `--listen`.
    #[arg(long, env = "UNJANK_PUBLIC_URL", value_name = "URL", value_parser = public_url)]
    pub public_url: Option<String>,

    /// Hosts, addresses and networks that notifications may be sent to besides public ones: `alertmanager.internal,10.0.0.0/8`.
    /// Repeatable. Unset: none, so that a channel cannot reach into this server's network.
    #[arg(
        long,
        env = "UNJANK_NOTIFY_ALLOW",
        value_name = "TARGETS",
        default_value = "",
        hide_default_value = true
    )]
    pub notify_allow: Vec<AllowedTargets>,

    /// How long the first incident of a rule waits for others to share one message, in milliseconds.
    #[arg(long, env = "UNJANK_NOTIFY_GROUP_WAIT_MS", value_name = "MS", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    pub notify_group_wait_ms: u64,

    /// The mail server: `smtps://user:password@mail.example.com`, or `smtp://user:password@mail.example.com:587?tls=required`.
    /// Unset: no mail is sent.
    #[arg(
        long,
        env = "UNJANK_SMTP_URL",
        value_name = "URL",
        hide_env_values = true
    )]
    pub smtp_url: Option<Secret>,

    /// The sender of mail.
    #[arg(
        long,
        env = "UNJANK_MAIL_FROM",
        value_name = "ADDRESS",
        default_value = "unjank <unjank@localhost>"
    )]
    pub mail_from: String,
}

impl Notifications {
    pub fn notify_allow(&self) -> AllowedTargets {
        self.notify_allow.iter().cloned().collect()
    }
}

fn public_url(text: &str) -> Result<String, String> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() => Ok(text.trim_end_matches('/').to_owned()),
        _ => Err("must begin with https:// or http://".to_owned()),
    }
}
