//! Notifications: messages are derived from incidents and from the day that is over, written down, then sent until they arrive.
//!
//! Three tasks: [`tell()`] turns incidents into messages and [`digests()`] makes those of the day, each where the lease is held;
//! [`deliver`] sends what is written, on every server. A message is written once, by its key; it may be *sent* twice when a server dies
//! between the receiver's answer and our note of it, with the same key both times.

mod address_guard;
mod alertmanager;
mod back_off;
mod delivery;
mod digest;
mod digests;
mod mail;
mod message;
mod outbound;
mod sending;
mod settings;
mod signature;
mod slack;
mod tell;
mod webhook;

use std::sync::Arc;

use crate::clock::Clock;
use crate::control::InstanceSecret;
use crate::metrics::NotificationMetrics;
use crate::store::ClickHouse;
use crate::store::control::Control;

pub use self::address_guard::AllowedTargets;
pub use self::back_off::Wait;
pub use self::delivery::deliver;
pub use self::digest::{
    Digest, Health, InstallTraffic, Lost, NewGroup, Regression, digest_of, digest_text,
};
pub use self::digests::{Day, digests};
pub use self::mail::Mailer;
pub use self::message::{Message, Parcel, Told};
pub use self::outbound::Outbound;
pub use self::sending::Outcome;
pub use self::settings::{ChannelSecret, ChannelSettings, Unfit};
pub use self::tell::tell;

/// A second, in the microseconds that all times are in.
const SECOND: i64 = 1_000_000;

/// What the tasks work with.
pub struct Notifier {
    pub control: Arc<dyn Control>,
    pub secret: Arc<InstanceSecret>,
    pub clickhouse: ClickHouse,
    pub clock: Clock,
    pub outbound: Outbound,
    pub mailer: Mailer,
    /// How this installation is reached by people, without a slash at the end.
    pub public_url: String,
    /// How long the first incident of a rule waits for others, in microseconds.
    pub group_wait: i64,
    /// Who this server is to the others.
    pub holder: String,
    pub metrics: NotificationMetrics,
}
