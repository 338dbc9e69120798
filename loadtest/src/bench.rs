//! `unjank-loadtest bench`: measures the figures of a release, starting from an empty store.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::arguments::{BenchArgs, LoadArgs};
use crate::console;
use crate::delivery::Backoff;
use crate::events::Mix;
use crate::fingerprint::Times;
use crate::format::Format;
use crate::idle;
use crate::load::{Outcome, Stops};
use crate::lone;
use crate::parcel::Encoding;
use crate::plan::{Arrivals, Rate};
use crate::polls;
use crate::report::{Measured, Report};
use crate::server::{KEY, Server};
use crate::server_and_store::ServerAndStore;
use crate::store;
use crate::workload::{Destination, Workload, new_tag};

/// Batches of the warm-up. Its rate determines how many batches the measurement needs.
const WARM_UP: u64 = 1_000;
/// Batches of all signals, sent to measure the sizes on disk.
const MIXED: u64 = 3_000;

pub(crate) async fn run(args: &BenchArgs) -> Result<Report> {
    let folder = tempfile::tempdir().context("creating a folder for the server's data")?;
    let data_dir = folder.path().join("data");
    let mut server = Server::start(&args.server_bin, &data_dir)?;
    server.ready().await?;
    let bench = Bench {
        args,
        destination: Destination {
            url: server.url(),
            key: KEY.to_owned(),
            backoff: Backoff {
                first: Duration::from_millis(200),
                longest: Duration::from_secs(5),
                retry_after_scale: 1.0,
                attempts: Some(20),
            },
            timeout: Duration::from_secs(30),
        },
        place: ServerAndStore::own(&data_dir, &server.admin_url(), Duration::from_secs(300))?,
    };
    let mut report = Report::new("bench", load(args, Rate::Max, Mix::Spans).settings());
    report.server_version = server.version();
    bench.work(&mut report).await?;
    if let Some(clickhouse) = bench.place.clickhouse() {
        console::say("single batches, one at a time ...");
        report.lone = Some(lone::measure(&server, clickhouse).await?);
    }
    console::say("polls of the configuration ...");
    let polls = polls::Setting {
        server: &server,
        place: &bench.place,
        connections: args.connections,
        duration: args.duration / 4,
    };
    report.polls = Some(polls.measure().await?);
    if args.idle_minutes > 0.0 {
        report.idle = Some(idle::measure(&server, args.idle_minutes).await?);
    }
    server.stop().await?;
    Ok(report)
}

struct Bench<'a> {
    args: &'a BenchArgs,
    destination: Destination,
    place: ServerAndStore,
}

impl Bench<'_> {
    async fn work(&self, report: &mut Report) -> Result<()> {
        console::say("warming up ...");
        let warm = self.workload(Rate::Max, Mix::Spans, None, Some(WARM_UP));
        let parcels = warm.prepare().await?;
        let size = parcels
            .iter()
            .map(|parcel| parcel.body.len() as u64)
            .sum::<u64>()
            / WARM_UP;
        let outcome = self.send(&warm, parcels).await?;
        let guess = rate_of(&outcome) * self.args.duration.as_secs_f64() * 1.6;
        let room = (self.args.memory_mib << 20) / (size + 512);
        let batches = unjank_random::whole(guess).min(room).max(WARM_UP);
        self.place.drain().await?;

        let closed = self.workload(
            Rate::Max,
            Mix::Spans,
            Some(self.args.duration),
            Some(batches),
        );
        let maximum = self
            .measure(report, "Highest rate (closed loop)", &closed)
            .await?;
        let half = Rate::PerSecond(maximum / 2.0);
        let open = self.workload(half, Mix::Spans, Some(self.args.duration), None);
        self.measure(
            report,
            "Latency at half the rate that ClickHouse keeps up with (open loop)",
            &open,
        )
        .await?;

        for (name, format) in [
            ("Highest rate of OTLP, protobuf", Format::OtlpProtobuf),
            ("Highest rate of OTLP, JSON", Format::OtlpJson),
        ] {
            let mut otlp = self.workload(
                Rate::Max,
                Mix::Spans,
                Some(self.args.duration),
                Some(batches),
            );
            otlp.load.format = format;
            self.measure(report, name, &otlp).await?;
        }

        console::say("sending all signals to measure the sizes on disk ...");
        let mixed = self.workload(Rate::Max, Mix::Realistic, None, Some(MIXED));
        self.send(&mixed, mixed.prepare().await?).await?;
        self.place.drain().await?;
        if let Some(clickhouse) = self.place.clickhouse() {
            store::optimize(clickhouse).await?;
            report.span_columns = store::column_sizes(clickhouse, "spans").await?;
        }
        report.storage = self.place.storage().await?;
        Ok(())
    }

    /// Builds the whole load, then sends it, so that no batch is built while the clock runs. Returns the stored batches per
    /// second, counted from the start until the log is drained: acknowledgments alone run ahead of ClickHouse while the log has
    /// space.
    async fn measure(
        &self,
        report: &mut Report,
        name: &'static str,
        workload: &Workload,
    ) -> Result<f64> {
        console::say(&format!("{name}: building the load ..."));
        let parcels = workload.prepare().await?;
        console::say(&format!(
            "{name}: sending up to {} batches ...",
            parcels.len()
        ));
        let (watch, stages) = (self.place.watch(), self.place.stages().await);
        let outcome = self.send(workload, parcels).await?;
        let drain = self.place.drain().await?;
        if let Some(clickhouse) = self.place.clickhouse() {
            store::merged(clickhouse).await?;
        }
        report.add(Measured {
            name,
            outcome: &outcome,
            offered: workload.offered(),
            drain_s: drain,
            watch: &watch,
            stages: self.place.stages().await.since(&stages),
        });
        let took = outcome.took.as_secs_f64() + drain.unwrap_or_default();
        Ok(outcome.tally.counts.acknowledged as f64 / took.max(0.001))
    }

    async fn send(
        &self,
        workload: &Workload,
        parcels: Vec<crate::parcel::Parcel>,
    ) -> Result<Outcome> {
        let outcome = workload
            .send(parcels, &self.destination, &Stops::default())
            .await?;
        ensure!(!outcome.interrupted, "interrupted");
        Ok(outcome)
    }

    fn workload(
        &self,
        rate: Rate,
        mix: Mix,
        duration: Option<Duration>,
        batches: Option<u64>,
    ) -> Workload {
        Workload {
            load: load(self.args, rate, mix),
            tag: new_tag(),
            duration,
            batches,
            verify: false,
            times: Times::Ignored,
        }
    }
}

fn load(args: &BenchArgs, rate: Rate, mix: Mix) -> LoadArgs {
    LoadArgs {
        rate,
        arrivals: Arrivals::Poisson,
        devices: 5_000,
        seed: args.seed,
        events_per_batch: args.events_per_batch,
        mix,
        encoding: Encoding::Zstd,
        format: args.form,
        connections: args.connections,
        outstanding: 20_000,
        generators: 2,
        late: 0.02,
        invalid: 0.0,
    }
}

fn rate_of(outcome: &Outcome) -> f64 {
    outcome.tally.counts.acknowledged as f64 / outcome.took.as_secs_f64().max(0.001)
}
