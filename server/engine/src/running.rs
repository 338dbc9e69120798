//! The statements that run: at most so many at once, each with an id of its own, each stoppable from outside.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use crate::exception::Exception;

/// A running statement, as others see it.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) query_id: String,
    /// What the engine knows the statement by.
    pub(crate) token: String,
    stopped: AtomicBool,
    finished: AtomicBool,
    only_reads: AtomicBool,
    client_gone: AtomicBool,
}

impl Running {
    /// Somebody wants it to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finished.load(Ordering::Acquire)
    }

    /// Its client is gone. Answers whether nobody misses the statement now, since it changes nothing.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.client_gone.store(true, Ordering::SeqCst);
        self.only_reads.load(Ordering::SeqCst)
    }

    /// It changes nothing. Answers whether its client is gone already. (Either this or `is_left_alone` sees the other.)
    pub(crate) fn only_reads_for_nobody(&self) -> bool {
        self.only_reads.store(true, Ordering::SeqCst);
        self.client_gone.load(Ordering::SeqCst)
    }
}

/// All running statements, by their ids.
#[derive(Default)]
pub(crate) struct Registry {
    statements: Mutex<HashMap<String, Arc<Running>>>,
}

impl Registry {
    /// Enters a statement; it leaves when the ticket is dropped.
    pub(crate) fn enter(self: &Arc<Self>, query_id: &str) -> Result<Ticket, Exception> {
        let running = Arc::new(Running {
            query_id: query_id.to_owned(),
            token: format!("unjank-{}", Uuid::new_v4().simple()),
            stopped: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            only_reads: AtomicBool::new(false),
            client_gone: AtomicBool::new(false),
        });
        let mut statements = self
            .statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if statements.contains_key(query_id) {
            return Err(Exception::new(
                216,
                "QUERY_WITH_SAME_ID_IS_ALREADY_RUNNING",
                format!("Query with id = {query_id} is already running"),
            ));
        }
        statements.insert(query_id.to_owned(), Arc::clone(&running));
        Ok(Ticket {
            running,
            registry: Arc::clone(self),
        })
    }

    pub(crate) fn all(&self) -> Vec<Arc<Running>> {
        self.statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }
}

/// A statement's place among the running ones.
pub(crate) struct Ticket {
    pub(crate) running: Arc<Running>,
    registry: Arc<Registry>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.running.finished.store(true, Ordering::Release);
        self.registry
            .statements
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.running.query_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_while_its_statement_runs() {
        let registry = Arc::new(Registry::default());
        let first = registry.enter("a").unwrap();
        assert_eq!(registry.enter("a").err().unwrap().code, 216);
        let running = Arc::clone(&first.running);
        drop(first);
        assert!(running.is_finished());
        registry.enter("a").unwrap();
    }
}
