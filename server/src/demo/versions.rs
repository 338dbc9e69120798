//! The three versions of the app, and what the newest one makes worse and better.

/// A version of the app, and how it differs from the earlier ones. Factors apply to the usual durations.
pub(super) struct Version {
    pub(super) name: &'static str,
    build: u64,
    /// Release time as a share of the month.
    pub(super) released: f64,
    /// Whether orders are written to the database on the main thread.
    pub(super) writes_orders_on_main: bool,
    /// Memory leak on the product page, in bytes per minute.
    pub(super) leak_per_minute: f64,
    pub(super) cold_start: f64,
}

/// Values that differ between the builds of a version.
pub(super) struct Release {
    pub(super) build: u64,
    pub(super) sdk_version: &'static str,
}

impl Version {
    pub(super) fn release(&self, ios: bool) -> Release {
        Release {
            build: self.build + u64::from(ios) * 5_000,
            sdk_version: if self.build < 4_110_000 {
                "0.3.2"
            } else {
                "0.4.0"
            },
        }
    }

    /// Returns whether checkout blocks the main thread. Only the Android app writes orders to a local database.
    pub(super) fn blocks_checkout(&self, ios: bool) -> bool {
        self.writes_orders_on_main && !ios
    }
}

pub(super) const VERSIONS: &[Version] = &[
    Version {
        name: "4.10.0",
        build: 4_100_210,
        released: -1.0,
        writes_orders_on_main: false,
        leak_per_minute: 0.0,
        cold_start: 1.0,
    },
    Version {
        name: "4.11.0",
        build: 4_110_087,
        released: 0.2,
        writes_orders_on_main: false,
        leak_per_minute: 0.0,
        cold_start: 0.99,
    },
    Version {
        name: "4.12.0",
        build: 4_120_033,
        released: 0.63,
        writes_orders_on_main: true,
        leak_per_minute: 5.5e6,
        cold_start: 0.84,
    },
];
