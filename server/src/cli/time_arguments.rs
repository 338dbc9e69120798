//! Times on the command line.

use std::time::Duration;

use unjank_foundation::clock::UnixTime;
use unjank_protocol::{Day, Timestamp};

const MINUTE: Duration = Duration::from_secs(60);

/// Parses a time: RFC 3339, a date, or an age such as `24h`.
pub(super) fn time(name: &str, text: &str, now: UnixTime) -> anyhow::Result<UnixTime> {
    let ago = |letter: char, minutes: u32| {
        let number: u32 = text.strip_suffix(letter)?.parse().ok()?;
        (0..=1_000_000)
            .contains(&number)
            .then(|| now - MINUTE * minutes * number)
    };
    Timestamp::parse(text)
        .map(UnixTime::from)
        .or_else(|| Day::parse(text).map(UnixTime::from))
        .or_else(|| ago('m', 1))
        .or_else(|| ago('h', 60))
        .or_else(|| ago('d', 24 * 60))
        .ok_or_else(|| {
            anyhow::anyhow!(
                "{name} `{text}` is not a time: use a form such as 2026-11-20T12:00:00Z, 2026-11-20 or 24h"
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_timestamps_dates_or_ages() {
        let now = Timestamp::parse("2026-11-20T12:00:00Z").unwrap().into();
        let parsed = |text: &str| time("--from", text, now).unwrap().to_string();
        assert_eq!(
            parsed("2026-11-20T10:00:00Z"),
            Timestamp::parse("2026-11-20T10:00:00Z")
                .unwrap()
                .to_string()
        );
        assert_eq!(parsed("2h"), parsed("2026-11-20T10:00:00Z"));
        assert_eq!(parsed("90m"), parsed("2026-11-20T10:30:00Z"));
        assert_eq!(parsed("1d"), parsed("2026-11-19T12:00:00Z"));
        assert_eq!(parsed("2026-11-20"), parsed("2026-11-20T00:00:00Z"));
        for bad in ["yesterday", "-1h", "h", "99999999999999999999d", "1w"] {
            assert!(time("--from", bad, now).is_err(), "{bad}");
        }
    }
}
