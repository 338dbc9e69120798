//! App starts with the phases of a start.

use unjank_protocol::{AppStart, AppStartKind, Phase, Text};
use unjank_random::Random;

use super::{Scene, micros};

pub(super) fn some<'a>(scene: &Scene<'a>, count: usize, random: &mut Random) -> Vec<AppStart<'a>> {
    (0..count).map(|_| one(scene, random)).collect()
}

fn one<'a>(scene: &Scene<'a>, random: &mut Random) -> AppStart<'a> {
    let (kind, usual_ms) = match random.below(10) {
        0..=4 => (AppStartKind::Cold, 620.0),
        5..=7 => (AppStartKind::Warm, 240.0),
        _ => (AppStartKind::Hot, 90.0),
    };
    let phases: Vec<Phase<'a>> = ["process", "di", "content_providers", "first_draw"]
        .iter()
        .map(|name| Phase {
            name: Text::from(*name),
            duration_ms: u32::try_from(random.long_tail(
                usual_ms / 4.0 * scene.device.slowness(),
                0.6,
                20_000,
            ))
            .unwrap_or_default(),
        })
        .collect();
    let total = phases
        .iter()
        .map(|phase| u64::from(phase.duration_ms))
        .sum::<u64>();
    AppStart {
        kind,
        start: scene.moment(random).time,
        duration_ms: micros(total),
        page: Text::from(scene.vocabulary.page(random).name.as_str()),
        network: scene.device.network,
        phases,
        sample_rate: 1.0,
    }
}
