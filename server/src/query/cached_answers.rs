//! Answers that change slowly, cached for some minutes by project. One query at a time reads; others wait for its result.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unjank_foundation::clock::UnixTime;

use super::QueryError;

/// Maximum number of projects. A full cache is cleared.
const MOST_PROJECTS: usize = 256;

/// By project: the time at which the answer was read, and the answer.
type Answers<T> = BTreeMap<String, (UnixTime, Arc<T>)>;

pub(super) struct CachedAnswers<T> {
    /// Maximum age of an answer.
    fresh: Duration,
    answers: Arc<Mutex<Answers<T>>>,
    /// Held by the one query that reads.
    reading: Arc<tokio::sync::Mutex<()>>,
}

impl<T> Clone for CachedAnswers<T> {
    fn clone(&self) -> Self {
        Self {
            fresh: self.fresh,
            answers: Arc::clone(&self.answers),
            reading: Arc::clone(&self.reading),
        }
    }
}

impl<T> CachedAnswers<T> {
    pub(super) fn new(fresh: Duration) -> Self {
        Self {
            fresh,
            answers: Arc::default(),
            reading: Arc::default(),
        }
    }

    pub(super) const fn fresh(&self) -> Duration {
        self.fresh
    }

    /// Returns the answer of a project at a time. `read` gets this time, rounded down to the maximum age.
    pub(super) async fn of(
        &self,
        project: &str,
        now: UnixTime,
        read: impl AsyncFnOnce(UnixTime) -> Result<T, QueryError>,
    ) -> Result<Arc<T>, QueryError> {
        let at = now.floor(self.fresh);
        if let Some(answer) = self.known(project, at) {
            return Ok(answer);
        }
        let _reading = self.reading.lock().await;
        if let Some(answer) = self.known(project, at) {
            return Ok(answer);
        }
        let answer = Arc::new(read(at).await?);
        let mut answers = self.lock();
        if answers.len() >= MOST_PROJECTS {
            answers.clear();
        }
        answers.insert(project.to_owned(), (at, Arc::clone(&answer)));
        Ok(answer)
    }

    /// Returns the answer of a project, if it was read at this time.
    fn known(&self, project: &str, at: UnixTime) -> Option<Arc<T>> {
        let answers = self.lock();
        let (read_at, answer) = answers.get(project)?;
        (*read_at == at).then(|| Arc::clone(answer))
    }

    fn lock(&self) -> MutexGuard<'_, Answers<T>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
