//! Kills a process at its n-th system call of a kind, or lets the call fail: `strace` does both.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::faults::rig::eventually;
use crate::faults::site::is_alive;
use crate::faults::verdict::cannot_check;

/// System calls of a kind. Those with `?` do not exist on every processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    Rename,
    Write,
    Sync,
    /// What the engine answers with.
    Send,
    Unlink,
}

impl Calls {
    fn names(self) -> &'static str {
        match self {
            Self::Rename => "?rename,renameat,renameat2",
            Self::Write => "write,writev,pwrite64",
            Self::Sync => "fsync,fdatasync",
            Self::Send => "sendto,sendmsg",
            Self::Unlink => "?unlink,unlinkat,?rmdir",
        }
    }

    /// For a verdict.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Self::Rename => "rename",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Send => "answer",
            Self::Unlink => "deletion",
        }
    }
}

/// Which calls, counted in each thread from the moment of attaching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Nth(u32),
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Kill,
    /// The call fails with EIO, and nothing is done.
    Fail,
}

#[derive(Clone, Debug)]
pub(super) struct Injection<'a> {
    pub(super) calls: Calls,
    pub(super) when: When,
    pub(super) effect: Effect,
    /// Only calls on this file.
    pub(super) path: Option<&'a Path>,
}

impl Injection<'_> {
    fn arguments(&self) -> Vec<String> {
        let names = self.calls.names();
        let effect = match self.effect {
            Effect::Kill => "signal=SIGKILL",
            Effect::Fail => "error=EIO",
        };
        let when = match self.when {
            When::Nth(n) => n.to_string(),
            When::Always => "1+".to_owned(),
        };
        let mut arguments = vec![
            "-f".to_owned(),
            "-e".to_owned(),
            format!("trace={names}"),
            "-e".to_owned(),
            format!("inject={names}:{effect}:when={when}"),
        ];
        if let Some(path) = self.path {
            arguments.extend(["-P".to_owned(), path.display().to_string()]);
        }
        arguments
    }
}

/// An injection under way. It ends when this is dropped; the process goes on.
pub(super) struct Injected {
    strace: Child,
    trace: PathBuf,
}

const ATTACH_PATIENCE: Duration = Duration::from_secs(10);

impl Injected {
    /// Attaches to every thread of the process. The trace goes into `folder`.
    pub(super) async fn attach(pid: u32, injection: &Injection<'_>, folder: &Path) -> Result<Self> {
        let trace = folder.join("strace.txt");
        let said = folder.join("strace.err");
        let strace = Command::new("strace")
            .args(injection.arguments())
            .arg("-o")
            .arg(&trace)
            .args(["-p", &pid.to_string()])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&said).context("making a file for strace")?)
            .spawn()
            .map_err(|error| cannot_check(format!("strace does not start: {error}")))?;
        let mut injected = Self { strace, trace };
        let attached = eventually(ATTACH_PATIENCE, async || {
            // It dies at once where an n-th call comes at once.
            Ok(injected.has_ended() || is_traced(pid) || !is_alive(pid))
        });
        if !attached.await? || (injected.has_ended() && is_alive(pid)) {
            let said = std::fs::read_to_string(&said).unwrap_or_default();
            let last = said.lines().last().unwrap_or("it does not attach");
            return Err(cannot_check(format!("strace: {last}")));
        }
        Ok(injected)
    }

    /// How many calls were injected so far.
    pub(super) fn hits(&self) -> usize {
        let trace = std::fs::read_to_string(&self.trace).unwrap_or_default();
        trace
            .lines()
            .filter(|line| line.contains("(INJECTED)"))
            .count()
    }

    fn has_ended(&mut self) -> bool {
        !matches!(self.strace.try_wait(), Ok(None))
    }
}

impl Drop for Injected {
    fn drop(&mut self) {
        // SIGTERM lets it detach in order. A process whose tracer is killed goes on, too.
        if let Some(pid) = i32::try_from(self.strace.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM).unwrap_or_default();
        }
        for _ in 0..40 {
            if self.has_ended() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.strace.kill().unwrap_or_default();
        self.strace.wait().ok();
    }
}

/// Whether every thread of the process has a tracer.
fn is_traced(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    let mut statuses = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    statuses.all(|status| !status.contains("TracerPid:\t0\n"))
}

/// Whether injections are possible here.
pub(super) fn needed() -> Result<()> {
    let found = Command::new("strace")
        .arg("-V")
        .stdin(Stdio::null())
        .output();
    match found {
        Ok(output) if output.status.success() => Ok(()),
        _ => Err(cannot_check("strace is not installed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_injection_names_its_calls_its_effect_and_its_file() {
        let kill = Injection {
            calls: Calls::Rename,
            when: When::Nth(7),
            effect: Effect::Kill,
            path: None,
        };
        assert_eq!(
            kill.arguments().join(" "),
            "-f -e trace=?rename,renameat,renameat2 \
             -e inject=?rename,renameat,renameat2:signal=SIGKILL:when=7"
        );
        let fail = Injection {
            calls: Calls::Sync,
            when: When::Always,
            effect: Effect::Fail,
            path: Some(Path::new("/data/log/1.segment")),
        };
        assert_eq!(
            fail.arguments().join(" "),
            "-f -e trace=fsync,fdatasync -e inject=fsync,fdatasync:error=EIO:when=1+ \
             -P /data/log/1.segment"
        );
    }
}
