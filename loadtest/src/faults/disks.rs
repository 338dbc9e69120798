//! Full and failing disks.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use crate::faults::devices::Size;
use crate::faults::image::Image;
use crate::faults::kills::newest_segment;
use crate::faults::rig::{Rig, Trial};
use crate::faults::site::Site;
use crate::faults::strace::{self, Calls, Effect, Injected, Injection, When};
use crate::faults::verdict::cannot_check;
use crate::faults::wait::eventually;

const DISK_BYTES: u64 = 800 << 20;
/// Free space that is left for batches when the disk starts to fill up.
const LEFT_BYTES: u64 = 6 << 20;
/// How long the disk stays full.
const FULL: Duration = Duration::from_secs(10);

/// The disk fills up. Space is freed while everything is running, and in a second try after both processes were killed.
pub(super) async fn full(trial: &Trial) -> Result<String> {
    let image = Image::new(&trial.folder, DISK_BYTES).await?;
    // The default limit rejects batches before the disk is full, which would hide the behavior on a full disk.
    let settings = vec![("UNJANK_MIN_FREE_BYTES", "4096".to_owned())];
    let disk = image.mount_point().to_owned();
    let mut rig = trial.rig_at(disk, settings, None).await?;
    rig.devices.send(Size::Small, 2).await?;
    rig.balanced().await.context("before the disk was full")?;
    for killed in [false, true] {
        let case = if killed {
            "full, then killed"
        } else {
            "full, then free"
        };
        trial.say(case);
        fill_and_free(&mut rig, &image, killed)
            .await
            .context(case)?;
        rig.balanced().await.context(case)?;
    }
    let failed = rig.devices.failed_attempts;
    ensure!(
        failed > 0,
        cannot_check("the disk never filled up: no batch was rejected")
    );
    let stored = rig.exactly_once().await?;
    Ok(format!(
        "the disk was full twice, {failed} requests were rejected; {stored}"
    ))
}

async fn fill_and_free(rig: &mut Rig, image: &Image, killed: bool) -> Result<()> {
    rig.under_load(Size::Medium, async |site| {
        let filler = Filler::leave(image, LEFT_BYTES)?;
        eventually(Duration::from_secs(20), async || {
            Ok(image.free_bytes()? < 64 << 10)
        })
        .await?;
        sleep(FULL).await;
        if killed {
            site.kill_both().await?;
            site.server.start_again()?;
            sleep(Duration::from_secs(4)).await;
        }
        drop(filler);
        site.recover().await
    })
    .await
}

/// A file that takes up the space of a disk. Removed when dropped.
struct Filler(PathBuf);

impl Filler {
    fn leave(image: &Image, bytes: u64) -> Result<Self> {
        let filler = Self(image.mount_point().join("filler"));
        let file = File::create(&filler.0).context("filling the disk")?;
        let taken = image.free_bytes()?.saturating_sub(bytes);
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, taken)
            .context("filling the disk")?;
        Ok(filler)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).unwrap_or_default();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Server,
    /// The newest segment of the server's log.
    Log,
    Engine,
}

/// Calls that fail, and when. `--quick` only tries the first five.
const FAILURES: [(Of, Calls, When); 14] = [
    (Of::Log, Calls::Sync, When::Always),
    (Of::Server, Calls::Rename, When::Nth(1)),
    (Of::Engine, Calls::Sync, When::Nth(3)),
    (Of::Engine, Calls::Rename, When::Nth(2)),
    (Of::Engine, Calls::Write, When::Nth(40)),
    (Of::Log, Calls::Sync, When::Nth(2)),
    (Of::Log, Calls::Write, When::Nth(2)),
    (Of::Log, Calls::Write, When::Always),
    (Of::Server, Calls::Rename, When::Always),
    (Of::Server, Calls::Sync, When::Always),
    (Of::Engine, Calls::Sync, When::Always),
    (Of::Engine, Calls::Rename, When::Nth(5)),
    (Of::Engine, Calls::Rename, When::Always),
    (Of::Engine, Calls::Unlink, When::Always),
];

/// How long calls fail.
const FAILS: Duration = Duration::from_secs(3);

/// System calls fail with EIO, as on a dying disk.
pub(super) async fn failing(trial: &Trial) -> Result<String> {
    strace::needed()?;
    let mut rig = trial.rig().await?;
    rig.devices.send(Size::Small, 2).await?;
    rig.balanced().await.context("before any failure")?;
    let (cases, mut failures) = (trial.choose(&FAILURES, 5), 0);
    for (of, calls, when) in cases {
        let case = describe(*of, *calls, *when);
        let failed = fail(&mut rig, &trial.folder, *of, *calls, *when).await;
        let failed = failed.context(case.clone())?;
        trial.say(&format!("{case}: {failed} calls failed"));
        rig.balanced().await.context(case)?;
        failures += failed;
    }
    ensure!(failures > 0, cannot_check("no injected call was reached"));
    let stored = rig.exactly_once().await?;
    Ok(format!(
        "{failures} calls failed in {} tries; {stored}",
        cases.len()
    ))
}

async fn fail(rig: &mut Rig, folder: &Path, of: Of, calls: Calls, when: When) -> Result<usize> {
    let engine = rig.site.engine().await?;
    rig.under_load(Size::Small, async |site| {
        let segment = newest_segment(&site.data_dir);
        let pid = match of {
            Of::Engine => engine,
            Of::Server | Of::Log => site.server.pid(),
        };
        let injection = Injection {
            calls,
            when,
            effect: Effect::Fail,
            path: segment.as_deref().filter(|_| of == Of::Log),
        };
        let injected = Injected::attach(pid, &injection, folder).await?;
        sleep(FAILS).await;
        let failed = injected.hits();
        drop(injected);
        restart_after_engine_failures(site, of).await?;
        Ok(failed)
    })
    .await
}

/// After several failures of the engine, the server waits long before it starts the engine again. Restarting the server ends that
/// wait.
async fn restart_after_engine_failures(site: &mut Site, of: Of) -> Result<()> {
    site.recover().await?;
    if of == Of::Engine {
        site.restart().await?;
    }
    Ok(())
}

fn describe(of: Of, calls: Calls, when: When) -> String {
    let whose = match of {
        Of::Server => "the server's",
        Of::Log => "the log's",
        Of::Engine => "the engine's",
    };
    match when {
        When::Nth(n) => format!("{whose} {} {n} failed", calls.noun()),
        When::Always => format!("{whose} every {} failed", calls.noun()),
    }
}
