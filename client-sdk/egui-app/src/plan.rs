//! What a run does, given as arguments, and what it did.

use std::time::{Duration, Instant};

use egui::{Event, Pos2, RawInput, Rect, vec2};
use unjank::{Config, Mode};

/// A frame at 60 Hz.
pub(crate) const FRAME: Duration = Duration::from_micros(16_667);

pub(crate) struct Plan {
    pub(crate) server: String,
    folder: String,
    /// What is kept. Everything also means the mode for tests.
    kept: Kept,
    pub(crate) frames: u64,
    /// Frames that block, and for how many milliseconds.
    blocks: Vec<(u64, u64)>,
    pub(crate) overlay: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Kept {
    Everything,
    Spans(f64),
    Sessions(f64),
}

impl Kept {
    /// Reads `everything`, `spans:SHARE` or `sessions:SHARE`.
    fn parse(word: &str) -> Self {
        let share = |text: &str| text.parse().expect("a share from 0 to 1");
        match word.split_once(':') {
            Some(("spans", text)) => Self::Spans(share(text)),
            Some(("sessions", text)) => Self::Sessions(share(text)),
            _ => Self::Everything,
        }
    }
}

impl Plan {
    /// Reads `SERVER FOLDER KEPT FRAMES OVERLAY [FRAME:MILLISECONDS]…`.
    pub(crate) fn from_args() -> Self {
        let mut words = std::env::args().skip(1);
        let mut word = || {
            words
                .next()
                .expect("SERVER FOLDER KEPT FRAMES OVERLAY [FRAME:MILLISECONDS]…")
        };
        let number = |text: &str| text.parse::<u64>().expect("a number");
        Self {
            server: word(),
            folder: word(),
            kept: Kept::parse(&word()),
            frames: number(&word()),
            overlay: word() == "overlay",
            blocks: words
                .map(|block| {
                    let (frame, lasts) = block.split_once(':').expect("FRAME:MILLISECONDS");
                    (number(frame), number(lasts))
                })
                .collect(),
        }
    }

    /// Adds what the tests need to the configuration of the app.
    pub(crate) fn for_tests(&self, config: Config) -> Config {
        let strategies = serde_json::json!([{"threshold_ms": 400, "count": 1, "period_ms": 0}]);
        let (sessions, spans, mode) = match self.kept {
            Kept::Everything => (1.0, 1.0, Mode::Test),
            Kept::Spans(share) => (1.0, share, Mode::Production),
            Kept::Sessions(share) => (share, 1.0, Mode::Production),
        };
        let sampling = serde_json::json!({
            "session_rate": sessions, "spans": {"default": spans}, "frame_windows": 1.0, "page_loads": 1.0,
        });
        config
            .mode(mode)
            .data_dir(&self.folder)
            .start_jitter(Duration::ZERO)
            .first_wait(Duration::from_millis(50))
            .shutdown_timeout(Duration::from_secs(10))
            .local_settings(
                serde_json::json!({"jank": {"strategies": strategies}, "sampling": sampling}),
            )
            .local_wins(true)
    }

    /// An app of its own would not wait. This one may block in its first frames.
    pub(crate) fn wait_for_the_watchdog(&self) {
        std::thread::sleep(Duration::from_millis(300));
    }

    /// How long the end of the app may wait for the server.
    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// A pointer that moves over the window.
    pub(crate) fn input(&self, number: u64) -> RawInput {
        let at = (number % 200) as f32 * 4.0;
        RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, vec2(1_280.0, 800.0))),
            time: Some(number as f64 / 60.0),
            events: vec![Event::PointerMoved(Pos2::new(at, at / 2.0))],
            ..RawInput::default()
        }
    }

    /// Blocks as a read of a file would.
    #[inline(never)]
    pub(crate) fn block(&self, number: u64) {
        let block = self.blocks.iter().find(|(frame, _)| *frame == number);
        if let Some((_, lasts)) = block {
            println!("blocks");
            std::thread::sleep(Duration::from_millis(*lasts));
        }
    }
}

/// What the app did.
pub(crate) struct Truth {
    begun: Instant,
    page_ms: u128,
    took_us: Vec<u128>,
    pub(crate) sent: bool,
}

impl Truth {
    pub(crate) fn new() -> Self {
        Self {
            begun: Instant::now(),
            page_ms: 0,
            took_us: Vec::new(),
            sent: false,
        }
    }

    pub(crate) fn add(&mut self, number: u64, vsync: Instant, rendered: Instant) {
        if number == 0 {
            self.page_ms = self.begun.elapsed().as_millis();
        }
        self.took_us
            .push(rendered.duration_since(vsync).as_micros());
    }

    pub(crate) fn print(&self) {
        let over = |limit: u128| self.took_us.iter().filter(|took| **took > limit).count();
        let truth = serde_json::json!({
            "frames": self.took_us.len(), "slow": over(16_686), "frozen": over(700_000), "page_ms": self.page_ms,
            "took_us": self.took_us.iter().sum::<u128>(), "sent": self.sent,
        });
        println!("\n{truth}");
    }
}
