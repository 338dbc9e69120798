//! `unjank-loadtest run`: sends a load to a running server.

use anyhow::{Result, ensure};

use crate::arguments::RunArgs;
use crate::console;
use crate::fingerprint::Times;
use crate::load::Stops;
use crate::outcomes::Repeats;
use crate::plan::Rate;
use crate::replay::{self, Recording};
use crate::report::{Measured, Report};
use crate::server_and_store::{Check, ServerAndStore};
use crate::store::Scope;
use crate::workload::{Destination, Workload, new_tag};

pub(crate) async fn run(args: &RunArgs) -> Result<Report> {
    let place = ServerAndStore::new(args)?;
    let destination = Destination::new(&args.url, &args.key, &args.retry);
    if let Some(folder) = &args.replay {
        let recording = Recording {
            folder,
            encoding: args.load.encoding,
            connections: args.load.connections,
            verify: args.verify,
            destination,
        };
        return replay::run(&recording, &place).await;
    }
    let workload = Workload {
        load: args.load.clone(),
        tag: new_tag(),
        duration: Some(args.duration),
        batches: args.batches,
        verify: args.verify,
        times: if args.prepare {
            Times::Ignored
        } else {
            Times::OfRightClocks
        },
    };
    ensure!(
        !args.prepare || args.load.rate != Rate::Max || args.batches.is_some(),
        "--prepare with --rate max needs --batches, the number of batches to build"
    );
    let stops = Stops::default();
    let mut report = Report::new("run", args.load.settings());
    let fresh = place.is_fresh().await?;
    let prepared = if args.prepare {
        console::say("building the load ...");
        Some(workload.prepare().await?)
    } else {
        None
    };
    let (watch, stages) = (place.watch(), place.stages().await);
    let outcome = match prepared {
        Some(parcels) => workload.send(parcels, &destination, &stops).await?,
        None => workload.stream(&destination, &stops).await?,
    };
    let drain = place.drain().await?;
    report.add(Measured {
        name: "Load",
        outcome: &outcome,
        offered: workload.offered(),
        drain_s: drain,
        watch: &watch,
        stages: place.stages().await.since(&stages),
    });
    report.storage = place.storage().await?;
    if args.verify {
        let scope = Scope::Run(workload.tag, workload.times);
        let repeats = Repeats::known(&outcome.tally);
        let repeated = outcome.ledger.repeated();
        let check = Check {
            scope,
            fresh,
            repeated,
            repeats,
        };
        report.verification = Some(place.verify(&outcome.ledger, check).await?);
    }
    Ok(report)
}
