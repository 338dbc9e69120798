//! `unjank-loadtest queries`: how long the questions of the screens take on a large store, and what they read for it.

use std::fmt::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Args;
use reqwest::Client;
use serde_json::Value;

use crate::clickhouse::{Access, ClickHouse};
use crate::console;
use crate::fill::{Amount, fill};
use crate::server::Server;
use crate::store;

#[derive(Debug, Args)]
pub(crate) struct QueriesArgs {
    /// The server to start.
    #[arg(long)]
    server_bin: PathBuf,
    /// Where the filled store is kept, so that the next run need not fill it again. It needs some 60 bytes a span.
    #[arg(long)]
    data_dir: PathBuf,
    /// Spans; a tenth as many janks and samples, a fifth as many frame windows.
    #[arg(long, default_value_t = 100_000_000)]
    spans: u64,
    /// Days they are spread over.
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(8..))]
    days: u64,
    /// How often each question is asked.
    #[arg(long, default_value_t = 15)]
    times: usize,
}

/// What a screen asks first, or when somebody looks closer.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Overview,
    Detail,
}

struct Question {
    screen: &'static str,
    kind: Kind,
    path: String,
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
    let mut text = String::from(
        "| screen | question | source | p50 ms | p95 ms | rows read | bytes read |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for question in questions(args.days)? {
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
        // The first opens connections and files: it is not counted.
        for _ in 0..=self.times {
            let begun = Instant::now();
            let request = self.client.get(format!("{}{}", self.base, question.path));
            let response = request
                .bearer_auth(&self.token)
                .send()
                .await
                .context("asking the server")?;
            let status = response.status();
            last = response.json().await?;
            if !status.is_success() {
                bail!("{}: {last}", question.path);
            }
            taken.push(begun.elapsed());
        }
        taken.remove(0);
        taken.sort_unstable();
        let at =
            |share: f64| taken[crate::random::whole((taken.len() - 1) as f64 * share) as usize];
        Ok(Answer {
            median: at(0.5),
            p95: at(0.95),
            rows: last["rows_read"].as_u64().unwrap_or_default(),
            bytes: last["bytes_read"].as_u64().unwrap_or_default(),
            source: last["source"].as_str().unwrap_or("raw").to_owned(),
        })
    }
}

/// What the screens ask, with the filters they start with: seven days, or all that is there.
fn questions(days: u64) -> Result<Vec<Question>> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let time = |days_ago: u64| {
        let seconds = i64::try_from(now - days_ago * 86_400).unwrap_or_default();
        unjank_protocol::Timestamp::from_micros(seconds * 1_000_000).to_string()
    };
    let day = |days_ago: u64| {
        time(days_ago)
            .chars()
            .take(10)
            .chain("T00:00:00Z".chars())
            .collect::<String>()
    };
    let month = format!("from={}", time(days));
    let whole_day = format!("from={}&to={}", day(2), day(1));
    let versions = "app_version=4.12.0&base_app_version=4.11.0";
    let overview = |screen, path: &str| (screen, Kind::Overview, path.to_owned());
    let detail = |screen, path: &str| (screen, Kind::Detail, path.to_owned());
    let questions = vec![
        overview("Overview", "query/usage?by=app_version"),
        overview(
            "Overview",
            "query/frame_windows?by=app_version&measure=slow_share&measure=frozen_share&measure=fps",
        ),
        overview(
            "Overview",
            "query/janks?by=app_version&by=kind&measure=count&measure=installs&not_a_cause=false",
        ),
        overview(
            "Overview",
            "query/page_loads?by=app_version&measure=total_p75_ms",
        ),
        overview(
            "Overview",
            &format!(
                "query/spans?by=name&measure=p95_us&measure=count&order=-change.p95_us&{versions}"
            ),
        ),
        overview(
            "Jank",
            "query/janks?by=group_id&by=title&order=-sum_ms&measure=count&measure=installs&measure=sum_ms&not_a_cause=false",
        ),
        overview(
            "Jank",
            &format!(
                "query/janks?by=group_id&order=-sum_ms&measure=count&measure=installs&measure=sum_ms&{month}"
            ),
        ),
        overview(
            "Jank",
            &format!("query/janks/series?by=app_version&measure=count&group_id=1001&{month}"),
        ),
        overview(
            "Jank",
            "query/janks?by=group_id&order=-sum_ms&measure=count&measure=sum_ms&os_name=android&device_class=low",
        ),
        detail(
            "Jank",
            "query/janks?by=device_model&group_id=1001&measure=count",
        ),
        detail("Jank", "janks/flame?group_id=1001"),
        detail("Jank", "janks/events?group_id=1001"),
        detail(
            "Jank",
            "query/janks?by=group_id&order=-sum_ms&measure=count&measure=installs&os_version=14",
        ),
        overview("Frames", "query/frame_windows?by=page"),
        overview("Frames", &format!("query/frame_windows?by=page&{month}")),
        overview("Frames", "query/frame_windows/distribution?by=app_version"),
        overview("Page loads", "query/page_loads?by=page"),
        overview(
            "Page loads",
            &format!(
                "query/page_loads/series?measure=total_p75_ms&page=Page3Activity&by=app_version&{month}"
            ),
        ),
        detail(
            "Page loads",
            "query/page_requests?by=path&page=Page3Activity",
        ),
        overview(
            "Spans",
            "query/spans?by=name&measure=count&measure=p50_us&measure=p95_us",
        ),
        overview(
            "Spans",
            &format!("query/spans?by=name&measure=count&measure=p50_us&measure=p95_us&{month}"),
        ),
        overview(
            "Spans",
            &format!("query/spans/series?name=checkout&by=app_version&measure=p95_us&{month}"),
        ),
        overview(
            "Spans",
            "query/spans/series?name=checkout&by=app_version&measure=p95_us",
        ),
        overview(
            "Spans",
            "query/spans/distribution?name=checkout&by=app_version",
        ),
        detail("Spans", "query/spans?by=package&measure=sum_us"),
        detail(
            "Spans",
            "query/spans/series?name=checkout&device_model=Model%207&measure=p95_us",
        ),
        detail("Spans", "spans/inside?name=checkout"),
        detail(
            "Traces",
            "traces?name=checkout&order=-duration_us&app_version=4.12.0",
        ),
        overview(
            "Traffic",
            &format!("query/traffic?by=day&by=source&by=network&limit=1000&{month}"),
        ),
        detail(
            "Traffic",
            &format!(
                "query/traffic?by=install_id&order=-bytes&limit=100&measure=bytes&{whole_day}"
            ),
        ),
        overview("Resources", "query/metrics?by=page&name=memory_used_bytes"),
        overview(
            "Resources",
            &format!("query/metrics?by=uptime&by=app_version&name=memory_used_bytes&{month}"),
        ),
    ];
    Ok(questions
        .into_iter()
        .map(|(screen, kind, path)| Question { screen, kind, path })
        .collect())
}
