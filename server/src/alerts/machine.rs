//! ok → pending → firing → resolved: what an observation makes of a state. Pure.

/// Where a group stands; one that is not known stands at `Ok`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Ok,
    /// It is bad, but not for long enough.
    Pending {
        since: i64,
    },
    /// There is an incident.
    Firing {
        since: i64,
        /// When there was an answer last.
        seen_at: i64,
    },
    /// Only the mix of devices changed; it was taken down.
    Shifted {
        since: i64,
    },
}

/// What an evaluation says of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Observed {
    Bad,
    /// Good enough to end an incident.
    Good,
    /// Not bad enough to begin one, not good enough to end it.
    Between,
    /// Worse, but only because other devices are asked.
    MixShift,
    /// Too few samples to say.
    Unknown,
}

/// How much it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// How long it must be bad.
    pub for_us: i64,
    /// How long an incident outlasts the last answer.
    pub keep_us: i64,
    /// No incident is opened now.
    pub muted: bool,
}

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Stay(Standing),
    Open,
    /// The mix of devices is taken down, once.
    NoteShift,
    Resolve(&'static str),
}

pub(super) const RECOVERED: &str = "recovered";
pub(super) const NO_DATA: &str = "too few samples to say";
pub(super) const MIX_SHIFT: &str = "only the mix of devices changed";

/// What becomes of a group.
#[must_use]
pub fn next(standing: Standing, observed: Observed, patience: Patience, now: i64) -> Next {
    match standing {
        Standing::Firing { since, seen_at } => firing(observed, patience, now, (since, seen_at)),
        Standing::Shifted { .. } if observed == Observed::Bad => begin(now, patience, now),
        Standing::Shifted { since } => match observed {
            Observed::Good => Next::Stay(Standing::Ok),
            _ => Next::Stay(Standing::Shifted { since }),
        },
        Standing::Ok | Standing::Pending { .. } => {
            let since = match standing {
                Standing::Pending { since } => since,
                _ => now,
            };
            match observed {
                Observed::Bad => begin(since, patience, now),
                Observed::MixShift if !patience.muted => Next::NoteShift,
                // A round without an answer does not start the wait anew; many do.
                Observed::Unknown
                    if now - since >= patience.for_us.saturating_add(patience.keep_us) =>
                {
                    Next::Stay(Standing::Ok)
                }
                Observed::Unknown => Next::Stay(standing),
                Observed::MixShift | Observed::Good | Observed::Between => Next::Stay(Standing::Ok),
            }
        }
    }
}

fn begin(since: i64, patience: Patience, now: i64) -> Next {
    if !patience.muted && now - since >= patience.for_us {
        Next::Open
    } else {
        Next::Stay(Standing::Pending { since })
    }
}

fn firing(observed: Observed, patience: Patience, now: i64, (since, seen_at): (i64, i64)) -> Next {
    match observed {
        Observed::Good => Next::Resolve(RECOVERED),
        Observed::MixShift => Next::Resolve(MIX_SHIFT),
        Observed::Unknown if now - seen_at >= patience.keep_us => Next::Resolve(NO_DATA),
        Observed::Unknown => Next::Stay(Standing::Firing { since, seen_at }),
        Observed::Bad | Observed::Between => Next::Stay(Standing::Firing {
            since,
            seen_at: now,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Observed::{Bad, Between, Good, MixShift, Unknown};

    const PATIENCE: Patience = Patience {
        for_us: 5,
        keep_us: 10,
        muted: false,
    };
    const MUTED: Patience = Patience {
        muted: true,
        ..PATIENCE
    };
    const OK: Standing = Standing::Ok;
    const PENDING: Standing = Standing::Pending { since: 100 };
    const FIRING: Standing = Standing::Firing {
        since: 100,
        seen_at: 100,
    };
    const SHIFTED: Standing = Standing::Shifted { since: 100 };

    #[test]
    fn every_state_answers_every_observation() {
        let seen = Standing::Firing {
            since: 100,
            seen_at: 104,
        };
        let pending = Standing::Pending { since: 104 };
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
            let actual = next(standing, observed, PATIENCE, 104);
            assert_eq!(actual, expected, "{standing:?} {observed:?}");
        }
    }

    #[test]
    fn it_fires_once_it_was_bad_for_long_enough_and_at_once_without_a_wait() {
        assert_eq!(next(PENDING, Bad, PATIENCE, 104), Next::Stay(PENDING));
        assert_eq!(next(PENDING, Bad, PATIENCE, 105), Next::Open);
        let at_once = Patience {
            for_us: 0,
            ..PATIENCE
        };
        assert_eq!(next(OK, Bad, at_once, 100), Next::Open);
        assert_eq!(next(SHIFTED, Bad, at_once, 100), Next::Open);
    }

    #[test]
    fn what_nothing_is_heard_of_waits_no_longer_than_an_incident_would_last() {
        assert_eq!(next(PENDING, Unknown, PATIENCE, 114), Next::Stay(PENDING));
        assert_eq!(next(PENDING, Unknown, PATIENCE, 115), Next::Stay(OK));
        let for_ever = Patience {
            keep_us: i64::MAX,
            ..PATIENCE
        };
        assert_eq!(next(PENDING, Unknown, for_ever, 115), Next::Stay(PENDING));
    }

    #[test]
    fn an_incident_does_not_flap_between_its_two_bounds() {
        let mut standing = FIRING;
        for now in 101..150 {
            let Next::Stay(stays) = next(standing, Between, PATIENCE, now) else {
                panic!("it ended at {now}");
            };
            standing = stays;
        }
        assert_eq!(
            next(standing, Good, PATIENCE, 150),
            Next::Resolve(RECOVERED)
        );
    }

    #[test]
    fn without_answers_an_incident_ends_when_nobody_can_say_any_more() {
        assert_eq!(next(FIRING, Unknown, PATIENCE, 109), Next::Stay(FIRING));
        assert_eq!(next(FIRING, Unknown, PATIENCE, 110), Next::Resolve(NO_DATA));
        let Next::Stay(seen) = next(FIRING, Bad, PATIENCE, 109) else {
            panic!("it ended");
        };
        assert_eq!(next(seen, Unknown, PATIENCE, 110), Next::Stay(seen));
    }

    #[test]
    fn a_mute_opens_nothing_but_what_is_open_still_ends() {
        assert_eq!(next(PENDING, Bad, MUTED, 1_000), Next::Stay(PENDING));
        assert_eq!(next(PENDING, Bad, PATIENCE, 1_001), Next::Open, "after it");
        assert_eq!(next(OK, MixShift, MUTED, 1_000), Next::Stay(OK));
        assert_eq!(next(FIRING, Good, MUTED, 1_000), Next::Resolve(RECOVERED));
        assert_eq!(next(FIRING, Unknown, MUTED, 1_000), Next::Resolve(NO_DATA));
    }
}
