//! Runs the queries of the overview screens, one at a time, during the load.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use reqwest::Client;
use tokio::task::JoinSet;

use crate::console;
use crate::parcel_threads::Stop;
use crate::queries::{Kind, questions};
use crate::server::Server;
use crate::tally::{Latencies, Spread};

/// Pause after each response.
const PAUSE: Duration = Duration::from_secs(1);
/// Number of days that the longest queries cover.
const DAYS: u64 = 30;
/// Queries about one group of stacks need its id, so the probe skips them.
const NO_GROUP: &str = "";

/// Measurements since the last [`Probe::take`].
struct Asked {
    spread: Spread,
    /// Queries that failed.
    failed: u64,
}

/// Latencies of the queries in one interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Questions {
    pub(super) latency: Latencies,
    pub(super) p95_ms: f64,
    pub(super) failed: u64,
}

pub(super) struct Probe {
    asked: Arc<Mutex<Asked>>,
    stop: Stop,
    tasks: JoinSet<()>,
}

impl Probe {
    pub(super) fn start(server: &Server) -> Result<Self> {
        let client = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(60))
            .build()?;
        let base = format!("{}/api/v1/projects/default/", server.url());
        let token = server.api_token()?;
        let mut probe = Self {
            asked: Arc::new(Mutex::new(Asked {
                spread: Spread::new()?,
                failed: 0,
            })),
            stop: Stop::default(),
            tasks: JoinSet::new(),
        };
        let (asked, stop) = (Arc::clone(&probe.asked), probe.stop.clone());
        probe.tasks.spawn(async move {
            if let Err(error) = ask_for_ever(&client, &base, &token, &asked, &stop).await {
                console::say(&format!("the probe failed: {error:#}"));
            }
        });
        Ok(probe)
    }

    pub(super) fn stop(&self) {
        self.stop.now();
    }

    pub(super) fn take(&self) -> Result<Questions> {
        let empty = Asked {
            spread: Spread::new()?,
            failed: 0,
        };
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = std::mem::replace(&mut *asked, empty);
        Ok(Questions {
            latency: taken.spread.latencies(),
            p95_ms: taken.spread.quantile_ms(0.95),
            failed: taken.failed,
        })
    }
}

async fn ask_for_ever(
    client: &Client,
    base: &str,
    token: &str,
    asked: &Mutex<Asked>,
    stop: &Stop,
) -> Result<()> {
    while !stop.asked() {
        let questions = questions(DAYS, NO_GROUP)?;
        let overviews = questions.iter().filter(|one| {
            one.kind == Kind::Overview && !one.path.contains(&format!("group_id={NO_GROUP}&"))
        });
        for question in overviews {
            let begun = Instant::now();
            let answer = client
                .get(format!("{base}{}", question.path))
                .bearer_auth(token)
                .send()
                .await;
            let answered = match answer {
                Ok(answer) => answer.status().is_success() && answer.bytes().await.is_ok(),
                Err(_) => false,
            };
            note(asked, begun.elapsed(), answered);
            tokio::time::sleep(PAUSE).await;
            if stop.asked() {
                break;
            }
        }
    }
    Ok(())
}

fn note(asked: &Mutex<Asked>, took: Duration, answered: bool) {
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    asked.spread.record(took);
    asked.failed += u64::from(!answered);
}
