//! Makes the disk of one test thread fail as planned.

use std::cell::RefCell;
use std::io::{self, IoSlice};

use super::Operation;
use crate::file_system::OpenFile;

/// Operations are numbered from 0. Those in `from..until` fail.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    pub(crate) from: usize,
    pub(crate) until: usize,
    /// How many bytes a failing write puts on disk first.
    pub(crate) bytes: usize,
    /// How many operations were attempted.
    pub(crate) tried: usize,
    /// The operations that failed.
    pub(crate) failed: Vec<&'static str>,
}

thread_local! {
    static PLAN: RefCell<Option<Plan>> = const { RefCell::new(None) };
}

/// Runs `work` on a disk that fails as planned. Returns its result and the plan with its counts.
pub(crate) fn with<T>(plan: Plan, work: impl FnOnce() -> T) -> (T, Plan) {
    PLAN.with_borrow_mut(|slot| *slot = Some(plan));
    let result = work();
    (
        result,
        PLAN.with_borrow_mut(Option::take).unwrap_or_default(),
    )
}

/// Returns `Some(bytes)` if the next operation has to fail.
fn failing(what: &'static str) -> Option<usize> {
    PLAN.with_borrow_mut(|plan| {
        let plan = plan.as_mut()?;
        let number = plan.tried;
        plan.tried += 1;
        (plan.from..plan.until).contains(&number).then(|| {
            plan.failed.push(what);
            plan.bytes
        })
    })
}

pub(crate) fn before(operation: Operation) -> io::Result<()> {
    let what = match operation {
        Operation::Create => "create",
        Operation::Cut => "cut",
        Operation::Sync => "sync",
        Operation::SyncDir => "sync folder",
        Operation::Remove => "remove",
        Operation::Hint => "hint",
    };
    failing(what).map_or(Ok(()), |_| Err(io::Error::other("injected")))
}

pub(crate) fn before_write(
    file: &mut dyn OpenFile,
    offset: u64,
    slices: &[IoSlice<'_>],
) -> io::Result<()> {
    let Some(bytes) = failing("write") else {
        return Ok(());
    };
    let all: Vec<u8> = slices
        .iter()
        .flat_map(|slice| slice.iter().copied())
        .collect();
    let mut some = &all[..bytes.min(all.len())];
    let mut end = offset;
    while !some.is_empty() {
        let written = file.write_at(end, &[IoSlice::new(some)])?;
        some = &some[written..];
        end += written as u64;
    }
    Err(io::ErrorKind::StorageFull.into())
}
