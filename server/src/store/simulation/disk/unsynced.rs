//! Writes and changes of names that are not synced yet.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::Chance;

#[derive(Clone, Debug)]
pub(super) enum Write {
    Bytes { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone, Debug)]
pub(super) enum Change {
    Is(PathBuf, usize),
    Gone(PathBuf),
    /// Removes the old name and adds the new one in one step.
    Renamed(PathBuf, PathBuf, usize),
}

impl Write {
    pub(super) fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Bytes { offset, bytes } => {
                let end = offset + bytes.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(bytes);
            }
            Self::Length(length) => content.resize(*length, 0),
        }
    }

    /// Returns what a power cut leaves of the write: all, a part, or nothing.
    pub(super) fn after_power_cut(self, chance: &Chance) -> Option<Self> {
        let is_torn = match chance.below(3) {
            0 => false,
            1 => true,
            _ => return None,
        };
        Some(match self {
            Self::Bytes { offset, mut bytes } if is_torn => {
                bytes.truncate(chance.below(bytes.len() as u64 + 1) as usize);
                if chance.happens(300) {
                    // The length became durable before the bytes.
                    bytes.fill(0);
                }
                Self::Bytes { offset, bytes }
            }
            whole => whole,
        })
    }
}

impl Change {
    pub(super) fn apply(&self, names: &mut BTreeMap<PathBuf, usize>) {
        match self {
            Self::Is(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            Self::Gone(path) => {
                names.remove(path);
            }
            Self::Renamed(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }

    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Is(path, _) | Self::Gone(path) | Self::Renamed(_, path, _) => path.parent(),
        }
    }
}
