//! When and how much the device uploads, and how much waits on the device.

use serde::Serialize;

settings! {
    /// When and how much the device uploads.
    Upload {
        /// The interval between uploads, in seconds: 5 to 86,400.
        interval_s: u32 = 60,
        /// The maximum number of events in a batch: 1 to 10,000.
        max_batch_events: u32 = 500,
        /// The maximum number of bytes kept on the device while it is offline: 65,536 to 1,073,741,824. The oldest batches are dropped first.
        max_queue_bytes: u64 = 5 * 1024 * 1024,
        /// Whether to upload only over unmetered networks.
        wifi_only: bool = false,
    }
}
