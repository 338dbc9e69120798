//! Recompositions: UI functions that were redrawn, and the state that caused it.

use unjank_protocol::{Recomposition, Text};
use unjank_random::Random;

use super::Scene;

pub(super) fn some<'a>(
    scene: &Scene<'a>,
    count: usize,
    random: &mut Random,
) -> Vec<Recomposition<'a>> {
    (0..count)
        .map(|_| {
            let begin = scene.moment(random);
            let page = scene.vocabulary.page(random);
            Recomposition {
                function: Text::from(scene.vocabulary.function(random).class.as_str()),
                page: Text::from(page.name.as_str()),
                start: begin.time,
                window_ms: 10_000,
                count: u32::try_from(random.long_tail(14.0, 1.1, 5_000)).unwrap_or_default(),
                cause: Text::from(random.pick(&page.states).as_str()),
                uptime_ms: begin.uptime_ms,
                network: scene.device.network,
                sample_rate: 1.0,
            }
        })
        .collect()
}
