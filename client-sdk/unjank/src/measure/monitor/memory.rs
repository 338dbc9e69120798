//! The memory of this process, as each system counts it: `memory_used_bytes` and `memory_peak_bytes`.
//!
//! | system | used | peak |
//! |---|---|---|
//! | Linux, Android | `VmRSS` of `/proc/self/status` | `VmHWM` |
//! | macOS | physical footprint (`proc_pid_rusage`): what Activity Monitor shows | the largest footprint |
//! | other Apple systems | resident size (`task_info`): the footprint is in no public interface of `libc` | the largest |
//!
//! Other systems report nothing. On Linux and Android, `memory_limit_bytes` and `memory_limit_percent` show how near the limit is: see
//! [`super::memory_limit`].

use crate::measure::metric_provider::MetricProvider;

/// Reads the memory use from the system at each interval.
pub(super) struct Memory;

/// In bytes.
struct Usage {
    used: u64,
    peak: u64,
}

impl MetricProvider for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    #[expect(clippy::cast_precision_loss, reason = "53 bits of bytes are 8 PiB")]
    fn sample(&mut self, report: &mut dyn FnMut(&'static str, f64)) {
        if let Some(usage) = usage() {
            report("memory_used_bytes", usage.used as f64);
            report("memory_peak_bytes", usage.peak as f64);
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(limit) = super::memory_limit::nearest(std::path::Path::new("/")) {
            report("memory_limit_bytes", limit.bytes as f64);
            report("memory_limit_percent", limit.percent);
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn usage() -> Option<Usage> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let bytes = |name: &str| super::memory_limit::kib(&status, name);
    Some(Usage {
        used: bytes("VmRSS:")?,
        peak: bytes("VmHWM:")?,
    })
}

#[cfg(target_os = "macos")]
#[expect(unsafe_code, reason = "the only way to ask this system")]
fn usage() -> Option<Usage> {
    let mut answer = std::mem::MaybeUninit::<libc::rusage_info_v4>::zeroed();
    // SAFETY: the buffer is as large as the flavour requires, and the system writes nowhere else.
    let status = unsafe {
        libc::proc_pid_rusage(
            libc::getpid(),
            libc::RUSAGE_INFO_V4,
            answer.as_mut_ptr().cast(),
        )
    };
    if status != 0 {
        return None;
    }
    // SAFETY: all fields are numbers, for which zero is a valid value, whatever the system wrote.
    let answer = unsafe { answer.assume_init() };
    Some(Usage {
        used: answer.ri_phys_footprint,
        peak: answer.ri_lifetime_max_phys_footprint,
    })
}

#[cfg(all(target_vendor = "apple", not(target_os = "macos")))]
#[expect(unsafe_code, reason = "the only way to ask this system")]
#[expect(deprecated, reason = "avoids another crate for one function")]
fn usage() -> Option<Usage> {
    let mut answer = std::mem::MaybeUninit::<libc::mach_task_basic_info>::zeroed();
    let mut words = libc::MACH_TASK_BASIC_INFO_COUNT;
    // SAFETY: the port of this task is set before `main`. The buffer has as many words as `words` says, and the system writes no
    // more.
    let status = unsafe {
        libc::task_info(
            libc::mach_task_self(),
            libc::MACH_TASK_BASIC_INFO,
            answer.as_mut_ptr().cast(),
            &raw mut words,
        )
    };
    if status != libc::KERN_SUCCESS {
        return None;
    }
    // SAFETY: all fields are numbers, for which zero is a valid value, whatever the system wrote.
    let answer = unsafe { answer.assume_init() };
    Some(Usage {
        used: answer.resident_size,
        peak: answer.resident_size_max,
    })
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn usage() -> Option<Usage> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_reports_current_and_peak_use() {
        let mut values = Vec::new();
        Memory.sample(&mut |name, value| values.push((name, value)));
        if cfg!(any(target_os = "linux", target_vendor = "apple")) {
            let [(used, now), (peak, most), ..] = values[..] else {
                panic!("expected two values: {values:?}");
            };
            assert_eq!((used, peak), ("memory_used_bytes", "memory_peak_bytes"));
            // More than a page, less than a terabyte, and the peak is not lower.
            assert!(now > 4_096.0 && most < 1e12 && most >= now, "{values:?}");
            let names: Vec<&str> = values.iter().skip(2).map(|(name, _)| *name).collect();
            if cfg!(target_os = "linux") {
                assert_eq!(names, ["memory_limit_bytes", "memory_limit_percent"]);
            }
        }
    }
}
