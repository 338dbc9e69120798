//! Settings of how long rows are kept.

use std::time::Duration;

use clap::Args;

use crate::store::Retention;

/// A part of the settings of `unjank serve`. A project may say something else for its own rows.
#[derive(Args, Clone, Debug)]
pub struct Keep {
    /// How many days single events are kept; 0: for ever. Several servers on one ClickHouse should say the same.
    #[arg(long, env = "UNJANK_RETENTION_DAYS", value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=36_500))]
    pub retention_days: u64,

    /// How many days roll-ups by the hour are kept; 0: for ever.
    #[arg(long, env = "UNJANK_RETENTION_HOURLY_DAYS", value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(0..=36_500))]
    pub retention_hourly_days: u64,

    /// How many days roll-ups by the day are kept; 0: for ever. They take little room.
    #[arg(long, env = "UNJANK_RETENTION_DAILY_DAYS", value_name = "DAYS", default_value_t = 400, value_parser = clap::value_parser!(u64).range(0..=36_500))]
    pub retention_daily_days: u64,

    /// How often old rows of projects with times of their own are dropped, and quotas of disk space are checked, in milliseconds.
    #[arg(long, env = "UNJANK_RETENTION_INTERVAL_MS", value_name = "MS", default_value_t = 600_000, value_parser = clap::value_parser!(u64).range(100..=86_400_000))]
    pub retention_interval_ms: u64,
}

impl Keep {
    pub fn retention(&self) -> Retention {
        Retention {
            raw_days: self.retention_days,
            hourly_days: self.retention_hourly_days,
            daily_days: self.retention_daily_days,
        }
    }

    pub fn interval(&self) -> Duration {
        Duration::from_millis(self.retention_interval_ms)
    }
}
