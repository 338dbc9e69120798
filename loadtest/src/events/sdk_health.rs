//! SDK health: the overhead of the SDK, and the events that it dropped.

use unjank_protocol::{Dropped, SdkHealth, Signal, Text};
use unjank_random::Random;

pub(super) fn one<'a>(random: &mut Random) -> SdkHealth<'a> {
    let dropped = if random.chance(0.1) {
        vec![Dropped {
            signal: *random.pick(&[Signal::Spans, Signal::Metrics]),
            reason: Text::from(*random.pick(&["queue_full", "rate_limited"])),
            count: random.between(1, 400),
        }]
    } else {
        Vec::new()
    };
    SdkHealth {
        dropped,
        overhead_us: random.long_tail(8_000.0, 0.7, 1_000_000),
        queue_bytes: random.long_tail(20_000.0, 1.0, 5 << 20),
        upload_bytes: random.long_tail(9_000.0, 0.6, 1 << 20),
    }
}
