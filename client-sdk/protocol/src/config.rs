//! The answer of `GET /v1/config`: what a device collects, how much of it, and how it uploads.
//!
//! A missing or `null` field has its default, and unknown fields are ignored, so that devices and servers of
//! different versions understand each other. A server enforces the ranges when an operator saves a configuration; a device
//! clamps values to them.

#[macro_use]
mod settings_macro;
mod collection;
mod sampling;
mod upload;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

pub use self::collection::{
    Budget, Frames, JankOverride, Janks, Monitor, PageApis, Traffic, TrafficSource,
};
pub use self::sampling::{Sampling, SpanRate, SpanSampling, Tracing};
pub use self::upload::Upload;

/// The schema version that this crate writes. It increases only when a field changes its meaning, not when fields are added.
pub const SCHEMA: u32 = 1;

settings! {
    /// The resolved configuration of one device.
    Document {
        /// The schema version, [`SCHEMA`]. A device that supports only lower versions keeps its current configuration.
        schema: u32 = SCHEMA,
        /// The revision of the configuration. Devices send it back as `config_revision` with every batch.
        revision: u64 = 0,
        /// The interval between polls, in seconds: 30 to 86,400. Devices vary it by ± 10 %.
        poll_interval_s: u32 = 900,
        /// Whether anything is collected. `false` stops collection immediately; the device continues to poll.
        enabled: bool = true,
        /// The sampling rates.
        sampling: Sampling = Sampling::default(),
        /// The code that is traced.
        tracing: Tracing = Tracing::default(),
        /// When a block of the main loop counts as a stall, and how many stacks are captured.
        jank: Janks = Janks::default(),
        /// When a frame window begins and ends.
        frames: Frames = Frames::default(),
        /// The enabled monitors by name: `fps`, `cpu`, `memory`, `battery` and those of the app. At most 64.
        monitors: BTreeMap<String, Monitor> = collection::monitors(),
        /// The requests that belong to the load of each screen. At most 1,000, each screen once.
        pages: Vec<PageApis> = Vec::new(),
        /// How traffic is grouped by source.
        traffic: Traffic = Traffic::default(),
        /// How many events the device records per minute.
        budget: Budget = Budget::default(),
        /// When and how much the device uploads.
        upload: Upload = Upload::default(),
        /// The app's own flags, with any JSON value; `null` means that the flag is not set. At most 1,000.
        toggles: BTreeMap<String, Value> = BTreeMap::new(),
    }
}
