//! Access control and device configuration: stored in the control database, served from memory.
//!
//! [`Access`] holds a [`Snapshot`] that is replaced as a whole, so no request waits for the database. [`Refresher`]
//! keeps it current within a second of a change by this or another server. The rest of the module is pure: credentials,
//! passwords, tokens and seals.

pub mod api_tokens;
mod compiling;
pub mod configurations;
mod credential;
mod device_access;
mod device_token;
mod instance_secret;
pub mod kill_switch;
mod lease;
pub mod logins;
pub mod one_device;
mod over_quota;
pub mod owner_rules;
pub mod password;
pub mod preview;
mod quota;
mod recent_installs;
mod refresh;
mod refused_keys;
pub mod rollout;
pub mod rule_sets;
pub mod scrubbing;
mod seed;
mod session_token;
mod settings_keys;
mod signal_meter;
mod throttle;
mod token_bucket;

pub use self::compiling::Busy;
pub use self::credential::{Credential, CredentialKind, NoRandomness};
pub use self::device_access::{Access, Caller, KeyError, Project, Snapshot, SymbolRevisions};
pub use self::device_token::{DeviceKeys, TokenError, TokenHolder};
pub use self::instance_secret::{InstanceSecret, SecretError};
pub use self::lease::Lease;
pub use self::over_quota::{Exceeded, OverQuota};
pub use self::quota::{Budget, Cost, Meter};
pub use self::refresh::{Refresher, SnapshotInputs, load};
pub use self::refused_keys::{RefusedKey, RefusedKeys};
pub use self::seed::seed;
pub use self::session_token::{SESSION_TOKEN_LIFE, SessionHolder, SessionTokens};
pub use self::settings_keys::{IngestKeys, SeedKey};
pub use self::signal_meter::SignalMeter;
pub use self::throttle::{Attempt, Counted, Throttle};
