//! The verdict on a fault.

use std::time::Duration;

use anyhow::Result;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Holds(String),
    FallsShort(String),
    /// This machine cannot cause the fault, so nothing was tested.
    NotChecked(String),
}

/// The error for a fault that this machine cannot cause, with the reason.
#[derive(Debug)]
pub(super) struct CannotCheck(pub(super) String);

impl std::fmt::Display for CannotCheck {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for CannotCheck {}

/// Creates the error for a fault that cannot be tested here.
pub(super) fn cannot_check(why: impl Into<String>) -> anyhow::Error {
    CannotCheck(why.into()).into()
}

impl Verdict {
    /// Every error except [`CannotCheck`] counts against the server.
    pub(super) fn new(tried: Result<String>) -> Self {
        match tried {
            Ok(how) => Self::Holds(how),
            Err(error) => match error.downcast_ref::<CannotCheck>() {
                Some(CannotCheck(why)) => Self::NotChecked(why.clone()),
                None => Self::FallsShort(format!("{error:#}")),
            },
        }
    }

    pub(super) fn line(&self, fault: &str, took: Duration) -> String {
        let (word, why) = match self {
            Self::Holds(why) => ("holds", why),
            Self::FallsShort(why) => ("falls short", why),
            Self::NotChecked(why) => ("not checked", why),
        };
        format!("{word:<12} {fault}: {why} ({} s)", took.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Context, anyhow};

    use super::*;

    #[test]
    fn a_fault_that_cannot_be_caused_is_not_checked() {
        let tried: Result<String> = Err(cannot_check("no strace")).context("killing the engine");
        assert_eq!(
            Verdict::new(tried),
            Verdict::NotChecked("no strace".to_owned())
        );
        let tried = Err(anyhow!("2 doubled").context("rename 7"));
        let verdict = Verdict::new(tried);
        assert_eq!(
            verdict.line("engine-killed", Duration::from_millis(2_900)),
            "falls short  engine-killed: rename 7: 2 doubled (2 s)"
        );
    }
}
