//! Power cuts: the disk keeps only the data that was synced.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::faults::devices::Size;
use crate::faults::image::Image;
use crate::faults::rig::{Rig, Trial};
use crate::faults::site::is_alive;
use crate::faults::strace::{self, Calls, Effect, Injected, Injection, When};
use crate::faults::wait::eventually;

#[derive(Clone, Copy)]
enum Victim {
    Engine,
    Server,
}

/// Calls of the two processes at which the power is cut. `--quick` only tries the first two.
const CUTS: [(Victim, Calls, u32); 6] = [
    (Victim::Engine, Calls::Rename, 2),
    (Victim::Server, Calls::Rename, 2),
    (Victim::Engine, Calls::Rename, 9),
    (Victim::Engine, Calls::Sync, 20),
    (Victim::Server, Calls::Sync, 3),
    (Victim::Engine, Calls::Send, 2),
];

const BYTES: u64 = 2 << 30;

pub(super) async fn cut(trial: &Trial) -> Result<String> {
    strace::needed()?;
    let mut image = Image::new(&trial.folder, BYTES).await?;
    let settings = vec![("UNJANK_MIN_FREE_BYTES", "1000000".to_owned())];
    let disk = image.mount_point().to_owned();
    let mut rig = trial.rig_at(disk, settings, None).await?;
    rig.devices.send(Size::Small, 2).await?;
    rig.balanced().await.context("before any cut")?;
    // Sync the data of the first start, which is not under test.
    tokio::time::sleep(Duration::from_secs(2)).await;
    image.sync().await?;
    let cases = trial.choose(&CUTS, 2);
    for (victim, calls, n) in cases {
        let name = match victim {
            Victim::Engine => "engine",
            Victim::Server => "server",
        };
        let case = format!("cut at {} {n} of the {name}", calls.noun());
        trial.say(&case);
        let cut = cut_at(&mut rig, &mut image, *victim, *calls, *n, &trial.folder).await;
        cut.context(case.clone())?;
        rig.balanced().await.context(case.clone())?;
        // An engine that lost its deduplication tokens fails when an INSERT is repeated, so provoke a repetition.
        kill_engine(&mut rig, &trial.folder)
            .await
            .with_context(|| format!("{case}, then a kill"))?;
        rig.balanced()
            .await
            .with_context(|| format!("{case}, then a kill"))?;
    }
    let stored = rig.exactly_once().await?;
    Ok(format!("{} cuts, a kill after each; {stored}", cases.len()))
}

async fn cut_at(
    rig: &mut Rig,
    image: &mut Image,
    victim: Victim,
    calls: Calls,
    n: u32,
    folder: &Path,
) -> Result<()> {
    let engine = rig.site.engine().await?;
    let pid = match victim {
        Victim::Engine => engine,
        Victim::Server => rig.site.server.pid(),
    };
    rig.under_load(Size::Small, async |site| {
        let injected = Injected::attach(pid, &kill_at(calls, n), folder).await?;
        // If the process does not reach the call, cut the power anyway.
        eventually(Duration::from_secs(5), async || Ok(!is_alive(pid))).await?;
        site.kill_both().await?;
        drop(injected);
        image.lose_power().await?;
        site.start_again().await
    })
    .await
}

async fn kill_engine(rig: &mut Rig, folder: &Path) -> Result<()> {
    let pid = rig.site.engine().await?;
    rig.under_load(Size::Small, async |site| {
        let injected = Injected::attach(pid, &kill_at(Calls::Rename, 2), folder).await?;
        eventually(Duration::from_secs(5), async || Ok(!is_alive(pid))).await?;
        drop(injected);
        site.engine().await.map(drop)
    })
    .await
}

fn kill_at(calls: Calls, n: u32) -> Injection<'static> {
    Injection {
        calls,
        when: When::Nth(n),
        effect: Effect::Kill,
        path: None,
    }
}
