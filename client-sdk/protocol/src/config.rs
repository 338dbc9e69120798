//! The answer of `GET /v1/config`: what a device collects, how much of it, and how it uploads.
//!
//! A field that is left out or `null` takes its default, and unknown fields are ignored, so that devices and servers of
//! different versions understand each other. The ranges are what a server lets an operator set; a device clamps to them
//! what it does not want to trust.

#[macro_use]
mod settings;
mod collection;
mod sampling;

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

pub use self::collection::{Frames, Janks, Monitor, PageApis, Traffic, TrafficSource, Upload};
pub use self::sampling::{Sampling, SpanRate, SpanSampling, Tracing};

/// The schema this version writes. It grows only when a field changes its meaning, never for a new one.
pub const SCHEMA: u32 = 1;

settings! {
    /// The resolved configuration of one device.
    Document {
        /// The version of this document's meaning, [`SCHEMA`]. A device that knows only lower ones keeps what it has.
        schema: u32 = SCHEMA,
        /// Which edition of the operators' configuration this is; sent back as `config_revision` with every batch.
        revision: u64 = 0,
        /// Time between two polls, in seconds: 30 to 86,400. A device spreads it by ± 10 %.
        poll_interval_s: u32 = 900,
        /// Whether anything is collected at all. `false` stops at once; polling goes on.
        enabled: bool = true,
        /// How much is kept of what happens.
        sampling: Sampling = Sampling::default(),
        /// Which code is traced.
        tracing: Tracing = Tracing::default(),
        /// When a stall counts, and what is caught of it.
        jank: Janks = Janks::default(),
        /// When a window of frames is worth sending.
        frames: Frames = Frames::default(),
        /// The monitors that run, by name: `fps`, `cpu`, `memory` and the app's own. One that is absent is off. At most 64.
        monitors: BTreeMap<String, Monitor> = collection::monitors(),
        /// Which requests belong to which screen's load. At most 1,000, each screen once.
        pages: Vec<PageApis> = Vec::new(),
        /// How traffic is grouped by source.
        traffic: Traffic = Traffic::default(),
        /// When and how much is uploaded.
        upload: Upload = Upload::default(),
        /// The team's own flags: any JSON value but `null`, which means that there is no such flag. At most 1,000.
        toggles: BTreeMap<String, Value> = BTreeMap::new(),
    }
}
