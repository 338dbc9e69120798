//! Sends a request to the server on a thread of its own, so that the wait for the response blocks nothing else. `verdict` says what a response
//! means.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::transport::{Request, Response, Transport, TransportError, send};
use crate::clock::cpu_time;

/// A request that owns its parts.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: &'static str,
    pub(crate) url: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) timeout: Duration,
}

pub(crate) type Answer = Result<Response, TransportError>;

/// A request that is under way on a thread of its own.
#[derive(Debug)]
pub(crate) struct Exchange {
    done: Arc<Mutex<Option<Done>>>,
}

/// A finished request.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) answer: Answer,
    /// CPU time of the thread that sent the request.
    pub(crate) cpu: Duration,
}

impl Exchange {
    /// Sends a request. Wakes the background thread when the response is there.
    pub(crate) fn begin(
        transport: &Arc<dyn Transport>,
        request: Outgoing,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let done = Arc::new(Mutex::new(None));
        let (result, transport) = (Arc::clone(&done), Arc::clone(transport));
        let run = Arc::new(move || {
            let before = cpu_time();
            let answer = request.send(&*transport);
            let cpu = cpu_time().saturating_sub(before);
            *lock(&result) = Some(Done { answer, cpu });
            wake();
        });
        let on_thread = Arc::clone(&run);
        let thread = std::thread::Builder::new().name("unjank-http".to_owned());
        if thread.spawn(move || on_thread()).is_err() {
            // The system has no thread left. Events wait in the queue during the request.
            run();
        }
        Self { done }
    }

    /// Returns the response if there is one.
    pub(crate) fn take(&self) -> Option<Done> {
        lock(&self.done).take()
    }
}

fn lock(done: &Mutex<Option<Done>>) -> MutexGuard<'_, Option<Done>> {
    done.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Outgoing {
    fn send(&self, transport: &dyn Transport) -> Answer {
        let headers = self.headers.iter();
        let headers: Vec<_> = headers
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let request = Request {
            method: self.method,
            url: &self.url,
            headers: &headers,
            body: &self.body,
            timeout: self.timeout,
        };
        send(transport, request)
    }
}
