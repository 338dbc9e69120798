//! Sessions: requests with one `session_id` share a connection, one at a time, with its settings and temporary tables.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::exception::Exception;
use crate::ffi::Connection;
use crate::request::SessionAsk;

struct Session {
    /// `None` while a statement uses it, and before its first one.
    connection: Option<Connection>,
    in_use: bool,
    expires: Instant,
}

/// All sessions, bounded in number.
pub(crate) struct Sessions {
    sessions: Mutex<HashMap<String, Session>>,
    most: usize,
}

impl Sessions {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            sessions: Mutex::default(),
            most,
        }
    }

    /// Takes a session for one statement.
    pub(crate) fn enter(self: &Arc<Self>, ask: &SessionAsk) -> Result<SessionUse, Exception> {
        self.expire(Instant::now());
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let count = sessions.len();
        let connection = match sessions.get_mut(&ask.id) {
            Some(session) if session.in_use => {
                return Err(Exception::new(
                    373,
                    "SESSION_IS_LOCKED",
                    format!("Session {} is locked by a concurrent client", ask.id),
                ));
            }
            Some(session) => {
                session.in_use = true;
                session.connection.take()
            }
            None if ask.check => {
                return Err(Exception::new(
                    372,
                    "SESSION_NOT_FOUND",
                    format!("Session {} not found", ask.id),
                ));
            }
            None if count >= self.most => {
                return Err(Exception::new(
                    202,
                    "TOO_MANY_SIMULTANEOUS_QUERIES",
                    format!("Too many sessions: at most {}", self.most),
                ));
            }
            None => {
                sessions.insert(
                    ask.id.clone(),
                    Session {
                        connection: None,
                        in_use: true,
                        expires: Instant::now(),
                    },
                );
                None
            }
        };
        Ok(SessionUse {
            sessions: Arc::clone(self),
            ask: ask.clone(),
            connection,
        })
    }

    /// Forgets the sessions that were not used for too long.
    pub(crate) fn expire(&self, now: Instant) {
        let mut expired = Vec::new();
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.retain(|_, session| {
            let keep = session.in_use || session.expires > now;
            if !keep {
                expired.extend(session.connection.take());
            }
            keep
        });
        // Connections are closed when nobody waits for the lock.
        drop(sessions);
        drop(expired);
    }

    pub(crate) fn clear(&self) {
        self.expire(Instant::now() + Duration::from_secs(u64::from(u32::MAX)));
    }
}

/// A session while a statement uses it. Dropped, it is free again.
pub(crate) struct SessionUse {
    sessions: Arc<Sessions>,
    ask: SessionAsk,
    /// To be put back when the statement has ended; without it the session starts afresh next time.
    pub(crate) connection: Option<Connection>,
}

impl Drop for SessionUse {
    fn drop(&mut self) {
        let mut sessions = self
            .sessions
            .sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.ask.close {
            sessions.remove(&self.ask.id);
        } else if let Some(session) = sessions.get_mut(&self.ask.id) {
            session.connection = self.connection.take();
            session.in_use = false;
            session.expires = Instant::now() + self.ask.timeout;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(id: &str, check: bool) -> SessionAsk {
        SessionAsk {
            id: id.to_owned(),
            timeout: Duration::from_secs(5),
            check,
            close: false,
        }
    }

    #[test]
    fn a_session_is_locked_while_it_is_used() {
        let sessions = Arc::new(Sessions::new(8));
        let first = sessions.enter(&ask("a", false)).unwrap();
        assert_eq!(sessions.enter(&ask("a", false)).err().unwrap().code, 373);
        drop(first);
        drop(sessions.enter(&ask("a", true)).unwrap());
    }

    #[test]
    fn a_session_expires_and_its_number_is_bounded() {
        let sessions = Arc::new(Sessions::new(1));
        drop(sessions.enter(&ask("a", false)).unwrap());
        assert_eq!(sessions.enter(&ask("b", false)).err().unwrap().code, 202);
        sessions.expire(Instant::now() + Duration::from_secs(6));
        assert_eq!(sessions.enter(&ask("a", true)).err().unwrap().code, 372);
    }
}
