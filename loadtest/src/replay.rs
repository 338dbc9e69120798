//! Sends recorded batches unchanged, twice each.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use unjank_protocol::Batch;

use crate::arguments::ReplayArgs;
use crate::format::Format;
use crate::ledger::Ledger;
use crate::load::{self, LoadSettings, Outcome, Stops};
use crate::outcomes::Repeats;
use crate::parcel::{Encoding, Manifest, Parcel};
use crate::report::{Measured, Report};
use crate::server::{KEY, Server};
use crate::server_and_store::{Check, ServerAndStore};
use crate::store::Scope;
use crate::workload::Destination;

/// What to send, and how.
pub(crate) struct Recording<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) encoding: Encoding,
    pub(crate) connections: u16,
    pub(crate) verify: bool,
    pub(crate) destination: Destination,
}

/// `unjank-loadtest replay`: replays to a server that this tool starts with an empty store.
pub(crate) async fn run_alone(args: &ReplayArgs) -> Result<Report> {
    let folder = tempfile::tempdir().context("creating a folder for the server's data")?;
    let data_dir = folder.path().join("data");
    let mut server = Server::start(&args.server_bin, &data_dir)?;
    server.ready().await?;
    let place = ServerAndStore::own(&data_dir, &server.admin_url(), args.drain_timeout)?;
    let recording = Recording {
        folder: &args.dir,
        encoding: args.encoding,
        connections: args.connections,
        verify: args.verify,
        destination: Destination {
            url: server.url(),
            key: KEY.to_owned(),
            backoff: args.retry.backoff(),
            timeout: args.retry.timeout,
        },
    };
    let mut report = run(&recording, &place).await?;
    report.server_version = server.version();
    server.stop().await?;
    Ok(report)
}

/// Sends every file of the folder once, then again. The second time, the server must report each batch as a duplicate.
pub(crate) async fn run(recording: &Recording<'_>, place: &ServerAndStore) -> Result<Report> {
    let parcels = read(recording.folder, recording.encoding)?;
    let encoding = format!("{:?}", recording.encoding).to_lowercase();
    let settings = BTreeMap::from([("files", parcels.len().to_string()), ("encoding", encoding)]);
    let mut report = Report::new("replay", settings);
    let fresh = place.is_fresh().await?;
    let mut outcomes = Vec::new();
    for name in ["First time", "Second time"] {
        let (watch, stages) = (place.watch(), place.stages().await);
        let outcome = send(recording, parcels.clone()).await?;
        let drain = place.drain().await?;
        report.add(Measured {
            name,
            outcome: &outcome,
            offered: None,
            drain_s: drain,
            watch: &watch,
            stages: place.stages().await.since(&stages),
        });
        outcomes.push(outcome);
    }
    report.storage = place.storage().await?;
    let [first, second] = &outcomes[..] else {
        unreachable!("the loop runs twice");
    };
    report.warnings.extend(judge_first(first));
    let all_repeated = second.tally.counts.duplicates == second.tally.counts.batches;
    if !all_repeated {
        report.warnings.push(format!(
            "the server reported only {} of {} repeated batches as duplicates",
            second.tally.counts.duplicates, second.tally.counts.batches
        ));
    }
    if recording.verify {
        let check = Check {
            scope: scope(&first.ledger, &parcels),
            // If some batches were duplicates the first time, the books count their events from an earlier replay.
            fresh: fresh && first.tally.counts.duplicates == 0,
            repeated: second.ledger.repeated(),
            repeats: Repeats::AtLeast,
        };
        let mut verification = place.verify(&first.ledger, check).await?;
        verification.holds &= all_repeated;
        report.verification = Some(verification);
    }
    Ok(report)
}

fn judge_first(outcome: &Outcome) -> Option<String> {
    let duplicates = outcome.tally.counts.duplicates;
    (duplicates > 0).then(|| {
        format!(
            "{duplicates} of {} batches were already stored by a replay within the last 7 days, so verification only \
             shows that they were not stored again",
            outcome.tally.counts.batches
        )
    })
}

async fn send(recording: &Recording<'_>, parcels: Vec<Parcel>) -> Result<Outcome> {
    let stops = Stops::default();
    let carrier = recording
        .destination
        .carrier(recording.connections, &stops)?;
    let settings = LoadSettings {
        outstanding: usize::from(recording.connections),
        expected: None,
        stop_after: None,
        verify: recording.verify,
        grace: None,
        recent: None,
    };
    let parcels = parcels.into_iter().map(Ok);
    let outcome = load::run(parcels, Instant::now(), settings, carrier, stops).await?;
    ensure!(!outcome.interrupted, "interrupted");
    Ok(outcome)
}

fn scope(ledger: &Ledger, parcels: &[Parcel]) -> Scope {
    Scope::Recorded {
        sessions: ledger.sessions(),
        batches: parcels.iter().map(|parcel| parcel.batch_id).collect(),
    }
}

/// Reads the batches of a folder, in the order of their file names.
fn read(folder: &Path, encoding: Encoding) -> Result<Vec<Parcel>> {
    let listing =
        std::fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in listing {
        let path = entry?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            paths.push(path);
        }
    }
    paths.sort();
    ensure!(!paths.is_empty(), "no .json files in {}", folder.display());
    let parcels = paths.iter().zip(0..).map(|(path, seq)| {
        parcel(path, seq, encoding).with_context(|| format!("reading {}", path.display()))
    });
    parcels.collect()
}

fn parcel(path: &Path, seq: u64, encoding: Encoding) -> Result<Parcel> {
    let json = std::fs::read(path)?;
    let batch: Batch<'_> = serde_json::from_slice(&json).context("not a batch")?;
    Ok(Parcel {
        seq,
        batch_id: batch.batch_id,
        at: None,
        body: encoding.compress(&json)?.into(),
        encoding,
        format: Format::Batch,
        events: batch.events() as u64,
        plain_bytes: json.len() as u64,
        manifest: Manifest::new(&batch),
        clock: None,
    })
}
