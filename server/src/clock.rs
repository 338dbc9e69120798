//! Time as a parameter: code that needs the time takes a [`Clock`], so that tests can set it.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A source of wall-clock time.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> i64 + Send + Sync>);

impl Clock {
    /// The machine's own clock.
    #[must_use]
    pub fn system() -> Self {
        Self::new(|| {
            #[expect(
                clippy::disallowed_methods,
                reason = "the one place that reads the machine's clock"
            )]
            let since_epoch = SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default();
            i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX)
        })
    }

    /// Creates a clock from a function that returns microseconds since the Unix epoch.
    pub fn new(micros: impl Fn() -> i64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(micros))
    }

    /// Returns the time in microseconds since the Unix epoch.
    #[must_use]
    pub fn now(&self) -> i64 {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.now())
    }
}
