//! A disk in memory.
//!
//! A process reads its own writes. A power cut may lose any unsynced write, a part of one, and unsynced names. Pages that a failed sync has
//! dropped stay readable, and a later sync does not write them. The process may end at any operation.

mod unsynced;

use std::any::Any;
use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use unjank_spool::{FileSystem, Mode, OpenFile};

use self::unsynced::{Change, Write};
use super::chance::{Chance, History};

#[derive(Clone, Debug)]
pub(super) struct SimulatedDisk(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Notified when the process ends.
    ended: Notify,
}

#[derive(Debug)]
struct State {
    chance: Chance,
    history: History,
    /// Counts processes. Handles of earlier ones have no effect.
    life: u64,
    /// The process ends after this many operations.
    fuse: Option<u64>,
    has_ended: bool,
    /// How many of a thousand operations fail.
    failing: u64,
    is_full: bool,
    inodes: Vec<Inode>,
    /// How often the folder of the log was replaced.
    replaced: u64,
    names: BTreeMap<PathBuf, usize>,
    durable_names: BTreeMap<PathBuf, usize>,
    /// Unsynced changes of names, in order.
    changes: Vec<Change>,
}

#[derive(Clone, Debug, Default)]
struct Inode {
    /// The content as a process reads it.
    content: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Write>,
}

/// Copies of files.
#[derive(Clone, Debug)]
pub(super) struct Image {
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Image {
    pub(super) fn file(&self, path: &Path) -> Option<Vec<u8>> {
        self.files.get(path).cloned()
    }

    pub(super) fn only(mut self, is_meant: impl Fn(&Path) -> bool) -> Self {
        self.files.retain(|path, _| is_meant(path));
        self
    }

    pub(super) fn with(mut self, other: Self) -> Self {
        self.files.extend(other.files);
        self
    }
}

impl SimulatedDisk {
    pub(super) fn new(chance: Chance, history: History) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State {
                chance,
                history,
                life: 0,
                fuse: None,
                has_ended: false,
                failing: 0,
                is_full: false,
                replaced: 0,
                inodes: Vec::new(),
                names: BTreeMap::new(),
                durable_names: BTreeMap::new(),
                changes: Vec::new(),
            }),
            ended: Notify::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A handle for a new process. Handles of earlier processes stop working.
    pub(super) fn begin_life(&self) -> Arc<dyn FileSystem> {
        let mut state = self.state();
        state.life += 1;
        (state.fuse, state.has_ended) = (None, false);
        Arc::new(Handle {
            disk: self.clone(),
            life: state.life,
        })
    }

    /// Ends the process after this many more operations.
    pub(super) fn end_after(&self, operations: u64) {
        self.state().fuse = Some(operations);
    }

    /// Ends the process.
    pub(super) fn end_now(&self) {
        self.state().has_ended = true;
        self.0.ended.notify_waiters();
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state().has_ended
    }

    /// Resolves when the process has ended.
    pub(super) async fn ended(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.has_ended() {
                return;
            }
            ended.await;
        }
    }

    pub(super) fn fail(&self, per_mille: u64) {
        self.state().failing = per_mille;
    }

    pub(super) fn fill(&self, is_full: bool) {
        self.state().is_full = is_full;
    }

    /// Loses a random part of the unsynced changes.
    pub(super) fn cut_power(&self) {
        let mut state = self.state();
        let State {
            chance,
            inodes,
            changes,
            durable_names,
            names,
            ..
        } = &mut *state;
        for change in changes.drain(..) {
            // Names become durable in order, as in a journal.
            if chance.happens(300) {
                break;
            }
            change.apply(durable_names);
        }
        changes.clear();
        for inode in inodes.iter_mut() {
            let left = inode
                .unsynced
                .drain(..)
                .filter_map(|write| write.after_power_cut(chance));
            let left: Vec<Write> = left.collect();
            left.iter()
                .for_each(|write| write.apply(&mut inode.durable));
            inode.content = inode.durable.clone();
        }
        *names = durable_names.clone();
    }

    /// Copies all files, as a backup does.
    pub(super) fn image(&self) -> Image {
        let state = self.state();
        let content = |inode: &usize| state.inodes[*inode].content.clone();
        let files = state.names.iter();
        Image {
            files: files
                .map(|(path, inode)| (path.clone(), content(inode)))
                .collect(),
        }
    }

    pub(super) fn replaced(&self) -> u64 {
        self.state().replaced
    }

    /// Replaces the files that `is_meant` selects with the files of the image.
    pub(super) fn restore(&self, image: Option<&Image>, is_meant: impl Fn(&Path) -> bool) {
        let mut state = self.state();
        state.replaced += u64::from(is_meant(Path::new("/data/log/backup.lock")));
        state.names.retain(|path, _| !is_meant(path));
        let files = image.into_iter().flat_map(|image| &image.files);
        for (path, bytes) in files.filter(|(path, _)| is_meant(path)) {
            let inode = state.inodes.len();
            state.inodes.push(Inode {
                content: bytes.clone(),
                durable: bytes.clone(),
                unsynced: Vec::new(),
            });
            state.names.insert(path.clone(), inode);
        }
        state.durable_names = state.names.clone();
        state.changes.clear();
    }
}

#[derive(Debug)]
struct Handle {
    disk: SimulatedDisk,
    life: u64,
}

#[derive(Debug)]
struct SimulatedFile {
    disk: SimulatedDisk,
    life: u64,
    inode: usize,
    name: PathBuf,
}

fn no_process() -> io::Error {
    io::Error::other("the process has ended")
}

impl SimulatedDisk {
    /// Called before each operation that changes the disk. `what` names it in the history.
    fn change(
        &self,
        life: u64,
        what: impl FnOnce() -> String,
    ) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.look(life)?;
        if let Some(fuse) = &mut state.fuse {
            if *fuse == 0 {
                state.has_ended = true;
                state
                    .history
                    .say(|| format!("the process ends at: {}", what()));
                drop(state);
                self.0.ended.notify_waiters();
                return Err(no_process());
            }
            *fuse -= 1;
        }
        if state.chance.happens(state.failing) {
            state.history.say(|| format!("the disk fails: {}", what()));
            return Err(io::Error::other("the disk fails"));
        }
        Ok(state)
    }

    /// Called before each operation that only reads.
    fn look(&self, life: u64) -> io::Result<MutexGuard<'_, State>> {
        let state = self.state();
        if state.life != life || state.has_ended {
            return Err(no_process());
        }
        Ok(state)
    }
}

impl FileSystem for Handle {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Box<dyn OpenFile>> {
        let opened = |inode| {
            Box::new(SimulatedFile {
                disk: self.disk.clone(),
                life: self.life,
                inode,
                name: path.to_owned(),
            })
        };
        let found = self.disk.look(self.life)?.names.get(path).copied();
        match (mode, found) {
            (Mode::Read | Mode::Write | Mode::ReadWrite, Some(inode)) => return Ok(opened(inode)),
            (Mode::Read | Mode::Write, None) => return Err(io::ErrorKind::NotFound.into()),
            (Mode::CreatePrivate, Some(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Mode::ReadWrite | Mode::Create | Mode::CreatePrivate, _) => {}
        }
        let mut state = self
            .disk
            .change(self.life, || format!("create {}", path.display()))?;
        if let Some(inode) = found {
            let file = &mut state.inodes[inode];
            file.content.clear();
            file.unsynced.push(Write::Length(0));
            return Ok(opened(inode));
        }
        if state.is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let inode = state.inodes.len();
        state.inodes.push(Inode::default());
        state.names.insert(path.to_owned(), inode);
        state.changes.push(Change::Is(path.to_owned(), inode));
        Ok(opened(inode))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if !self.disk.look(self.life)?.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut state = self
            .disk
            .change(self.life, || format!("remove {}", path.display()))?;
        state.names.remove(path);
        state.changes.push(Change::Gone(path.to_owned()));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self
            .disk
            .change(self.life, || format!("rename to {}", to.display()))?;
        let inode = state.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.names.insert(to.to_owned(), inode);
        let renamed = Change::Renamed(from.to_owned(), to.to_owned(), inode);
        state.changes.push(renamed);
        Ok(())
    }

    fn files(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let state = self.disk.look(self.life)?;
        let files = state.names.keys();
        Ok(files
            .filter(|path| path.parent() == Some(dir))
            .cloned()
            .collect())
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        let state = self.disk.look(self.life)?;
        let inode = state.names.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(state.inodes[*inode].content.len() as u64)
    }

    /// All folders exist.
    fn create_dir(&self, _: &Path) -> io::Result<bool> {
        self.disk.look(self.life).map(|_| false)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut state = self
            .disk
            .change(self.life, || format!("sync the folder {}", dir.display()))?;
        let State {
            changes,
            durable_names,
            ..
        } = &mut *state;
        // A journal also contains all earlier changes.
        let last = changes
            .iter()
            .rposition(|change| change.folder() == Some(dir));
        for change in changes.drain(..last.map_or(0, |last| last + 1)) {
            change.apply(durable_names);
        }
        Ok(())
    }

    fn lock(&self, _: &Path) -> io::Result<Option<Box<dyn Any + Send + Sync>>> {
        drop(self.disk.look(self.life)?);
        Ok(Some(Box::new(())))
    }

    fn random(&self) -> u64 {
        self.disk.state().chance.number()
    }

    fn may_block(&self) -> bool {
        false
    }
}

impl OpenFile for SimulatedFile {
    fn read_at(&self, offset: u64, want: usize, buffer: &mut Vec<u8>) -> io::Result<()> {
        let state = self.disk.look(self.life)?;
        if state.chance.happens(state.failing / 4) {
            return Err(io::Error::other("the disk fails"));
        }
        let content = &state.inodes[self.inode].content;
        let start = content.len().min(offset as usize);
        let end = content.len().min(start + want);
        buffer.clear();
        buffer.extend_from_slice(&content[start..end]);
        Ok(())
    }

    fn write_at(&mut self, offset: u64, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut bytes: Vec<u8> = slices
            .iter()
            .flat_map(|slice| slice.iter().copied())
            .collect();
        let name = || format!("write to {}", self.name.display());
        let before = self.disk.state().inodes[self.inode].content.len() as u64;
        let mut state = self.disk.change(self.life, name)?;
        if state.is_full && offset + bytes.len() as u64 > before {
            let some = state.chance.below(bytes.len() as u64 + 1) as usize;
            if some == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            bytes.truncate(some);
        } else if bytes.len() > 1 && state.chance.happens(20) {
            let some = 1 + state.chance.below(bytes.len() as u64 - 1) as usize;
            bytes.truncate(some);
        }
        let written = bytes.len();
        let offset = offset as usize;
        let write = Write::Bytes { offset, bytes };
        let inode = &mut state.inodes[self.inode];
        write.apply(&mut inode.content);
        inode.unsynced.push(write);
        Ok(written)
    }

    fn set_len(&mut self, bytes: u64) -> io::Result<()> {
        let name = || format!("cut {}", self.name.display());
        let mut state = self.disk.change(self.life, name)?;
        state
            .history
            .say(|| format!("{} is cut to {bytes} bytes", self.name.display()));
        let write = Write::Length(bytes as usize);
        let inode = &mut state.inodes[self.inode];
        write.apply(&mut inode.content);
        inode.unsynced.push(write);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let name = || format!("sync {}", self.name.display());
        let synced = self.disk.change(self.life, name);
        let failed = synced.is_err();
        let mut state = match synced {
            Ok(state) => state,
            // The kernel drops the pages that it could not write, and reports this only once.
            Err(_) if !self.disk.has_ended() => self.disk.look(self.life)?,
            Err(error) => return Err(error),
        };
        let State { chance, inodes, .. } = &mut *state;
        let inode = &mut inodes[self.inode];
        for write in inode.unsynced.drain(..) {
            if !failed || chance.happens(500) {
                write.apply(&mut inode.durable);
            }
        }
        if failed {
            Err(io::Error::other("the disk fails"))
        } else {
            Ok(())
        }
    }
}
