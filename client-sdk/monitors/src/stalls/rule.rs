//! A strategy and its counts: N messages of at least T within a period.

use std::collections::VecDeque;

use unjank_protocol::JankStrategy;

use crate::Uptime;

#[derive(Debug)]
pub(super) struct Rule {
    /// The configured strategy, clamped.
    pub(super) strategy: JankStrategy,
    /// Starts of the messages that counted within the period, at most N.
    recent: VecDeque<Uptime>,
    /// The last message that reached the threshold. Each message counts only once.
    last: Option<Uptime>,
    quiet_until: Uptime,
}

impl Rule {
    pub(super) fn new(strategy: JankStrategy) -> Self {
        Self {
            strategy: JankStrategy {
                threshold_ms: strategy.threshold_ms.clamp(16, 60_000),
                count: strategy.count.clamp(1, 1_000),
                period_ms: strategy.period_ms.min(3_600_000),
            },
            recent: VecDeque::new(),
            last: None,
            quiet_until: Uptime::default(),
        }
    }

    /// Returns whether the message that began at `began` and has lasted `lasted_us` makes the strategy fire. Returns `true` at
    /// most once per message and once per period.
    pub(super) fn holds(&mut self, began: Uptime, lasted_us: u64) -> bool {
        let threshold_us = u64::from(self.strategy.threshold_ms).saturating_mul(1_000);
        if lasted_us < threshold_us || self.last == Some(began) {
            return false;
        }
        self.last = Some(began);
        if began < self.quiet_until {
            return false;
        }
        let period_us = u64::from(self.strategy.period_ms).saturating_mul(1_000);
        while self
            .recent
            .pop_front_if(|start| began.micros_since(*start) >= period_us)
            .is_some()
        {}
        self.recent.push_back(began);
        let wanted = usize::try_from(self.strategy.count).unwrap_or(usize::MAX);
        if self.recent.len() < wanted {
            return false;
        }
        self.recent.clear();
        self.quiet_until = began.plus(period_us);
        true
    }
}
