//! The tag of a run, from which the ids of its installs and batches are made.

use unjank_random::Random;
use uuid::{Builder, Uuid};

/// Last digit of the install ids of devices with a correct clock, whose event times the server must store unchanged.
const RIGHT_CLOCK_DIGIT: u64 = 0xa;
/// Clocks with a smaller error count as correct. The server corrects errors of 30 s and more.
pub(crate) const CLOCK_TOLERANCE_US: i64 = 2_000_000;

/// Returns whether an install id of a run belongs to a device with a correct clock.
pub(crate) fn has_right_clock(install_id: Uuid) -> bool {
    install_id.as_u64_pair().1 & 0xf == RIGHT_CLOCK_DIGIT
}

/// Random tag of a run that distinguishes its rows in the store from all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunTag(pub(crate) u64);

impl RunTag {
    /// Returns the first half of every install id of the run, including the version bits of a UUID v4.
    fn install_half(self) -> u64 {
        (self.0 & !0xf000) | 0x4000
    }

    /// Returns the prefix of the text form of every install id of the run.
    pub(crate) fn install_prefix(self) -> String {
        let half = self.install_half();
        format!(
            "{:08x}-{:04x}-{:04x}-",
            half >> 32,
            (half >> 16) & 0xffff,
            half & 0xffff
        )
    }

    /// Returns an install id of the run. Its last digit marks whether the device's clock is correct.
    pub(crate) fn install_id(self, clock_skew_us: i64, random: &mut Random) -> Uuid {
        let digit = if clock_skew_us.abs() < CLOCK_TOLERANCE_US {
            RIGHT_CLOCK_DIGIT
        } else {
            0
        };
        let low = (random.bits() >> 2) & !0xf | (1 << 63) | digit;
        Uuid::from_u64_pair(self.install_half(), low)
    }

    /// Returns the eight hex digits at the end of the text form of every batch id of the run.
    pub(crate) fn batch_suffix(self) -> String {
        format!("{:08x}", self.0 >> 32)
    }

    /// Returns the id of the run's `seq`-th batch, created when the device's clock showed `micros`.
    pub(crate) fn batch_id(self, seq: u64, micros: i64) -> Uuid {
        let millis = u64::try_from(micros.div_euclid(1_000)).unwrap_or_default();
        let mut tail = [0_u8; 10];
        tail[0..2].copy_from_slice(&((seq >> 30) as u16).to_be_bytes());
        tail[2..6].copy_from_slice(&((seq & 0x3fff_ffff) as u32).to_be_bytes());
        tail[6..10].copy_from_slice(&((self.0 >> 32) as u32).to_be_bytes());
        Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_ids_are_unique_uuids_v7_with_the_time_and_the_run() {
        let tag = RunTag(0xfeed_beef_0000_0001);
        let first = tag.batch_id(0, 1_700_000_000_123_456);
        let second = tag.batch_id(1, 1_700_000_000_123_456);
        assert_ne!(first, second);
        assert_eq!(first.get_version_num(), 7);
        assert!(first.to_string().ends_with(&tag.batch_suffix()), "{first}");
        assert_eq!(
            first.get_timestamp().unwrap().to_unix(),
            (1_700_000_000, 123_000_000)
        );
    }
}
