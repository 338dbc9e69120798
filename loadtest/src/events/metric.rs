//! Metrics: samples of monitors, some of them pre-aggregated. Memory grows during a session, as with a leak.

use unjank_protocol::{Attributes, Metric, Text};
use unjank_random::{Dice, Random};

use super::Scene;
use crate::vocabulary::METRICS;

pub(super) fn some<'a>(scene: &Scene<'a>, count: usize, random: &mut Random) -> Vec<Metric<'a>> {
    let monitors = Dice::zipf(METRICS.len(), 0.8);
    (0..count)
        .map(|_| one(scene, METRICS[monitors.roll(random)], random))
        .collect()
}

fn one<'a>(
    scene: &Scene<'a>,
    (name, usual, spread): (&'static str, f64, f64),
    random: &mut Random,
) -> Metric<'a> {
    let begin = scene.moment(random);
    let grown = if name.ends_with("used_bytes") {
        1.0 + begin.uptime_ms as f64 / 3.0e6
    } else {
        1.0
    };
    let value = (random.log_normal(usual * grown, spread) * 1_000.0).round() / 1_000.0;
    let aggregated = random.chance(0.15);
    Metric {
        name: Text::from(name),
        time: begin.time,
        value,
        min: aggregated.then_some(value * 0.5),
        max: aggregated.then_some(value * 2.0),
        count: aggregated.then(|| random.between(2, 60)),
        page: Text::from(scene.vocabulary.page(random).name.as_str()),
        uptime_ms: begin.uptime_ms,
        network: scene.device.network,
        attributes: Attributes::default(),
        sample_rate: if aggregated { 1.0 } else { 0.1 },
    }
}
