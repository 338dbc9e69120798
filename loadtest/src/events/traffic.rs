//! Traffic: bytes by calendar day in the device's time zone, which may differ from the server's day.

use unjank_protocol::{Day, Text, Traffic};
use unjank_random::Random;

use super::Scene;
use crate::vocabulary::SOURCES;

pub(super) fn some<'a>(scene: &Scene<'a>, count: usize, random: &mut Random) -> Vec<Traffic<'a>> {
    let day = Day::containing(scene.end.shifted(scene.device.utc_offset_us));
    (0..count)
        .map(|_| {
            let requests = random.between(1, 60);
            Traffic {
                day,
                source: Text::from(*random.pick(SOURCES)),
                network: scene.device.network,
                tx_bytes: random.long_tail(1_800.0 * requests as f64, 0.8, 1 << 32),
                rx_bytes: random.long_tail(26_000.0 * requests as f64, 1.2, 1 << 34),
                requests,
                failed_requests: if random.chance(0.1) {
                    random.below(requests + 1)
                } else {
                    0
                },
            }
        })
        .collect()
}
