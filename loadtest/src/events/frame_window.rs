//! Frame windows: split the minute into equal parts, with most frames on time and a few late.

use unjank_protocol::{FrameWindow, Histogram, Text};
use unjank_random::{Random, whole};

use super::{MINUTE_MS, Scene, micros};

pub(super) fn some<'a>(
    scene: &Scene<'a>,
    count: usize,
    random: &mut Random,
) -> Vec<FrameWindow<'a>> {
    let window_ms = MINUTE_MS / (count as u64).max(6);
    (0..count as u64)
        .map(|at| window(scene, at * window_ms, window_ms, random))
        .collect()
}

fn window<'a>(
    scene: &Scene<'a>,
    offset_ms: u64,
    window_ms: u64,
    random: &mut Random,
) -> FrameWindow<'a> {
    let refresh_hz = scene.device.refresh_hz();
    let begin = scene.moment_at(offset_ms * 1_000);
    let due = u64::from(refresh_hz) * window_ms / 1_000;
    let dropped = random
        .long_tail(due as f64 * 0.01 * scene.device.slowness(), 1.3, due)
        .min(due * 9 / 10);
    let drawn = due - dropped;
    let slow = random.between(dropped / 3, dropped);
    let frozen = u64::from(random.chance(0.02) && slow > 0);
    let budget_ms = 1_000 / u64::from(refresh_hz.max(1));
    let late = [slow * 6 / 10, slow * 3 / 10, slow / 10];
    let in_time = drawn.saturating_sub(late.iter().sum::<u64>() + frozen);
    let buckets = [
        (budget_ms / 2, in_time / 3),
        (budget_ms, in_time - in_time / 3),
        (budget_ms * 2, late[0]),
        (budget_ms * 4, late[1]),
        (budget_ms * 8, late[2]),
        (700, frozen),
    ];
    FrameWindow {
        page: Text::from(scene.vocabulary.page(random).name.as_str()),
        start: begin.time,
        duration_ms: micros(window_ms),
        refresh_hz,
        frames_drawn: small(drawn),
        frames_dropped: small(dropped),
        slow_frames: small(slow),
        frozen_frames: small(frozen),
        longest_drop: small(if dropped == 0 {
            0
        } else {
            random.between(1, dropped)
        }),
        jank_ms: small(dropped * budget_ms),
        delay_ms: small(whole(dropped as f64 * budget_ms as f64 * random.unit())),
        uptime_ms: begin.uptime_ms,
        network: scene.device.network,
        frame_time_hist: Histogram(
            buckets
                .iter()
                .filter(|(_, frames)| *frames > 0)
                .map(|(bucket, frames)| (small(*bucket), small(*frames)))
                .collect(),
        ),
        sample_rate: 1.0,
    }
}

fn small(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
