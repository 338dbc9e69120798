//! Notices a ClickHouse that no longer answers: the embedded engine, which is then restarted, or the operator's ClickHouse, which is then
//! reported.

use std::ops::ControlFlow;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::clickhouse::{ClickHouse, Failure, SILENCE};

const ASK_EVERY: Duration = Duration::from_secs(15);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// This many questions take three minutes. They are counted because time also passes while the whole machine is suspended.
const MOST_UNANSWERED: u32 = 12;

/// What a question shows, unless all is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// The first question without an answer.
    Silent,
    /// No question was answered for three minutes.
    Hangs,
    /// The first answer after that or after [`Self::Silent`].
    Answers,
}

/// Resolves with the reason when the embedded engine has not answered for so long that it has to be restarted.
pub(super) async fn hangs(clickhouse: &ClickHouse) -> String {
    // An error is an answer of a running engine. An engine that ends is noticed elsewhere.
    let ask = || async move { answer(clickhouse).await.is_some() };
    let on = |change| {
        match change {
            Change::Hangs => return ControlFlow::Break(()),
            Change::Answers => tracing::info!("the embedded engine answers again"),
            Change::Silent => tracing::warn!(
                "the embedded engine does not answer within {ANSWER_WITHIN:?}; events are kept in the ingest log. If it goes on, the server \
                 restarts the engine after three minutes"
            ),
        }
        ControlFlow::Continue(())
    };
    watch(ask, || sleep(ASK_EVERY), on).await;
    "ClickHouse runs, but did not answer for three minutes".to_owned()
}

/// Asks the operator's ClickHouse through `asked`, and marks `used` as silent while there is no successful answer for three minutes.
pub async fn watch_server(asked: &ClickHouse, used: &ClickHouse) {
    let ask = || async move { matches!(answer(asked).await, Some(Ok(_))) };
    let on = |change| {
        report(change, used);
        ControlFlow::Continue(())
    };
    watch(ask, || sleep(ASK_EVERY), on).await;
}

/// The failures of single statements are logged where they happen. A statement that hangs does not fail.
fn report(change: Change, used: &ClickHouse) {
    match change {
        Change::Silent => {}
        Change::Hangs => {
            used.set_silent(true);
            tracing::warn!("{SILENCE}; events are kept in the ingest log");
        }
        Change::Answers if used.is_silent() => {
            used.set_silent(false);
            tracing::info!("ClickHouse answers again");
        }
        Change::Answers => {}
    }
}

/// Asks again and again, and reports the changes until `on` breaks. A round takes as long as `pause`.
async fn watch<A, P>(
    ask: impl Fn() -> A,
    pause: impl Fn() -> P,
    mut on: impl FnMut(Change) -> ControlFlow<()>,
) where
    A: Future<Output = bool>,
    P: Future<Output = ()>,
{
    let mut unanswered = 0_u32;
    loop {
        let (is_answered, ()) = tokio::join!(ask(), pause());
        let before = unanswered;
        unanswered = match is_answered {
            true => 0,
            false => before.saturating_add(1),
        };
        let change = match (before, unanswered) {
            (0, 1) => Change::Silent,
            (1.., 0) => Change::Answers,
            (_, MOST_UNANSWERED) => Change::Hangs,
            _ => continue,
        };
        if on(change).is_break() {
            return;
        }
    }
}

/// Returns `None` if there is no answer in time.
async fn answer(clickhouse: &ClickHouse) -> Option<Result<u8, Failure>> {
    let client = match clickhouse.reader() {
        Ok(client) => client,
        Err(failure) => return Some(Err(failure)),
    };
    let answer = client.query("SELECT 1").fetch_one::<u8>();
    let answer = timeout(ANSWER_WITHIN, answer).await.ok()?;
    Some(answer.map_err(Failure::from))
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::future::{pending, ready};

    use futures_util::FutureExt;

    use super::*;

    /// Watches a ClickHouse that answers the questions as listed. Returns the changes, each with the number of its round.
    fn changes(answers: &[bool]) -> Vec<(u32, Change)> {
        let (answers, rounds) = (RefCell::new(answers.iter().copied()), Cell::new(0));
        let mut changes = Vec::new();
        let ask = || {
            let next = answers.borrow_mut().next();
            async move {
                match next {
                    Some(is_answered) => is_answered,
                    None => pending().await,
                }
            }
        };
        let pause = || {
            rounds.set(rounds.get() + 1);
            ready(())
        };
        let on = |change| {
            changes.push((rounds.get(), change));
            ControlFlow::Continue(())
        };
        assert_eq!(watch(ask, pause, on).now_or_never(), None);
        changes
    }

    #[test]
    fn a_clickhouse_hangs_after_twelve_rounds_without_an_answer_in_between() {
        use Change::{Answers, Hangs, Silent};
        assert_eq!(ASK_EVERY * MOST_UNANSWERED, Duration::from_secs(180));
        assert_eq!(changes(&[true; 50]), []);
        assert_eq!(changes(&[false; 50]), [(1, Silent), (12, Hangs)]);
        let recovers = [&[false; 11][..], &[true], &[false; 12], &[true; 2]].concat();
        assert_eq!(
            changes(&recovers),
            [
                (1, Silent),
                (12, Answers),
                (13, Silent),
                (24, Hangs),
                (25, Answers)
            ]
        );
    }

    #[tokio::test]
    async fn what_to_do_is_a_part_of_the_reason_while_a_server_hangs() {
        let clickhouse = ClickHouse::away("unjank");
        let reason = async || clickhouse.ping().await.unwrap_err().to_string();
        for (change, is_told) in [
            (Change::Silent, false),
            (Change::Hangs, true),
            (Change::Answers, false),
        ] {
            report(change, &clickhouse);
            assert_eq!(reason().await.contains(SILENCE), is_told, "{change:?}");
        }
    }
}
