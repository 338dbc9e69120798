//! `unjank demo`: fills a fresh data folder with a month of data from a made-up shop, and serves it.

use std::convert::Infallible;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use unjank_foundation::clock::{HOUR, UnixTime};
use unjank_protocol::Timestamp;

use super::runtime;
use super::server::{keep_files_private, listeners, refuse_unfinished, watch_signals};
use crate::app::App;
use crate::config::{Keep, Serve, Shared};
use crate::demo::{self, DemoClock, DemoFile, Plan, Sent};
use crate::serve::{Surroundings, Then, serve_after};

#[derive(Args, Debug)]
#[command(
    after_help = "A folder that already holds a demo is served without changes. After an interruption, delete the folder and start again."
)]
pub(super) struct DemoArgs {
    /// The number of days, 2 to 90, the last of which ends now.
    #[arg(long, value_name = "DAYS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(2..=90))]
    days: u32,

    /// The number of installs of the app, 20 to 100000. 2,000 installs send about 1.5 million events in 30 days.
    #[arg(long, value_name = "COUNT", default_value_t = 2_000, value_parser = clap::value_parser!(u64).range(20..=100_000))]
    installs: u64,

    /// The seed of the random data.
    #[arg(long, value_name = "NUMBER", default_value_t = 7)]
    seed: u64,

    /// The end of the data, such as 2026-11-20T00:00:00Z. Unset: the last full hour.
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<Timestamp>,

    /// Serve once the data is stored; `--serve=false` exits instead.
    #[arg(long, default_value_t = true, num_args = 0..=1, default_missing_value = "true", require_equals = true, action = clap::ArgAction::Set)]
    serve: bool,

    #[command(flatten)]
    settings: Serve,
}

fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "must be a time such as 2026-11-20T00:00:00Z".to_owned())
}

pub(super) fn run(shared: &Shared, args: &DemoArgs) -> anyhow::Result<()> {
    refuse_unfinished(shared)?;
    let held = DemoFile::read(&shared.data_dir)?;
    if held.as_ref().is_some_and(|demo| !demo.complete) {
        anyhow::bail!(
            "seeding {} was interrupted: delete the folder and start again",
            shared.data_dir.display()
        );
    }
    keep_files_private();
    let runtime = runtime()?;
    let result = runtime.block_on(seed_and_serve(shared, args, held.map(|demo| demo.plan)));
    // A thread stuck in a system call must not keep the server from exiting.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

async fn seed_and_serve(
    shared: &Shared,
    args: &DemoArgs,
    held: Option<Plan>,
) -> anyhow::Result<()> {
    let settings = Serve {
        project: demo::PROJECT.to_owned(),
        // The generated month must stay complete, however long it is served.
        keep: Keep {
            retention_days: 0,
            ..args.settings.keep.clone()
        },
        ..args.settings.clone()
    };
    let listeners = listeners(&settings).await?;
    let address = listeners.public.local_addr()?;
    let clock = DemoClock::default();
    let shutdown = CancellationToken::new();
    let ended = shutdown.clone();
    let signals = watch_signals(shutdown.clone())?;
    let surroundings = Surroundings {
        listeners,
        clock: clock.clock(),
        shutdown,
    };
    let data_dir = &shared.data_dir;
    let (served_app, app_to_follow) = oneshot::channel();
    let prepare = async |app: Arc<App>| {
        let plan = if let Some(plan) = held {
            print_line(&format!("{} already holds a demo", data_dir.display()))?;
            plan
        } else {
            seed(data_dir, args, &app, &clock).await?
        };
        if !args.serve {
            return Ok(Then::End);
        }
        print_line(&format!("http://{address}  project {}", demo::PROJECT))?;
        let _ended = served_app.send((app, plan));
        Ok(Then::Serve)
    };
    let follow = async {
        if let Ok((app, plan)) = app_to_follow.await {
            // Nothing may reach the log while the server ends.
            ended
                .run_until_cancelled(demo::follow_rollouts(&app, &plan))
                .await;
        }
        std::future::pending::<Infallible>().await
    };
    let served = tokio::select! {
        served = serve_after(shared, &settings, surroundings, prepare) => served,
        never = follow => match never {},
    };
    signals.abort();
    served
}

async fn seed(
    data_dir: &Path,
    args: &DemoArgs,
    app: &Arc<App>,
    clock: &DemoClock,
) -> anyhow::Result<Plan> {
    if demo::holds_data(app).await? {
        anyhow::bail!(
            "{} or its ClickHouse holds data of the project `{}` that this demo did not create: choose a fresh --data-dir",
            data_dir.display(),
            demo::PROJECT
        );
    }
    let now = app.clock.now();
    let until = args.until.map_or(now, UnixTime::from).min(now);
    let plan = Plan {
        seed: args.seed,
        installs: args.installs,
        days: args.days,
        until: until.floor(HOUR).as_micros(),
    };
    let mut file = DemoFile {
        plan,
        complete: false,
    };
    file.write(data_dir)?;
    let started = Instant::now();
    let sent = demo::seed(app, &file.plan, clock, |sent| progress(sent, args.days)).await?;
    let password = demo::make_admin(&app.control, app.clock.now()).await?;
    file.complete = true;
    file.write(data_dir)?;
    print_line(&format!(
        "{} events in {} batches of {} installs, in {:.0} s",
        sent.events,
        sent.batches,
        args.installs,
        started.elapsed().as_secs_f64()
    ))?;
    match password {
        Some(password) => print_line(&format!("log in as {} with {password}", demo::EMAIL)),
        None => print_line(&format!(
            "log in as {} (the password is unchanged)",
            demo::EMAIL
        )),
    }?;
    Ok(file.plan)
}

/// Rewrites one line on a terminal; otherwise prints a line every ten days.
fn progress(sent: Sent, days: u32) {
    let mut out = std::io::stdout().lock();
    let line = format!("{} of {days} days, {} events", sent.days, sent.events);
    let _unheard = if out.is_terminal() {
        let end = if sent.days == days { "\n" } else { "" };
        write!(out, "\r{line}{end}")
            .and_then(|()| out.flush())
            .is_err()
    } else if sent.days.is_multiple_of(10) || sent.days == days {
        writeln!(out, "{line}").is_err()
    } else {
        false
    };
}

fn print_line(line: &str) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout().lock(), "{line}")?)
}
