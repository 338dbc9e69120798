//! Which user an event belongs to. An event is stamped when it is recorded, because the user may have changed when its batch is
//! made.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of turns that are remembered. Events of an older turn that still wait get no user rather than the wrong one.
const REMEMBERED: usize = 64;

/// A period with one user. The same user may have several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn(u32);

/// The current user, and earlier ones whose events may still wait.
#[derive(Debug, Default)]
pub(crate) struct Users {
    now: AtomicU32,
    turns: Mutex<VecDeque<(Turn, String)>>,
}

impl Users {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(Turn, String)>> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the user of later events; empty for none.
    pub(crate) fn set(&self, user_id: &str) {
        let mut turns = self.lock();
        let current = turns.back().map_or("", |(_, user)| user);
        if current == user_id {
            return;
        }
        let turn = self.now.load(Ordering::Relaxed).saturating_add(1);
        if turns.len() >= REMEMBERED {
            turns.pop_front();
        }
        turns.push_back((Turn(turn), user_id.to_owned()));
        self.now.store(turn, Ordering::Release);
    }

    /// Returns the current turn.
    pub(crate) fn turn(&self) -> Turn {
        Turn(self.now.load(Ordering::Acquire))
    }

    /// Returns the user of a turn; empty for none and for a turn that is forgotten.
    pub(crate) fn user(&self, turn: Turn) -> String {
        let turns = self.lock();
        let found = turns.iter().find(|(one, _)| *one == turn);
        found.map(|(_, user)| user.clone()).unwrap_or_default()
    }

    /// Returns the current user.
    pub(crate) fn current(&self) -> String {
        self.user(self.turn())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_keeps_its_user_and_a_forgotten_one_has_none() {
        let users = Users::default();
        assert_eq!(users.current(), "");
        users.set("ann");
        let ann = users.turn();
        users.set("ann");
        assert_eq!(users.turn(), ann);
        users.set("bob");
        assert_eq!(
            (users.user(ann), users.current()),
            ("ann".to_owned(), "bob".to_owned())
        );
        for number in 0..REMEMBERED {
            users.set(&format!("u{number}"));
        }
        assert_eq!(users.user(ann), "");
    }
}
