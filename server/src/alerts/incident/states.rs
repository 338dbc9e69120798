//! The state machine of a group: ok → pending → firing → resolved. Pure.

use std::time::Duration;

use unjank_foundation::clock::UnixTime;

/// The state of a group. A group without a saved state is `Ok`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupStatus {
    Ok,
    /// Bad, but not for long enough yet.
    Pending {
        since: UnixTime,
    },
    /// An incident is open.
    Firing {
        since: UnixTime,
        /// The time of the last observation that was not `Unknown`.
        seen_at: UnixTime,
    },
    /// Only the mix of devices changed, which has been recorded.
    Shifted {
        since: UnixTime,
    },
}

/// The result of an evaluation for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observation {
    Bad,
    /// Good enough to resolve an incident.
    Good,
    /// Not bad enough to open an incident, not good enough to resolve it.
    Between,
    /// Worse, but only because the mix of devices changed.
    MixShift,
    /// Too few samples to decide.
    Unknown,
}

/// The thresholds in time, and whether the group is muted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a group must be bad before an incident is opened.
    pub pending_for: Duration,
    /// How long an incident stays open while the group is `Unknown`.
    pub keep_for: Duration,
    /// No incident may be opened now.
    pub muted: bool,
}

/// The next step for a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Stay(GroupStatus),
    Open,
    /// Records once that the mix of devices changed.
    NoteShift,
    Resolve(&'static str),
}

pub(crate) const RECOVERED: &str = "recovered";
pub(crate) const NO_DATA: &str = "too few samples to decide";
pub(crate) const MIX_SHIFT: &str = "only the mix of devices changed";

/// Returns the next step for a group.
#[must_use]
pub fn next(standing: GroupStatus, observed: Observation, patience: Timing, now: UnixTime) -> Next {
    match standing {
        GroupStatus::Firing { since, seen_at } => firing(observed, patience, now, since, seen_at),
        GroupStatus::Shifted { .. } if observed == Observation::Bad => begin(now, patience, now),
        GroupStatus::Shifted { since } => match observed {
            Observation::Good => Next::Stay(GroupStatus::Ok),
            _ => Next::Stay(GroupStatus::Shifted { since }),
        },
        GroupStatus::Ok | GroupStatus::Pending { .. } => {
            let since = match standing {
                GroupStatus::Pending { since } => since,
                _ => now,
            };
            match observed {
                Observation::Bad => begin(since, patience, now),
                Observation::MixShift if !patience.muted => Next::NoteShift,
                // Unknown rounds do not restart the wait, unless they last too long.
                Observation::Unknown
                    if now.since(since)
                        >= patience.pending_for.saturating_add(patience.keep_for) =>
                {
                    Next::Stay(GroupStatus::Ok)
                }
                Observation::Unknown => Next::Stay(standing),
                Observation::MixShift | Observation::Good | Observation::Between => {
                    Next::Stay(GroupStatus::Ok)
                }
            }
        }
    }
}

fn begin(since: UnixTime, patience: Timing, now: UnixTime) -> Next {
    if !patience.muted && now.since(since) >= patience.pending_for {
        Next::Open
    } else {
        Next::Stay(GroupStatus::Pending { since })
    }
}

fn firing(
    observed: Observation,
    patience: Timing,
    now: UnixTime,
    since: UnixTime,
    seen_at: UnixTime,
) -> Next {
    match observed {
        Observation::Good => Next::Resolve(RECOVERED),
        Observation::MixShift => Next::Resolve(MIX_SHIFT),
        Observation::Unknown if now.since(seen_at) >= patience.keep_for => Next::Resolve(NO_DATA),
        Observation::Unknown => Next::Stay(GroupStatus::Firing { since, seen_at }),
        Observation::Bad | Observation::Between => Next::Stay(GroupStatus::Firing {
            since,
            seen_at: now,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Observation::{Bad, Between, Good, MixShift, Unknown};

    const fn at(micros: i64) -> UnixTime {
        UnixTime::from_micros(micros)
    }

    const PATIENCE: Timing = Timing {
        pending_for: Duration::from_micros(5),
        keep_for: Duration::from_micros(10),
        muted: false,
    };
    const MUTED: Timing = Timing {
        muted: true,
        ..PATIENCE
    };
    const OK: GroupStatus = GroupStatus::Ok;
    const PENDING: GroupStatus = GroupStatus::Pending { since: at(100) };
    const FIRING: GroupStatus = GroupStatus::Firing {
        since: at(100),
        seen_at: at(100),
    };
    const SHIFTED: GroupStatus = GroupStatus::Shifted { since: at(100) };

    #[test]
    fn every_state_handles_every_observation() {
        let seen = GroupStatus::Firing {
            since: at(100),
            seen_at: at(104),
        };
        let pending = GroupStatus::Pending { since: at(104) };
        // Four microseconds after `since`: before `for`, before `keep`.
        for (standing, observed, expected) in [
            (OK, Bad, Next::Stay(pending)),
            (OK, Good, Next::Stay(OK)),
            (OK, Between, Next::Stay(OK)),
            (OK, MixShift, Next::NoteShift),
            (OK, Unknown, Next::Stay(OK)),
            (PENDING, Bad, Next::Stay(PENDING)),
            (PENDING, Good, Next::Stay(OK)),
            (PENDING, Between, Next::Stay(OK)),
            (PENDING, MixShift, Next::NoteShift),
            (PENDING, Unknown, Next::Stay(PENDING)),
            (FIRING, Bad, Next::Stay(seen)),
            (FIRING, Good, Next::Resolve(RECOVERED)),
            (FIRING, Between, Next::Stay(seen)),
            (FIRING, MixShift, Next::Resolve(MIX_SHIFT)),
            (FIRING, Unknown, Next::Stay(FIRING)),
            (SHIFTED, Bad, Next::Stay(pending)),
            (SHIFTED, Good, Next::Stay(OK)),
            (SHIFTED, Between, Next::Stay(SHIFTED)),
            (SHIFTED, MixShift, Next::Stay(SHIFTED)),
            (SHIFTED, Unknown, Next::Stay(SHIFTED)),
        ] {
            let actual = next(standing, observed, PATIENCE, at(104));
            assert_eq!(actual, expected, "{standing:?} {observed:?}");
        }
    }

    #[test]
    fn a_group_fires_after_the_wait_or_at_once_without_a_wait() {
        assert_eq!(next(PENDING, Bad, PATIENCE, at(104)), Next::Stay(PENDING));
        assert_eq!(next(PENDING, Bad, PATIENCE, at(105)), Next::Open);
        let at_once = Timing {
            pending_for: Duration::ZERO,
            ..PATIENCE
        };
        assert_eq!(next(OK, Bad, at_once, at(100)), Next::Open);
        assert_eq!(next(SHIFTED, Bad, at_once, at(100)), Next::Open);
    }

    #[test]
    fn a_pending_group_without_data_is_ok_after_the_wait_and_the_keep_time() {
        assert_eq!(
            next(PENDING, Unknown, PATIENCE, at(114)),
            Next::Stay(PENDING)
        );
        assert_eq!(next(PENDING, Unknown, PATIENCE, at(115)), Next::Stay(OK));
        let for_ever = Timing {
            keep_for: Duration::MAX,
            ..PATIENCE
        };
        assert_eq!(
            next(PENDING, Unknown, for_ever, at(115)),
            Next::Stay(PENDING)
        );
    }

    #[test]
    fn an_incident_does_not_flap_between_its_two_bounds() {
        let mut standing = FIRING;
        for now in 101..150 {
            let Next::Stay(stays) = next(standing, Between, PATIENCE, at(now)) else {
                panic!("the incident ended at {now}");
            };
            standing = stays;
        }
        assert_eq!(
            next(standing, Good, PATIENCE, at(150)),
            Next::Resolve(RECOVERED)
        );
    }

    #[test]
    fn an_incident_without_data_ends_after_the_keep_time() {
        assert_eq!(next(FIRING, Unknown, PATIENCE, at(109)), Next::Stay(FIRING));
        assert_eq!(
            next(FIRING, Unknown, PATIENCE, at(110)),
            Next::Resolve(NO_DATA)
        );
        let Next::Stay(seen) = next(FIRING, Bad, PATIENCE, at(109)) else {
            panic!("the incident ended");
        };
        assert_eq!(next(seen, Unknown, PATIENCE, at(110)), Next::Stay(seen));
    }

    #[test]
    fn a_mute_opens_no_incidents_and_open_ones_still_end() {
        assert_eq!(next(PENDING, Bad, MUTED, at(1_000)), Next::Stay(PENDING));
        assert_eq!(
            next(PENDING, Bad, PATIENCE, at(1_001)),
            Next::Open,
            "unmuted"
        );
        assert_eq!(next(OK, MixShift, MUTED, at(1_000)), Next::Stay(OK));
        assert_eq!(
            next(FIRING, Good, MUTED, at(1_000)),
            Next::Resolve(RECOVERED)
        );
        assert_eq!(
            next(FIRING, Unknown, MUTED, at(1_000)),
            Next::Resolve(NO_DATA)
        );
    }
}
