//! Confines ClickHouse to its data folder, whatever SQL requests.
//!
//! Grants alone do not keep the users of `clickhouse local` inside the data folder. Landlock does: the kernel denies this process and all its
//! threads the files that are not listed here, and connections to other hosts.

#[cfg(target_os = "linux")]
use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus,
};

#[cfg(target_os = "linux")]
use crate::clickhouse::ClickHouse;
use crate::options::EngineOptions;
#[cfg(target_os = "linux")]
use crate::options::Source;

/// What ClickHouse may read of its machine: never the memory, environment or open files of other processes.
#[cfg(target_os = "linux")]
const READABLE: &str = "/dev/random /dev/urandom /etc/hosts /etc/ld.so.cache /etc/localtime /etc/nsswitch.conf /etc/resolv.conf \
    /etc/ssl/certs /lib /lib64 /proc/cpuinfo /proc/diskstats /proc/filesystems /proc/loadavg /proc/meminfo /proc/pressure \
    /proc/self /proc/stat /proc/sys /proc/uptime /proc/vmstat /sys/block /sys/devices/system /sys/fs/cgroup /usr/lib /usr/lib64 /usr/share/zoneinfo";

/// Confines this process permanently. Returns whether the system supports that.
///
/// # Errors
/// If the data folder or ClickHouse itself cannot be opened.
#[cfg(target_os = "linux")]
pub(crate) fn confine(options: &EngineOptions) -> anyhow::Result<bool> {
    let abi = ABI::V5;
    let read = AccessFs::from_read(abi);
    // Without `Refer` the kernel would deny all links and renames between folders, which ClickHouse needs.
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::SoftRequirement)
        .handle_access(AccessFs::Refer)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(abi))?;
    let reaches_others = options.sources.iter().any(|source| *source != Source::File);
    if !reaches_others {
        ruleset = ruleset.handle_access(AccessNet::ConnectTcp)?;
    }
    let mut ruleset = ruleset
        .create()?
        .add_rule(PathBeneath::new(
            PathFd::new(&options.data_dir)?,
            AccessFs::from_all(abi) & !AccessFs::Execute,
        ))?
        .add_rule(PathBeneath::new(
            PathFd::new(options.clickhouse.path())?,
            AccessFs::from_file(abi) & read,
        ))?;
    let write = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    // ClickHouse opens its terminal as /dev/stdin.
    ruleset = ruleset.add_rule(PathBeneath::new(std::io::stdin(), write))?;
    if let Ok(null) = PathFd::new("/dev/null") {
        ruleset = ruleset.add_rule(PathBeneath::new(null, write))?;
    }
    // A library is mapped, but a program and its loader are executed.
    let read = match options.clickhouse {
        ClickHouse::Library(_) => read & !AccessFs::Execute,
        ClickHouse::Program(_) => read,
    };
    for path in READABLE.split_whitespace() {
        if let Ok(file) = PathFd::new(path) {
            let is_folder = std::path::Path::new(path).is_dir();
            let access = if is_folder {
                read
            } else {
                read & AccessFs::from_file(abi)
            };
            ruleset = ruleset.add_rule(PathBeneath::new(file, access))?;
        }
    }
    Ok(ruleset.restrict_self()?.ruleset != RulesetStatus::NotEnforced)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn confine(_: &EngineOptions) -> anyhow::Result<bool> {
    Ok(false)
}
