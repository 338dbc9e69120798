//! Lists the files that are mapped as code, from `/proc/self/maps`.
//!
//! `dl_iterate_phdr` is not an option: it takes the loader's lock, which a thread that is blocked in `dlopen` holds.

use std::fs;
use std::sync::Arc;

/// The path of the code that the kernel maps into every process.
pub(super) const VDSO: &str = "[vdso]";

/// A range of executable addresses that belongs to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mapping {
    pub(super) start: u64,
    pub(super) end: u64,
    /// The offset of the range in the file.
    pub(super) offset: u64,
    inode: u64,
    pub(super) path: Arc<str>,
    /// Addresses and offsets of this range and of the ranges of the same file right before it. One of them is the start of the
    /// image: the first for a library, but a package (an APK) contains many images.
    pub(super) candidates: Vec<(u64, u64)>,
}

/// Returns the executable mappings of this process, by address.
pub(super) fn executable() -> Option<Vec<Mapping>> {
    let maps = fs::read("/proc/self/maps").ok()?;
    Some(parse(&String::from_utf8_lossy(&maps)))
}

fn parse(maps: &str) -> Vec<Mapping> {
    let mut found = Vec::new();
    let mut candidates: Vec<(u64, u64)> = Vec::new();
    let mut file = (0, "");
    for line in maps.lines() {
        let Some(range) = Range::parse(line) else {
            continue;
        };
        if file != (range.inode, range.path) {
            file = (range.inode, range.path);
            candidates.clear();
        }
        candidates.push((range.start, range.offset));
        let of_a_file = range.path.starts_with('/') || range.path == VDSO;
        if range.executable && of_a_file {
            found.push(Mapping {
                start: range.start,
                end: range.end,
                offset: range.offset,
                inode: range.inode,
                path: range.path.into(),
                candidates: candidates.clone(),
            });
        }
    }
    found
}

struct Range<'a> {
    start: u64,
    end: u64,
    executable: bool,
    offset: u64,
    inode: u64,
    path: &'a str,
}

impl<'a> Range<'a> {
    /// Parses `7f0c00000000-7f0c00021000 r-xp 00026000 fd:01 1055 /usr/lib/libc.so.6`; the path may contain spaces.
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.splitn(6, ' ');
        let (start, end) = fields.next()?.split_once('-')?;
        let permissions = fields.next()?;
        let offset = fields.next()?;
        let _device = fields.next()?;
        let inode = fields.next()?;
        Some(Self {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            executable: permissions.contains('x'),
            offset: u64::from_str_radix(offset, 16).ok()?,
            inode: inode.parse().ok()?,
            path: fields.next().unwrap_or_default().trim_start(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_files_is_listed_with_the_ranges_before_it() {
        let maps = "\
5500-5600 r--p 00000000 fd:01 10     /data/app/my game/base.apk
5600-5700 r-xp 00010000 fd:01 10     /data/app/my game/base.apk
5700-5800 rwxp 00000000 00:00 0 
7000-7100 r--p 00000000 fd:01 11                         /lib/libc.so.6
7100-7200 r-xp 00001000 fd:01 11                         /lib/libc.so.6
7200-7300 rw-p 00002000 fd:01 11                         /lib/libc.so.6
7fff-8fff r-xp 00000000 00:00 0                          [vdso]
not a line
";
        let found = parse(maps);
        let paths: Vec<_> = found.iter().map(|one| &*one.path).collect();
        assert_eq!(
            paths,
            ["/data/app/my game/base.apk", "/lib/libc.so.6", "[vdso]"]
        );
        assert_eq!(found[1].candidates, [(0x7000, 0), (0x7100, 0x1000)]);
        assert_eq!((found[1].start, found[1].end), (0x7100, 0x7200));
    }

    #[test]
    fn this_process_runs_code_of_its_executable() {
        let executable = std::env::current_exe().unwrap();
        let here = this_process_runs_code_of_its_executable as fn() as usize as u64;
        let found = executable_at(here).unwrap();
        assert_eq!(&*found.path, executable.to_str().unwrap());
    }

    fn executable_at(address: u64) -> Option<Mapping> {
        let mut all = executable()?.into_iter();
        all.find(|one| one.start <= address && address < one.end)
    }
}
