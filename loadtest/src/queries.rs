//! `unjank-loadtest queries`: measures how long the dashboard's queries take on a large store, and how much they read.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use reqwest::Client;
use serde_json::Value;
use unjank_protocol::Timestamp;

use crate::clickhouse::{Access, ClickHouse};
use crate::console;
use crate::fill::{Amount, classified, fill};
use crate::server::Server;
use crate::store;

#[derive(Debug, Args)]
pub(crate) struct QueriesArgs {
    /// Path of the `unjank` binary.
    #[arg(long)]
    server_bin: PathBuf,
    /// Folder of the filled store, which is kept so that later runs need not fill it again. It needs about 60 bytes per span.
    #[arg(long)]
    data_dir: PathBuf,
    /// Number of spans. The store also gets a tenth as many janks and metric samples, and a fifth as many frame windows.
    #[arg(long, default_value_t = 100_000_000)]
    spans: u64,
    /// Number of days that the data covers.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(8..))]
    days: u64,
    /// Number of measured runs per query.
    #[arg(long, default_value_t = 15)]
    times: usize,
}

/// Whether a screen shows the query first, or later: after its first numbers, or when the user looks at details.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Overview,
    Detail,
}

pub(crate) struct Question {
    screen: &'static str,
    pub(crate) kind: Kind,
    pub(crate) path: String,
}

struct Answer {
    median: Duration,
    p95: Duration,
    rows: u64,
    bytes: u64,
    source: String,
}

pub(crate) async fn run(args: &QueriesArgs) -> Result<()> {
    let mut server = Server::start(&args.server_bin, &args.data_dir)?;
    server.ready().await?;
    let clickhouse = ClickHouse::new(Access::Engine(args.data_dir.clone()))?;
    let amount = Amount {
        days: args.days,
        spans: args.spans,
    };
    fill(&clickhouse, amount).await?;
    roll_up(&server, &clickhouse, args.days).await?;
    server.stop().await?;
    server.start_again()?;
    server.ready().await?;
    classified(&clickhouse).await?;
    console::say("waiting for merges ...");
    while clickhouse
        .value::<u64>("SELECT count() FROM system.merges")
        .await?
        > 0
    {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let asker = Asker {
        client: Client::builder().no_proxy().build()?,
        base: format!("{}/api/v1/projects/default/", server.url()),
        token: server.api_token()?,
        times: args.times,
    };
    let largest = "SELECT c.group_id FROM janks AS s INNER JOIN stack_class_current AS c ON c.stack_hash = s.stack_hash \
         GROUP BY c.group_id ORDER BY count() DESC LIMIT 1";
    let group: String = clickhouse.value(largest).await?;
    let mut text = String::from(
        "| screen | query | source | p50 ms | p95 ms | rows read | bytes read |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for question in questions(args.days, &group)? {
        let answer = asker.ask(&question).await?;
        let kind = if question.kind == Kind::Overview {
            ""
        } else {
            " (detail)"
        };
        let row = format!(
            "| {}{kind} | `{}` | {} | {:.0} | {:.0} | {} | {} |",
            question.screen,
            question.path,
            answer.source,
            answer.median.as_secs_f64() * 1e3,
            answer.p95.as_secs_f64() * 1e3,
            answer.rows,
            answer.bytes
        );
        console::say(&row);
        writeln!(text, "{row}")?;
    }
    writeln!(
        text,
        "\n| table | rows | bytes on disk | bytes a row |\n| --- | --- | --- | --- |"
    )?;
    for table in store::sizes(&clickhouse).await? {
        writeln!(
            text,
            "| {} | {} | {} | {:.1} |",
            table.table, table.rows, table.bytes_on_disk, table.bytes_per_row
        )?;
    }
    console::print(&text);
    server.stop().await
}

/// Batches are kept for eight days.
const DAYS_OF_BATCHES: u64 = 7;

async fn roll_up(server: &Server, clickhouse: &ClickHouse, days: u64) -> Result<()> {
    let missing = "SELECT count() > (SELECT sum(samples) FROM spans_hourly) * 1.01 FROM spans";
    if clickhouse.value::<u8>(missing).await? == 1 {
        console::say("rolling up ...");
        let signals = [
            "spans",
            "frame_windows",
            "janks",
            "page_loads",
            "metrics",
            "traffic",
        ];
        server.roll_up(&["--from", &format!("{days}d")], &signals)?;
        server.roll_up(&["--from", &format!("{DAYS_OF_BATCHES}d")], &["usage"])?;
    }
    Ok(())
}

struct Asker {
    client: Client,
    base: String,
    token: String,
    times: usize,
}

impl Asker {
    async fn ask(&self, question: &Question) -> Result<Answer> {
        let mut taken = Vec::new();
        let mut last = Value::Null;
        // The first run opens connections and files, and is not counted.
        for _ in 0..=self.times {
            let begun = Instant::now();
            let request = self.client.get(format!("{}{}", self.base, question.path));
            let response = request
                .bearer_auth(&self.token)
                .send()
                .await
                .context("querying the server")?;
            let status = response.status();
            last = response.json().await?;
            if !status.is_success() {
                bail!("{}: {last}", question.path);
            }
            if is_empty(&last) {
                bail!("{} returned no data: {last}", question.path);
            }
            taken.push(begun.elapsed());
        }
        taken.remove(0);
        taken.sort_unstable();
        let at =
            |share: f64| taken[unjank_random::whole((taken.len() - 1) as f64 * share) as usize];
        Ok(Answer {
            median: at(0.5),
            p95: at(0.95),
            rows: last["rows_read"].as_u64().unwrap_or_default(),
            bytes: last["bytes_read"].as_u64().unwrap_or_default(),
            source: last["source"].as_str().unwrap_or("raw").to_owned(),
        })
    }
}

/// A query that finds nothing would make the measurement meaningless.
fn is_empty(answer: &Value) -> bool {
    let lists = ["rows", "series", "events", "spans"].map(|name| &answer[name]);
    let mut lists = lists.into_iter().chain([&answer["root"]["children"]]);
    !lists.any(|list| list.as_array().is_some_and(|list| !list.is_empty()))
}

/// Parses the queries of the screens. Each line is `overview | screen | path` or `detail | screen | path`.
pub(crate) fn questions(days: u64, group: &str) -> Result<Vec<Question>> {
    let now = crate::clock::now().as_micros();
    let time = |days_ago: u64| {
        let ago = i64::try_from(days_ago).unwrap_or_default() * 86_400_000_000;
        Timestamp::from_micros(now - ago).to_string()
    };
    let midnight = |days_ago: u64| {
        time(days_ago)
            .chars()
            .take(10)
            .chain("T00:00:00Z".chars())
            .collect::<String>()
    };
    let month = format!("from={}", time(days));
    let whole_day = format!("from={}&to={}", midnight(2), midnight(1));
    let versions = "app_version=4.12.0&base_app_version=4.11.0";
    let lines = include_str!("queries/questions.txt").lines();
    lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut parts = line.split(" | ");
            let (kind, screen, path) = (parts.next(), parts.next(), parts.next());
            let path = path.with_context(|| format!("no path in `{line}`"))?;
            Ok(Question {
                screen: screen.unwrap_or_default(),
                kind: if kind == Some("overview") {
                    Kind::Overview
                } else {
                    Kind::Detail
                },
                path: path
                    .replace("{month}", &month)
                    .replace("{whole_day}", &whole_day)
                    .replace("{group}", group)
                    .replace("{versions}", versions),
            })
        })
        .collect()
}
