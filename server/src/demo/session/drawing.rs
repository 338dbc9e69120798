//! Simulates drawing on a page: frame windows with histograms, and recompositions.

use unjank_protocol::{FrameWindow, Histogram, Recomposition, Text};

use super::{Session, Visit, small};

const WINDOW_MS: i64 = 10_000;
/// Lower bounds of the durations of slow frames in milliseconds, each with its share of the slow frames.
const SLOW: &[(u32, f64)] = &[
    (17, 0.52),
    (24, 0.22),
    (33, 0.14),
    (50, 0.07),
    (100, 0.035),
    (200, 0.012),
    (400, 0.003),
];
/// Lower bounds of the durations of frames in time as a share of the budget, each with its share of these frames.
const IN_TIME: &[(f64, f64)] = &[
    (0.2, 0.18),
    (0.35, 0.34),
    (0.5, 0.28),
    (0.7, 0.15),
    (0.9, 0.05),
];

impl Session<'_> {
    pub(super) fn draw(&mut self, visit: &Visit) {
        let windows = (visit.length / (3 * WINDOW_MS * 1_000)).clamp(1, 3);
        for number in 0..windows {
            let at = visit.at + visit.length * number / windows;
            let window = self.window(visit, at);
            self.batch.frame_windows.push(window);
        }
    }

    fn window(&mut self, visit: &Visit, at: i64) -> FrameWindow<'static> {
        let refresh_hz = self.install.model.refresh_hz;
        let hz = f64::from(refresh_hz);
        let due = hz * WINDOW_MS as f64 / 1_000.0 * (0.5 + self.random.unit() * 0.5);
        let worse = if self.blocks_checkout(visit.page) {
            2.3
        } else {
            1.0
        };
        // A higher refresh rate leaves less time for each frame.
        let share = visit.page.slow_share * worse * self.slowness() * (hz / 60.0).sqrt();
        let share = self.random.log_normal(share, 0.35).min(0.6);
        let slow = share * due;
        let in_time = due - slow;
        let frozen = if self.random.chance(share * 0.12) {
            1.0
        } else {
            0.0
        };
        let histogram = self.histogram(in_time, slow, frozen);
        let dropped: f64 = histogram
            .iter()
            .map(|(ms, frames)| lost(*ms, *frames, hz))
            .sum();
        let budget_ms = 1_000.0 / hz;
        let drawn: u32 = histogram.iter().map(|(_, frames)| *frames).sum();
        let slow: u32 = histogram
            .iter()
            .filter(|(ms, _)| *ms > 16)
            .map(|(_, frames)| *frames)
            .sum();
        let longest = histogram.last().map_or(0.0, |(ms, _)| lost(*ms, 1, hz));
        FrameWindow {
            page: Text::from(visit.page.name),
            start: self.time(at),
            duration_ms: WINDOW_MS,
            refresh_hz,
            frames_drawn: drawn,
            frames_dropped: small(dropped),
            slow_frames: slow,
            frozen_frames: small(frozen),
            longest_drop: small(longest),
            jank_ms: small(dropped * budget_ms * 0.6),
            delay_ms: small(dropped * budget_ms + f64::from(slow) * budget_ms * 0.4),
            uptime_ms: self.uptime_ms(at),
            network: self.network,
            frame_time_hist: Histogram(histogram),
            sample_rate: 1.0,
        }
    }

    fn histogram(&mut self, in_time: f64, slow: f64, frozen: f64) -> Vec<(u32, u32)> {
        let budget_ms = 1_000.0 / f64::from(self.install.model.refresh_hz);
        let fast = IN_TIME
            .iter()
            .map(|(of_budget, share)| (small(budget_ms * of_budget).max(1), in_time * share));
        let late = SLOW.iter().map(|(ms, share)| (*ms, slow * share));
        let mut buckets: Vec<(u32, u32)> = Vec::new();
        for (ms, frames) in fast.chain(late).chain([(700, frozen)]) {
            // Round fractions of a frame up or down at random.
            let frames = small((frames + self.random.unit() - 0.5).max(0.0));
            match buckets.last_mut() {
                Some((last, already)) if *last == ms => *already += frames,
                _ if frames > 0 => buckets.push((ms, frames)),
                _ => {}
            }
        }
        buckets
    }

    pub(super) fn redraw(&mut self, visit: &Visit) {
        for (function, often, causes) in visit.page.redraws {
            if !self.random.chance(0.4) {
                continue;
            }
            let at = self.moment(visit);
            let count = self.random.log_normal(*often, 0.4);
            let event = Recomposition {
                function: Text::from(*function),
                page: Text::from(visit.page.name),
                start: self.time(at),
                window_ms: WINDOW_MS,
                count: small(count).max(1),
                cause: Text::from(*self.random.pick(causes)),
                uptime_ms: self.uptime_ms(at),
                network: self.network,
                sample_rate: 1.0,
            };
            self.batch.recompositions.push(event);
        }
    }
}

/// Returns the number of frame budgets that frames of about `ms` skip.
fn lost(ms: u32, frames: u32, hz: f64) -> f64 {
    let budgets = f64::from(ms) * hz / 1_000.0;
    (budgets - 0.5).max(0.0).round() * f64::from(frames)
}
