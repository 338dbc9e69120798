//! Tests of quotas, with an explicit time.

use std::time::Duration;

use unjank_foundation::clock::UnixTime;

use super::super::token_bucket::{NEVER, SHUT};
use super::*;

/// 2026-11-20T12:00:00Z.
const NOON: UnixTime = UnixTime::from_micros(1_795_176_000_000_000);
const SECOND: Duration = Duration::from_secs(1);
const LARGEST: u32 = 50;

fn quotas(events_per_second: Option<u64>, bytes_per_day: Option<u64>) -> Quotas {
    Quotas {
        events_per_second,
        bytes_per_day,
    }
}

fn meter(quotas: Quotas) -> Arc<Meter> {
    Arc::new(Meter::new(quotas, LARGEST, NOON))
}

fn of_key(quotas: Quotas) -> Budget {
    Budget {
        key: Some(meter(quotas)),
        ..Budget::default()
    }
}

fn events(events: u32) -> Cost {
    Cost { events, bytes: 10 }
}

fn bytes(bytes: u64) -> Cost {
    Cost { events: 1, bytes }
}

fn over(exceeded: Exceeded, wait: Duration) -> Result<(), OverQuota> {
    Err(OverQuota { exceeded, wait })
}

#[test]
fn a_burst_of_ten_seconds_passes_and_then_the_rate_applies() {
    let budget = of_key(quotas(Some(10), None));
    budget.charge(events(60), NOON).unwrap();
    budget.charge(events(40), NOON).unwrap();
    assert_eq!(
        budget.charge(events(20), NOON),
        over(Exceeded::Events, Duration::from_secs(2))
    );
    budget.charge(events(20), NOON + 2 * SECOND).unwrap();
    assert!(budget.charge(events(1), NOON + 2 * SECOND).is_err());
    // A long idle period fills the bucket, but does not overfill it.
    let later = NOON + 3_600 * SECOND;
    budget.charge(events(100), later).unwrap();
    assert!(budget.charge(events(1), later).is_err());
}

#[test]
fn the_largest_batch_passes_at_any_rate() {
    let budget = of_key(quotas(Some(1), None));
    budget.charge(events(LARGEST), NOON).unwrap();
    let full = NOON + SECOND * LARGEST;
    assert!(
        budget
            .charge(events(LARGEST), full - Duration::from_micros(1))
            .is_err()
    );
    budget.charge(events(LARGEST), full).unwrap();
}

#[test]
fn the_bucket_is_shut_briefly_after_a_batch_that_did_not_fit() {
    let budget = of_key(quotas(Some(10), None));
    budget.charge(events(90), NOON).unwrap();
    assert_eq!(budget.admit(None, NOON), Ok(()));
    budget.charge(events(50), NOON).unwrap_err();
    assert_eq!(budget.admit(None, NOON), over(Exceeded::Events, SHUT));
    assert_eq!(budget.admit(None, NOON + SECOND / 4), Ok(()));
    // The rest of the quota can still be used.
    budget.charge(events(10), NOON + SECOND / 4).unwrap();
}

#[test]
fn an_empty_bucket_rejects_before_the_body_is_read() {
    let budget = of_key(quotas(Some(10), None));
    budget.charge(events(100), NOON).unwrap();
    let tenth = Duration::from_millis(100);
    assert_eq!(budget.admit(None, NOON), over(Exceeded::Events, tenth));
    assert_eq!(budget.admit(None, NOON + SECOND / 10), Ok(()));
}

#[test]
fn bytes_are_counted_until_midnight_utc() {
    let budget = of_key(quotas(None, Some(1_000)));
    budget.charge(bytes(900), NOON).unwrap();
    let half_a_day = Duration::from_secs(12 * 3_600);
    assert_eq!(
        budget.charge(bytes(101), NOON),
        over(Exceeded::Bytes, half_a_day)
    );
    assert_eq!(
        budget.admit(Some(101), NOON),
        over(Exceeded::Bytes, half_a_day)
    );
    assert_eq!(budget.admit(Some(100), NOON), Ok(()));
    budget.charge(bytes(100), NOON).unwrap();
    let midnight = NOON + DAY / 2;
    let one = Duration::from_micros(1);
    assert_eq!(
        budget.admit(None, midnight - Duration::from_micros(1)),
        over(Exceeded::Bytes, one)
    );
    budget.charge(bytes(1_000), midnight).unwrap();
}

#[test]
fn either_both_quotas_are_charged_or_none() {
    let project = meter(quotas(Some(10), None));
    let of = |own| Budget {
        is_full: false,
        key: Some(meter(own)),
        project: Some(Arc::clone(&project)),
        signals: None,
    };
    let (small, free) = (of(quotas(None, Some(100))), of(Quotas::default()));
    // The key has too few bytes left: the project's events are not charged.
    let too_much = Cost {
        events: 50,
        bytes: 101,
    };
    small.charge(too_much, NOON).unwrap_err();
    free.charge(events(100), NOON).unwrap();
    // The project has too few events left: the key's bytes are not charged.
    small.charge(bytes(100), NOON).unwrap_err();
    small.charge(bytes(100), NOON + SECOND).unwrap();
    small.charge(bytes(1), NOON + 2 * SECOND).unwrap_err();
}

#[test]
fn the_quota_of_a_key_does_not_affect_the_rest_of_the_project() {
    let project = meter(Quotas::default());
    let of = |own| Budget {
        is_full: false,
        key: Some(meter(own)),
        project: Some(Arc::clone(&project)),
        signals: None,
    };
    let (small, free) = (of(quotas(Some(1), None)), of(Quotas::default()));
    small.charge(events(50), NOON).unwrap();
    small.charge(events(50), NOON).unwrap_err();
    small.admit(None, NOON).unwrap_err();
    free.admit(None, NOON).unwrap();
    free.charge(events(1_000_000), NOON).unwrap();
}

#[test]
fn a_quota_change_does_not_reset_the_usage() {
    let budget = of_key(quotas(Some(100), Some(1_000)));
    let key = budget.key.as_ref().unwrap();
    budget.charge(events(900), NOON).unwrap();
    // Lowered: a full bucket now holds 100, and more than that has been spent.
    key.change(quotas(Some(10), Some(1_000)), LARGEST, NOON);
    assert!(budget.charge(events(1), NOON).is_err());
    assert!(budget.charge(events(100), NOON + 9 * SECOND).is_err());
    budget.charge(events(100), NOON + 10 * SECOND).unwrap();
    // Raised: 100 of 10,000 have been spent.
    let now = NOON + 10 * SECOND;
    key.change(quotas(Some(1_000), Some(1_000)), LARGEST, now);
    assert!(budget.charge(events(9_901), now).is_err());
    budget.charge(events(9_900), now).unwrap();
    key.change(quotas(None, Some(30)), LARGEST, now);
    assert!(budget.charge(bytes(1), now).is_err());
    key.change(quotas(None, Some(31)), LARGEST, now);
    budget.charge(bytes(1), now).unwrap();
}

#[test]
fn setting_the_same_quota_is_a_no_op() {
    let budget = of_key(quotas(Some(10), None));
    budget.charge(events(100), NOON).unwrap();
    budget.charge(events(100), NOON).unwrap_err();
    let key = budget.key.as_ref().unwrap();
    key.change(quotas(Some(10), None), LARGEST, NOON);
    assert_eq!(budget.admit(None, NOON), over(Exceeded::Events, SHUT));
}

#[test]
fn a_quota_set_at_noon_counts_the_bytes_of_the_morning() {
    let budget = of_key(Quotas::default());
    budget.charge(bytes(700), NOON - 3_600 * SECOND).unwrap();
    let key = budget.key.as_ref().unwrap();
    key.change(quotas(None, Some(1_000)), LARGEST, NOON);
    budget.charge(bytes(301), NOON).unwrap_err();
    budget.charge(bytes(300), NOON).unwrap();
}

#[test]
fn events_that_were_not_stored_are_refunded() {
    let budget = of_key(quotas(Some(10), Some(1_000)));
    let cost = Cost {
        events: 100,
        bytes: 1_000,
    };
    budget.charge(cost, NOON).unwrap();
    budget.refund(cost, NOON);
    budget.charge(cost, NOON).unwrap();
    assert!(budget.charge(bytes(1), NOON).is_err());
}

#[test]
fn a_quota_of_zero_rejects_everything() {
    let budget = of_key(quotas(Some(0), None));
    assert_eq!(budget.admit(None, NOON), over(Exceeded::Events, NEVER));
    let budget = of_key(quotas(None, Some(0)));
    assert!(budget.admit(None, NOON).is_err());
}

#[test]
fn a_clock_set_back_blocks_no_key() {
    let budget = of_key(quotas(Some(10), None));
    budget.charge(events(100), NOON).unwrap();
    let before = NOON - 3_600 * SECOND;
    assert!(budget.charge(events(100), before).is_err());
    budget.charge(events(100), before + 10 * SECOND).unwrap();
}

#[test]
fn seconds_are_rounded_up() {
    let after = |wait| {
        let exceeded = Exceeded::Events;
        OverQuota { exceeded, wait }.retry_after_s()
    };
    assert_eq!(after(Duration::ZERO), 1);
    assert_eq!(after(Duration::from_millis(999)), 1);
    assert_eq!(after(Duration::from_secs(2)), 2);
    assert_eq!(after(Duration::from_micros(2_000_001)), 3);
}
