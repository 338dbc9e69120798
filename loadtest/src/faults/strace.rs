//! Uses `strace` to kill a process at its n-th system call of a kind, or to make the call fail.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::faults::site::is_alive;
use crate::faults::verdict::cannot_check;
use crate::faults::wait::eventually;

/// Kinds of system calls. Names with `?` do not exist on all processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Calls {
    Rename,
    Write,
    Sync,
    /// Calls with which the engine sends responses.
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

    /// Returns the name of the call for a verdict.
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

/// Which of the calls. Calls are counted per thread, from the moment of attaching.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Nth(u32),
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Kill,
    /// The call fails with EIO and has no effect.
    Fail,
}

#[derive(Clone, Debug)]
pub(super) struct Injection<'a> {
    pub(super) calls: Calls,
    pub(super) when: When,
    pub(super) effect: Effect,
    /// Restricts the injection to calls on this file.
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

/// A running injection. Dropping it detaches strace, and the process continues.
pub(super) struct Injected {
    strace: Child,
    trace: PathBuf,
}

const ATTACH_PATIENCE: Duration = Duration::from_secs(10);

impl Injected {
    /// Attaches to all threads of the process. The trace is written to `folder`.
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
            .stderr(File::create(&said).context("creating a file for strace")?)
            .spawn()
            .map_err(|error| cannot_check(format!("cannot start strace: {error}")))?;
        let mut injected = Self { strace, trace };
        let attached = eventually(ATTACH_PATIENCE, async || {
            // The process may reach the call, and die, right after attaching.
            Ok(injected.has_ended() || is_traced(pid) || !is_alive(pid))
        });
        if !attached.await? || (injected.has_ended() && is_alive(pid)) {
            let said = std::fs::read_to_string(&said).unwrap_or_default();
            let last = said.lines().last().unwrap_or("it cannot attach");
            return Err(cannot_check(format!("strace: {last}")));
        }
        Ok(injected)
    }

    /// Returns the number of calls injected so far.
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
        // SIGTERM makes strace detach cleanly. A process whose tracer is killed continues too.
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

/// Returns whether every thread of the process has a tracer.
fn is_traced(pid: u32) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    let mut statuses = threads
        .flatten()
        .filter_map(|thread| std::fs::read_to_string(thread.path().join("status")).ok());
    statuses.all(|status| !status.contains("TracerPid:\t0\n"))
}

/// Returns an error unless strace is available.
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
    fn the_arguments_contain_calls_effect_and_file() {
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
