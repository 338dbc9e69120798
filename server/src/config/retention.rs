//! The settings for retention.

use std::time::Duration;

use clap::Args;

use crate::store::Retention;

/// A part of the settings of `unjank serve`. Projects may override them for their own rows.
#[derive(Args, Clone, Debug)]
pub struct Keep {
    /// How many days to keep single events; 0 keeps them forever. All servers on one ClickHouse should have the same value.
    #[arg(long, env = "UNJANK_RETENTION_DAYS", value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=36_500))]
    pub retention_days: u64,

    /// How many days to keep hourly roll-ups; 0 keeps them forever.
    #[arg(long, env = "UNJANK_RETENTION_HOURLY_DAYS", value_name = "DAYS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(0..=36_500))]
    pub retention_hourly_days: u64,

    /// How many days to keep daily roll-ups; 0 keeps them forever. They need little space.
    #[arg(long, env = "UNJANK_RETENTION_DAILY_DAYS", value_name = "DAYS", default_value_t = 400, value_parser = clap::value_parser!(u64).range(0..=36_500))]
    pub retention_daily_days: u64,

    /// How often to delete expired rows of projects with their own retention, and to check disk quotas, in milliseconds.
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
