//! Notifications. Messages about incidents and daily digests are saved first, then sent until they are delivered.
//!
//! Three tasks: [`announce_incidents()`] creates the messages about incidents and [`schedule_digests()`] the daily digests, each on the server that holds the
//! lease. [`deliver`] sends saved messages, on every server. A message is saved once, under its key. It can be *sent* twice if a server
//! dies between the receiver's response and the update of the database; both requests have the same key.

mod address_guard;
mod alertmanager;
mod announcements;
mod back_off;
mod delivery;
mod digest;
mod digest_schedule;
mod forwarded;
mod mail;
mod message;
mod outbound;
mod outcome;
mod sending;
mod settings;
mod signature;
mod slack;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use unjank_database::Control;
use unjank_foundation::clock::Clock;

use crate::access::{Access, InstanceSecret};
use crate::forward::ForwardQueue;
use crate::metrics::NotificationMetrics;
use crate::store::ClickHouse;

pub use self::address_guard::AllowedTargets;
pub use self::announcements::announce_incidents;
pub use self::back_off::{BackOff, Wait};
pub use self::delivery::deliver;
pub use self::digest::{
    Digest, Health, InstallTraffic, Lost, NewGroup, Regression, TrafficWithoutUser, UserTraffic,
    digest_of, digest_text,
};
pub use self::digest_schedule::{last_day, schedule_digests};
pub use self::mail::Mailer;
pub use self::message::{IncidentMessage, Message, OutgoingMessage};
pub use self::outbound::{Outbound, quoted, respond, send, start_of, unsuccessful};
pub use self::outcome::Outcome;
pub use self::settings::{ChannelSecret, ChannelSettings, InvalidChannel};

/// What the tasks need.
pub struct Notifier {
    pub control: Control,
    pub secret: Arc<InstanceSecret>,
    pub clickhouse: ClickHouse,
    pub clock: Clock,
    pub access: Arc<Access>,
    /// Takes the incidents that projects forward.
    pub forward: Arc<ForwardQueue>,
    pub outbound: Outbound,
    pub mailer: Mailer,
    /// The URL of this installation for its users, without a trailing slash.
    pub public_url: String,
    /// How long the first incident of a rule waits for others.
    pub group_wait: Duration,
    /// The name under which this server holds leases.
    pub holder: String,
    pub metrics: NotificationMetrics,
}
