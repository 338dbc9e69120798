//! The limits of this process's memory, and how much of them is in use: part of the monitor `memory`.
//!
//! | limit | in use | read from |
//! |---|---|---|
//! | of the cgroup or one above it (v1 and v2) | resident memory of this process (`VmRSS`) | `memory.max`, `memory.limit_in_bytes` |
//! | of the address space (`RLIMIT_AS`) | address space of this process (`VmSize`) | `/proc/self/limits` |
//! | the memory of the device | resident memory of this process | `MemTotal` |
//!
//! `memory_limit_bytes` is the limit of which the largest share is in use, and `memory_limit_percent` is that share. Other processes use
//! memory, too: the device or the cgroup may be full before this process reaches 100 %. Linux and Android only. An Android app also has
//! a limit for Java objects (`Runtime.maxMemory`), and iOS one for each app (`os_proc_available_memory`): report them with
//! [`crate::sample`].

use std::path::{Component, Path, PathBuf};

/// Cgroups above this number are not read.
const DEEPEST: usize = 32;
/// From here on, a number means that there is no limit: v1 writes the largest multiple of a page.
const NONE: u64 = 1 << 60;

/// A limit in bytes, and the percentage of it that is in use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Limit {
    pub(super) bytes: u64,
    pub(super) percent: f64,
}

/// Returns the limit of which the largest share is in use. `root` is `/`, except in tests.
pub(super) fn nearest(root: &Path) -> Option<Limit> {
    let text = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let status = text("proc/self/status")?;
    let resident = kib(&status, "VmRSS:")?;
    let of_group = text("proc/self/cgroup").and_then(|groups| of_groups(root, &groups));
    let of_device = text("proc/meminfo").and_then(|memory| kib(&memory, "MemTotal:"));
    let of_addresses = text("proc/self/limits").and_then(|limits| addresses(&limits));
    let limits = [
        (of_group, Some(resident)),
        (of_device, Some(resident)),
        (of_addresses, kib(&status, "VmSize:")),
    ];
    let limits = limits.into_iter().filter_map(|(limit, used)| {
        let bytes = limit.filter(|limit| (1..NONE).contains(limit))?;
        Some(Limit {
            bytes,
            percent: percent(used?, bytes),
        })
    });
    limits.max_by(|one, other| one.percent.total_cmp(&other.percent))
}

#[expect(clippy::cast_precision_loss, reason = "53 bits of bytes are 8 PiB")]
fn percent(used: u64, limit: u64) -> f64 {
    used as f64 / limit as f64 * 100.0
}

/// Returns a value of `/proc/self/status` or `/proc/meminfo` in bytes.
pub(super) fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1_024)
}

/// Returns the soft limit of the address space.
fn addresses(limits: &str) -> Option<u64> {
    let mut lines = limits.lines();
    let line = lines.find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns the lowest limit of the groups that this process is in, and of the groups above them.
fn of_groups(root: &Path, groups: &str) -> Option<u64> {
    // Each line has a number, the controllers and the path. The line of v2 has no controllers.
    let parsed = groups.lines().filter_map(|line| {
        let (_, line) = line.split_once(':')?;
        line.split_once(':')
    });
    let limits = parsed.filter_map(|(controllers, path)| {
        let (mount, file) = match controllers {
            "" => ("sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return None,
        };
        lowest(&root.join(mount), Path::new(path), file)
    });
    limits.min()
}

fn lowest(mount: &Path, group: &Path, file: &str) -> Option<u64> {
    // In a container, the path may lead out of what is mounted there.
    let names = group.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    let group: PathBuf = names.take(DEEPEST).collect();
    let limits = group.ancestors().filter_map(|group| {
        let text = std::fs::read_to_string(mount.join(group).join(file)).ok()?;
        // `max` means none.
        text.trim().parse().ok()
    });
    limits.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = root.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        root
    }

    const STATUS: (&str, &str) = (
        "proc/self/status",
        "Name:\ta\nVmSize:\t  819200 kB\nVmRSS:\t  102400 kB\n",
    );
    const DEVICE: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:        1024000 kB\nMemFree: 1 kB\n",
    );

    #[test]
    fn the_memory_of_the_device_limits_a_process_without_other_limits() {
        let unlimited = (
            "proc/self/limits",
            "Limit  Soft Limit  Hard Limit  Units\nMax address space  unlimited  unlimited  bytes\n",
        );
        let root = root(&[
            STATUS,
            DEVICE,
            unlimited,
            ("proc/self/cgroup", "0::/../../app\n"),
            ("sys/fs/cgroup/app/memory.max", "max\n"),
        ]);
        let limit = nearest(root.path()).unwrap();
        assert_eq!((limit.bytes, limit.percent), (1_000 * MIB, 10.0));
    }

    #[test]
    fn the_lowest_limit_of_the_cgroups_above_counts() {
        let v2 = root(&[
            STATUS,
            DEVICE,
            ("proc/self/cgroup", "0::/apps/shop\n"),
            ("sys/fs/cgroup/apps/memory.max", "209715200\n"),
            ("sys/fs/cgroup/apps/shop/memory.max", "max\n"),
        ]);
        let limit = nearest(v2.path()).unwrap();
        assert_eq!((limit.bytes, limit.percent), (200 * MIB, 50.0));
        let v1 = root(&[
            STATUS,
            DEVICE,
            ("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/apps\n"),
            (
                "sys/fs/cgroup/memory/apps/memory.limit_in_bytes",
                "419430400\n",
            ),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712\n",
            ),
        ]);
        let limit = nearest(v1.path()).unwrap();
        assert_eq!((limit.bytes, limit.percent), (400 * MIB, 25.0));
    }

    #[test]
    fn the_limit_that_is_nearest_is_reported_with_its_own_use() {
        let limits = (
            "proc/self/limits",
            "Max cpu time  unlimited  unlimited  seconds\nMax address space         1048576000           unlimited            bytes     \n",
        );
        let root = root(&[STATUS, DEVICE, limits]);
        let limit = nearest(root.path()).unwrap();
        assert_eq!((limit.bytes, limit.percent), (1_000 * MIB, 80.0));
        assert_eq!(nearest(Path::new("/there/is/nothing")), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_a_limit() {
        let limit = nearest(Path::new("/")).unwrap();
        assert!(limit.bytes > MIB && limit.percent > 0.0, "{limit:?}");
    }
}
