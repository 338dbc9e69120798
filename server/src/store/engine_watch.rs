//! Notices an embedded engine that runs but no longer answers.

use std::time::Duration;

use tokio::time::{sleep, timeout};

use super::clickhouse::ClickHouse;

const ASK_EVERY: Duration = Duration::from_secs(5);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// An engine that leaves this many questions in a row without an answer, which takes three minutes, is restarted. They are counted because
/// time also passes while the whole machine is suspended.
const UNANSWERED: u32 = 12;

/// Resolves with the reason when the engine has not answered for so long that it has to be restarted.
pub(super) async fn hangs(clickhouse: &ClickHouse) -> String {
    let mut unanswered = 0;
    loop {
        sleep(ASK_EVERY).await;
        if answers(clickhouse).await {
            if unanswered > 0 {
                tracing::info!("the embedded engine answers again");
            }
            unanswered = 0;
            continue;
        }
        unanswered += 1;
        if unanswered == 1 {
            tracing::warn!(
                "the embedded engine does not answer within {ANSWER_WITHIN:?}; events are kept in the ingest log. If it goes on, the server \
                 restarts the engine after three minutes"
            );
        }
        if unanswered >= UNANSWERED {
            return "ClickHouse runs, but did not answer for three minutes".to_owned();
        }
    }
}

/// Whether the engine answers in time. An error is an answer.
async fn answers(clickhouse: &ClickHouse) -> bool {
    let Ok(client) = clickhouse.reader() else {
        return true;
    };
    let answer = client.query("SELECT 1").fetch_one::<u8>();
    timeout(ANSWER_WITHIN, answer).await.is_ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::store::clickhouse::{Login, Target};

    #[tokio::test(start_paused = true)]
    async fn an_engine_that_takes_connections_but_never_answers_hangs() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let login = Login {
            user: "reader".to_owned(),
            password: String::new(),
        };
        let clickhouse = ClickHouse::away("unjank");
        clickhouse.point_at(Some(&Target {
            url: format!("http://{}", silent.local_addr().unwrap()),
            writer: login.clone(),
            reader: login,
            database: "unjank".to_owned(),
            compress: false,
        }));
        let reason = hangs(&clickhouse).await;
        assert!(reason.contains("did not answer"), "{reason}");
    }
}
