//! `unjank-loadtest chaos`: kills processes under load, then verifies.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::task::JoinSet;
use unjank_random::Random;

use crate::arguments::ChaosArgs;
use crate::console;
use crate::delivery::Backoff;
use crate::fingerprint::Times;
use crate::load::{Outcome, Stops};
use crate::outcomes::Repeats;
use crate::plan::Rate;
use crate::report::{Chaos, Measured, Report};
use crate::server::{KEY, Server};
use crate::server_and_store::{Check, ServerAndStore};
use crate::store::Scope;
use crate::workload::{Destination, Workload, new_tag};

pub(crate) async fn run(args: &ChaosArgs) -> Result<Report> {
    ensure!(
        args.load.rate != Rate::Max,
        "chaos needs an open loop: pass a number to --rate"
    );
    let temporary = tempfile::tempdir().context("creating a folder for the server's data")?;
    let data_dir = match &args.data_dir {
        Some(folder) => folder.clone(),
        None => temporary.path().join("data"),
    };
    ensure_empty(&data_dir)?;
    let mut server = Server::start(&args.server_bin, &data_dir)?;
    server.ready().await?;
    let admin_url = server.admin_url();
    let mut report = Report::new("chaos", args.load.settings());
    report.server_version = server.version();
    report
        .settings
        .insert("kill every", format!("{:?}", args.kill_every));
    let destination = Destination {
        url: server.url(),
        key: KEY.to_owned(),
        backoff: backoff(),
        timeout: Duration::from_secs(20),
    };
    let tag = new_tag();
    let workload = Arc::new(Workload {
        load: args.load.clone(),
        tag,
        duration: None,
        batches: None,
        verify: true,
        times: Times::OfRightClocks,
    });
    let place = ServerAndStore::own(&data_dir, &admin_url, args.drain_timeout)?;
    let watch = crate::watch::Watch::begin(None, None);
    let stops = Stops::default();
    let mut devices: JoinSet<Result<Outcome>> = JoinSet::new();
    let (load, load_stops) = (Arc::clone(&workload), stops.clone());
    devices.spawn(async move { load.stream(&destination, &load_stops).await });

    let killed = kill_at_random(args, &mut server, &stops).await;
    // Stop the load even if killing failed: otherwise the devices would send forever.
    stops.load.now();
    report.chaos = Some(killed?);
    console::say("no more kills; waiting for the last batches and the log ...");
    let outcome = devices
        .join_next()
        .await
        .context("the load did not start")??;
    let outcome = outcome?;
    let drain = place.drain().await?;
    report.add(Measured {
        name: "Load",
        outcome: &outcome,
        offered: workload.offered(),
        drain_s: drain,
        watch: &watch,
        stages: Vec::new(),
    });
    report.storage = place.storage().await?;
    let check = Check {
        scope: Scope::Run(tag, workload.times),
        fresh: true,
        repeated: outcome.ledger.repeated(),
        repeats: Repeats::Unknown,
    };
    report.verification = Some(place.verify(&outcome.ledger, check).await?);
    server.stop().await?;
    Ok(report)
}

/// Devices never give up and retry often, because a killed process is back within a second.
fn backoff() -> Backoff {
    Backoff {
        first: Duration::from_millis(100),
        longest: Duration::from_secs(3),
        retry_after_scale: 0.1,
        attempts: None,
    }
}

fn ensure_empty(folder: &Path) -> Result<()> {
    let empty = match std::fs::read_dir(folder) {
        Ok(mut listing) => listing.next().is_none(),
        Err(_) => true,
    };
    ensure!(
        empty,
        "{} is not empty: chaos needs an empty folder for its own store",
        folder.display()
    );
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Server,
    Engine,
}

async fn kill_at_random(args: &ChaosArgs, server: &mut Server, stops: &Stops) -> Result<Chaos> {
    let mut random = Random::seeded(&[args.load.seed, 6]);
    let mut chaos = Chaos {
        server_kills: 0,
        engine_kills: 0,
        longest_restart_s: 0.0,
        mean_restart_s: 0.0,
    };
    let mut restarts = Vec::new();
    for victim in victims(args, &mut random) {
        // A short pause lets the next kill hit during the recovery from the last one.
        let pause = args.kill_every.mul_f64(random.exponential(1.0).min(4.0));
        if !sleep(pause, stops).await {
            break;
        }
        match victim {
            Victim::Server => {
                server.kill()?;
                server.start_again()?;
                let hurried = random.chance(0.25);
                if !hurried {
                    restarts.push(server.ready().await?.as_secs_f64());
                }
                chaos.server_kills += 1;
            }
            Victim::Engine => {
                if kill_engine_patiently(server).await? {
                    chaos.engine_kills += 1;
                }
            }
        }
        console::say(&format!(
            "killed: server {} of {}, engine {} of {}",
            chaos.server_kills, args.kills, chaos.engine_kills, args.engine_kills
        ));
    }
    server.ready().await?;
    chaos.longest_restart_s = restarts.iter().copied().fold(0.0, f64::max);
    chaos.mean_restart_s = restarts.iter().sum::<f64>() / restarts.len().max(1) as f64;
    Ok(chaos)
}

fn victims(args: &ChaosArgs, random: &mut Random) -> Vec<Victim> {
    let (mut servers, mut engines) = (u64::from(args.kills), u64::from(args.engine_kills));
    let mut victims = Vec::new();
    while servers + engines > 0 {
        if random.below(servers + engines) < servers {
            servers -= 1;
            victims.push(Victim::Server);
        } else {
            engines -= 1;
            victims.push(Victim::Engine);
        }
    }
    victims
}

/// Waits for an engine to kill, as it may be restarting.
async fn kill_engine_patiently(server: &mut Server) -> Result<bool> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if server.kill_engine()? {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    console::say("found no engine to kill for 60 s");
    Ok(false)
}

/// Sleeps. Returns `false` if the load has been stopped (Ctrl-C).
async fn sleep(pause: Duration, stops: &Stops) -> bool {
    let until = Instant::now() + pause;
    while Instant::now() < until && !stops.load.asked() {
        let left = until.saturating_duration_since(Instant::now());
        tokio::time::sleep(left.min(Duration::from_millis(100))).await;
    }
    !stops.load.asked()
}
