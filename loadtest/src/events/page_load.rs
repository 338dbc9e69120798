//! Page loads: three overlapping parts, slower on slow devices, with the requests that the page waits for.

use unjank_protocol::{LaunchKind, PageLoad, PageOutcome, PageRequest, Text};
use unjank_random::Random;

use super::{Scene, micros};

pub(super) fn some<'a>(scene: &Scene<'a>, count: usize, random: &mut Random) -> Vec<PageLoad<'a>> {
    (0..count).map(|_| one(scene, random)).collect()
}

fn one<'a>(scene: &Scene<'a>, random: &mut Random) -> PageLoad<'a> {
    let slowness = scene.device.slowness();
    let begin = scene.moment(random);
    let page = scene.vocabulary.page(random);
    let t1 = random.long_tail(70.0 * slowness, 0.5, 10_000);
    let t3 = random.long_tail(55.0 * slowness, 0.6, 10_000);
    let requests: Vec<PageRequest<'a>> = page
        .requests
        .iter()
        .map(|path| PageRequest {
            path: Text::from(*path),
            offset_ms: i32::try_from(random.below(t1 + 40)).unwrap_or_default() - 40,
            duration_ms: u32::try_from(random.long_tail(220.0, 0.8, 30_000)).unwrap_or_default(),
            status: if random.chance(0.97) { 200 } else { 503 },
        })
        .collect();
    let t2 = requests
        .iter()
        .map(|request| u64::from(request.duration_ms))
        .max();
    let total = t1 / 2 + t2.unwrap_or_default() + t3;
    PageLoad {
        page: Text::from(page.name.as_str()),
        start: begin.time.shifted(-micros(total * 1_000)),
        t1_ms: Some(micros(t1)),
        t2_ms: t2.map(micros),
        t3_ms: Some(micros(t3)),
        total_ms: micros(total),
        launch: if random.chance(0.35) {
            LaunchKind::Cold
        } else {
            LaunchKind::Warm
        },
        outcome: match random.below(100) {
            0..=89 => PageOutcome::Completed,
            90..=97 => PageOutcome::Aborted,
            _ => PageOutcome::Failed,
        },
        network: scene.device.network,
        uptime_ms: begin.uptime_ms,
        requests,
        sample_rate: if random.chance(0.5) { 0.2 } else { 1.0 },
    }
}
