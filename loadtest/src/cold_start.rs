//! `unjank-loadtest cold-start`: measures how soon a server with a large store takes batches and answers queries, and how soon it stops.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use reqwest::{Client, RequestBuilder};

use crate::console;
use crate::lone;
use crate::queries::{Kind, questions};
use crate::server::{KEY, Server};
use crate::tally::Spread;

#[derive(Debug, Args)]
pub(crate) struct ColdStartArgs {
    /// Path of the `unjank` binary. Use a release build.
    #[arg(long)]
    server_bin: PathBuf,
    /// Folder of a store that `queries` has filled. Each start adds one batch to it.
    #[arg(long)]
    data_dir: PathBuf,
    /// Number of days that the longest queries cover.
    #[arg(long, default_value_t = 30)]
    days: u64,
    /// Number of measured starts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    times: u32,
    /// Make the system forget the files that it has in memory before each start, as after a reboot. Needs root.
    #[arg(long)]
    drop_caches: bool,
}

/// How long a start may take before the measurement gives up.
const PATIENCE: Duration = Duration::from_secs(300);
/// Pause between two attempts to reach a server that starts.
const LOOK: Duration = Duration::from_millis(5);
/// A server that serves for a while has more to finish when it stops.
const SERVES: Duration = Duration::from_secs(5);
/// The latest times from the start until the first batch is acknowledged and until the first query is answered.
const MOST_TO_BATCH: Duration = Duration::from_secs(1);
const MOST_TO_ANSWER: Duration = Duration::from_secs(5);

/// The steps of a start and a stop.
struct Steps {
    /// From the start of the process until a batch is acknowledged.
    batch: Spread,
    /// From the start of the process until a query of a screen is answered.
    answer: Spread,
    /// From then on until each query of the overviews is answered once.
    overviews: Spread,
    /// From the signal until the process has ended.
    stop: Spread,
}

/// Returns whether the server was soon enough ready at each start.
pub(crate) async fn run(args: &ColdStartArgs) -> Result<bool> {
    ensure!(
        args.data_dir.join("engine").exists(),
        "{} has no store: fill it with `unjank-loadtest queries`",
        args.data_dir.display()
    );
    let mut server = Server::start(&args.server_bin, &args.data_dir)?;
    server.ready().await?;
    let asker = Asker {
        client: Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(60))
            .build()?,
        token: server.api_token()?,
        url: server.url(),
    };
    server.stop().await?;
    let mut steps = Steps {
        batch: Spread::new()?,
        answer: Spread::new()?,
        overviews: Spread::new()?,
        stop: Spread::new()?,
    };
    for time in 1..=args.times {
        console::say(&format!("start {time} of {} ...", args.times));
        if args.drop_caches {
            drop_caches()?;
        }
        steps.measure(&mut server, &asker, args.days).await?;
    }
    let [batch, answer] = [&steps.batch, &steps.answer].map(|spread| spread.quantile_ms(1.0));
    let rows = [
        ("the first batch is acknowledged after", &steps.batch),
        ("the first query is answered after", &steps.answer),
        (
            "then each overview is answered once within",
            &steps.overviews,
        ),
        ("the server stops within", &steps.stop),
    ];
    for (name, spread) in rows {
        let [p50, most] = [0.5, 1.0].map(|quantile| spread.quantile_ms(quantile));
        console::print(&format!("{name:<60} p50 {p50:.0} ms, at most {most:.0} ms"));
    }
    Ok(batch <= MOST_TO_BATCH.as_secs_f64() * 1e3 && answer <= MOST_TO_ANSWER.as_secs_f64() * 1e3)
}

impl Steps {
    async fn measure(&mut self, server: &mut Server, asker: &Asker, days: u64) -> Result<()> {
        let questions = questions(days, "")?;
        // A query about one group needs its id.
        let overviews: Vec<_> = questions
            .iter()
            .filter(|one| one.kind == Kind::Overview && !one.path.contains("group_id=&"))
            .map(|one| one.path.as_str())
            .collect();
        let first = overviews.first().context("there are no overviews")?;
        let begun = Instant::now();
        server.start_again()?;
        let (batch, answer) = tokio::join!(
            until_success(begun, || asker.batch()),
            until_success(begun, || asker.query(first)),
        );
        self.batch.record(batch?);
        self.answer.record(answer?);
        let begun = Instant::now();
        for path in &overviews {
            until_success(begun, || asker.query(path)).await?;
        }
        self.overviews.record(begun.elapsed());
        tokio::time::sleep(SERVES).await;
        let begun = Instant::now();
        server.stop().await?;
        self.stop.record(begun.elapsed());
        Ok(())
    }
}

struct Asker {
    client: Client,
    token: String,
    url: String,
}

impl Asker {
    fn batch(&self) -> RequestBuilder {
        let request = self.client.post(format!("{}/v1/ingest", self.url));
        request.bearer_auth(KEY).json(&lone::batch("cold start"))
    }

    fn query(&self, path: &str) -> RequestBuilder {
        let url = format!("{}/api/v1/projects/default/{path}", self.url);
        self.client.get(url).bearer_auth(&self.token)
    }
}

/// Repeats a request until it succeeds. Returns the time since `begun`.
async fn until_success(begun: Instant, request: impl Fn() -> RequestBuilder) -> Result<Duration> {
    loop {
        let answer = request().send().await;
        let last = match answer {
            Ok(answer) if answer.status().is_success() => {
                answer.bytes().await?;
                return Ok(begun.elapsed());
            }
            Ok(answer) => answer.status().to_string(),
            Err(error) => error.to_string(),
        };
        if begun.elapsed() > PATIENCE {
            bail!("no success within {PATIENCE:?}: {last}");
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Writes changed pages to the disk and drops all pages of files from memory.
fn drop_caches() -> Result<()> {
    rustix::fs::sync();
    std::fs::write("/proc/sys/vm/drop_caches", "3")
        .context("dropping the system's caches needs root")
}
