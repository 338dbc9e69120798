//! The random numbers of a seed, and the log of its events.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Clone, Debug)]
pub(super) struct Chance(Arc<Mutex<fastrand::Rng>>);

impl Chance {
    pub(super) fn of_seed(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    fn draw<T>(&self, draw: impl FnOnce(&mut fastrand::Rng) -> T) -> T {
        draw(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// True with a probability of `per_mille` in a thousand.
    pub(super) fn happens(&self, per_mille: u64) -> bool {
        per_mille > 0 && self.below(1_000) < per_mille
    }

    /// A number from 0 to `end - 1`.
    pub(super) fn below(&self, end: u64) -> u64 {
        self.draw(|chance| chance.u64(0..end.max(1)))
    }

    pub(super) fn number(&self) -> u64 {
        self.draw(|chance| chance.u64(..))
    }

    pub(super) fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    pub(super) fn millis(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }
}

/// The events of a seed as text. Disabled except to explain a failure.
#[derive(Clone, Debug)]
pub(super) struct History {
    began: Instant,
    lines: Option<Arc<Mutex<Vec<String>>>>,
}

impl History {
    pub(super) fn new(is_kept: bool) -> Self {
        Self {
            began: Instant::now(),
            lines: is_kept.then(Arc::default),
        }
    }

    pub(super) fn say(&self, line: impl FnOnce() -> String) {
        if let Some(lines) = &self.lines {
            let at = self.began.elapsed().as_millis();
            let line = format!("{:>4}.{:03} s  {}", at / 1_000, at % 1_000, line());
            lines
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(line);
        }
    }

    pub(super) fn lines(&self) -> Vec<String> {
        self.lines
            .as_ref()
            .map(|lines| lines.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .unwrap_or_default()
    }
}
