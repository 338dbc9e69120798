//! Reads CPU time, memory and writes of processes from `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;

/// Resource usage of a process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Usage {
    /// User and system time of all threads since the process started, in seconds.
    pub(crate) cpu_s: f64,
    /// Peak resident memory since the process started, in bytes.
    pub(crate) peak_rss_bytes: u64,
    /// Resident memory, in bytes.
    pub(crate) rss_bytes: u64,
}

/// Resources that a process used between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Cost {
    pub(crate) cpu_s: f64,
    /// CPU time per accepted event, in microseconds.
    pub(crate) cpu_us_per_event: f64,
    pub(crate) peak_rss_bytes: u64,
}

impl Cost {
    /// `events` is the number of events that the process handled.
    pub(crate) fn between(before: Usage, after: Usage, events: u64) -> Self {
        let cpu_s = after.cpu_s - before.cpu_s;
        Self {
            cpu_s,
            cpu_us_per_event: if events == 0 {
                0.0
            } else {
                cpu_s * 1.0e6 / events as f64
            },
            peak_rss_bytes: after.peak_rss_bytes,
        }
    }
}

/// Returns the usage of a process, or `None` if the process does not exist or there is no `/proc`.
pub(crate) fn usage(pid: u32) -> Option<Usage> {
    let folder = PathBuf::from("/proc").join(pid.to_string());
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    let status = fs::read_to_string(folder.join("status")).ok()?;
    let ticks = rustix::param::clock_ticks_per_second();
    Some(Usage {
        cpu_s: cpu_ticks(&stat)? as f64 / ticks as f64,
        peak_rss_bytes: memory(&status, "VmHWM:")?,
        rss_bytes: memory(&status, "VmRSS:")?,
    })
}

/// Returns the usage of the load test itself.
pub(crate) fn own_usage() -> Option<Usage> {
    usage(std::process::id())
}

/// Returns the CPU time of ended child processes, in seconds.
pub(crate) fn cpu_of_ended_children() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    let ticks = rustix::param::clock_ticks_per_second();
    Some(ticks_at(&stat, 13)? as f64 / ticks as f64)
}

/// Returns utime + stime.
fn cpu_ticks(stat: &str) -> Option<u64> {
    ticks_at(stat, 11)
}

/// Returns the sum of two adjacent fields. Fields are counted from the end of the command name, which may contain spaces and
/// parentheses.
fn ticks_at(stat: &str, place: usize) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(place);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Memory of a process that is in RAM, in bytes.
pub(crate) struct Resident {
    pub(crate) own: u64,
    /// Pages of files that are mapped into memory. The system drops them when others need the memory.
    pub(crate) of_files: u64,
}

pub(crate) fn resident(pid: u32) -> Option<Resident> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    Some(Resident {
        own: memory(&status, "RssAnon:")?,
        of_files: memory(&status, "RssFile:")?,
    })
}

/// CPU time and wake-ups of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ThreadUsage {
    /// User and system time since the threads started, in seconds.
    pub(crate) cpu_s: f64,
    /// How often the threads waited for something.
    pub(crate) wake_ups: u64,
}

/// Returns the usage of the threads that a process has now, by name.
pub(crate) fn threads(pid: u32) -> Option<BTreeMap<String, ThreadUsage>> {
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let mut threads = BTreeMap::<String, ThreadUsage>::new();
    for entry in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let read = |file: &str| fs::read_to_string(entry.path().join(file)).ok();
        // A thread that has ended meanwhile is skipped.
        let (Some(stat), Some(status)) = (read("stat"), read("status")) else {
            continue;
        };
        let name = status.lines().find_map(|line| line.strip_prefix("Name:"))?;
        let usage = threads.entry(name.trim().to_owned()).or_default();
        usage.cpu_s += cpu_ticks(&stat)? as f64 / ticks;
        usage.wake_ups += number(&status, "voluntary_ctxt_switches:")?;
    }
    Some(threads)
}

/// Returns how many bytes a process has sent to the disk.
pub(crate) fn written_bytes(pid: u32) -> Option<u64> {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    number(&io, "write_bytes:")
}

fn memory(status: &str, name: &str) -> Option<u64> {
    Some(number(status, name)? * 1_024)
}

fn number(lines: &str, name: &str) -> Option<u64> {
    let line = lines.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The machine that ran the measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_bytes: u64,
    pub(crate) kernel: String,
}

impl Machine {
    pub(crate) fn here() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cpu = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name"))
            .map_or("unknown", |rest| rest.trim_start_matches([' ', '\t', ':']));
        let meminfo = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory_kib: u64 = meminfo
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:"))
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|kib| kib.parse().ok())
            .unwrap_or_default();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        Self {
            cpu: cpu.to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_kib * 1_024,
            kernel: kernel.trim().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_parsed_after_a_command_with_parentheses() {
        let stat = "42 (a (b) c) S 1 2 3 4 5 6 7 8 9 10 700 50 0 0 20 0 1 0";
        assert_eq!(cpu_ticks(stat), Some(750));
    }

    #[test]
    fn peak_memory_is_in_bytes() {
        assert_eq!(
            memory("VmPeak:\t 9 kB\nVmHWM:\t    2048 kB\n", "VmHWM:"),
            Some(2_097_152)
        );
    }

    #[test]
    fn this_process_and_machine_can_be_read() {
        assert!(own_usage().is_some_and(|usage| usage.peak_rss_bytes > 0));
        assert_eq!(usage(u32::MAX), None);
        assert!(threads(std::process::id()).is_some_and(|threads| !threads.is_empty()));
        assert!(!Machine::here().kernel.is_empty());
    }
}
