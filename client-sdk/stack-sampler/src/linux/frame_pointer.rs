//! Finds the frame of a function that keeps its frame pointer, if the value of that register is unknown.
//!
//! Such a function saves the frame pointer of its caller right below its return address. Above the stack pointer, some places
//! look like that, because old calls leave their addresses behind. The right one holds an address behind a call of this very
//! function, at least as far up as the function's first instructions reserve.

use std::fs::File;
use std::os::unix::fs::FileExt;

use super::copied_stack::Copied;
use super::modules::Modules;

/// How many places are tried.
const MAX_PLACES: usize = 16;

/// How far above the stack pointer the frame may end. Functions may reserve more than their first instructions do.
const MAX_FRAME_BYTES: u64 = 64 << 10;

/// A place where the frame pointer may point to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) frame_pointer: u64,
    /// Whether the return address is behind a call of this function, rather than behind a call of an unknown one.
    pub(super) calls_this: bool,
}

/// Returns places for the frame pointer of the function at `address`, whose stack pointer is `sp`; the likeliest first.
pub(super) fn places(copied: &Copied<'_>, modules: &Modules, address: u64, sp: u64) -> Vec<Place> {
    let Ok(memory) = File::open("/proc/self/mem") else {
        return Vec::new();
    };
    let start = modules.function_start(&memory, address);
    let reserved = start.and_then(|start| Prologue::read(&memory, start));
    let reserved = reserved.map_or(0, |prologue| prologue.bytes);
    let mut found = Vec::new();
    let mut offset = reserved;
    while offset < MAX_FRAME_BYTES && found.len() < MAX_PLACES {
        let frame_pointer = sp.saturating_add(offset);
        offset = offset.saturating_add(8);
        let Some(back) = copied.word(frame_pointer.saturating_add(8)) else {
            break;
        };
        let calls = match modules.is_code(back) {
            true => Call::before(&memory, back),
            false => Vec::new(),
        };
        let calls_this = start.is_some_and(|start| {
            let mut targets = calls.iter().filter_map(Call::target);
            targets.any(|target| leads_to(&memory, target, start))
        });
        let may_call_this = |call: &Call| start.is_none() || *call == Call::ToUnknown;
        if calls_this || calls.iter().any(may_call_this) {
            found.push(Place {
                frame_pointer,
                calls_this,
            });
        }
    }
    found.sort_by_key(|place| !place.calls_this);
    found
}

/// The first instructions of a function: `push %rbp; mov %rsp, %rbp`, more pushes, `sub $…, %rsp`.
#[derive(Debug, PartialEq, Eq)]
struct Prologue {
    /// How far the stack pointer is below the frame pointer.
    bytes: u64,
}

impl Prologue {
    fn read(memory: &File, start: u64) -> Option<Self> {
        let mut code = [0; 48];
        memory.read_exact_at(&mut code, start).ok()?;
        Self::parse(&code)
    }

    /// Returns `None` for any other beginning, for example if other instructions are in between.
    fn parse(code: &[u8]) -> Option<Self> {
        let code = code.strip_prefix(&ENDBR).unwrap_or(code);
        let code = code.strip_prefix(&[0x55])?;
        let moved = [[0x48, 0x89, 0xe5], [0x48, 0x8b, 0xec]];
        let mut code = moved.iter().find_map(|mov| code.strip_prefix(mov))?;
        let mut bytes: u64 = 0;
        loop {
            code = match code {
                [0x41, 0x50..=0x57, rest @ ..] | [0x50..=0x57, rest @ ..] => rest,
                [0x48, 0x83, 0xec, size, ..] => {
                    return Some(Self {
                        bytes: bytes.checked_add(u64::from(*size))?,
                    });
                }
                [0x48, 0x81, 0xec, a, b, c, d, ..] => {
                    let size = u32::from_le_bytes([*a, *b, *c, *d]);
                    return Some(Self {
                        bytes: bytes.checked_add(u64::from(size))?,
                    });
                }
                _ => return None,
            };
            bytes = bytes.checked_add(8)?;
        }
    }
}

/// Marks the target of an indirect jump.
const ENDBR: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

/// A call, by what it calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    To(u64),
    ToUnknown,
}

impl Call {
    /// Decodes the calls that may end at `address`.
    fn before(memory: &File, address: u64) -> Vec<Self> {
        let mut code = [0; 7];
        let start = address.checked_sub(7);
        match start.map(|start| memory.read_exact_at(&mut code, start)) {
            Some(Ok(())) => Self::parse(&code, address, |place| word_at(memory, place)),
            _ => Vec::new(),
        }
    }

    /// Where an instruction begins does not follow from where it ends: `e8` may begin a call, or be a byte of the instruction before a shorter call.
    /// So every way to read the bytes is returned.
    fn parse(code: &[u8; 7], end: u64, word: impl Fn(u64) -> Option<u64>) -> Vec<Self> {
        let relative =
            |bytes: [u8; 4]| end.wrapping_add_signed(i64::from(i32::from_le_bytes(bytes)));
        let direct = match *code {
            [_, _, 0xe8, a, b, c, d] => Some(relative([a, b, c, d])),
            _ => None,
        };
        let through_table = match *code {
            [_, 0xff, 0x15, a, b, c, d] => word(relative([a, b, c, d])),
            _ => None,
        };
        let unknown = matches!(
            *code,
            [.., 0xff, 0xd0..=0xd7]
                | [.., 0xff, 0x10..=0x13 | 0x16..=0x17]
                | [.., 0xff, 0x50..=0x53 | 0x55..=0x57 | 0x14, _]
                | [.., 0xff, 0x54, _, _]
                | [_, 0xff, 0x90..=0x93 | 0x95..=0x97, ..]
                | [0xff, 0x94, ..]
        );
        let known = [direct, through_table].into_iter().flatten().map(Self::To);
        known.chain(unknown.then_some(Self::ToUnknown)).collect()
    }

    fn target(&self) -> Option<u64> {
        match self {
            Self::To(target) => Some(*target),
            Self::ToUnknown => None,
        }
    }
}

/// Returns whether a call of `target` reaches the function that starts at `start`, at once or through one jump of the linker.
fn leads_to(memory: &File, target: u64, start: u64) -> bool {
    if target == start {
        return true;
    }
    let mut code = [0; 16];
    if memory.read_exact_at(&mut code, target).is_err() {
        return false;
    }
    let marked = code.starts_with(&ENDBR);
    let (skipped, jump) = if marked {
        (4_u64, code.get(4..).unwrap_or_default())
    } else {
        (0, &code[..])
    };
    // `bnd` before the jump.
    let (skipped, jump) = match jump {
        [0xf2, rest @ ..] => (skipped.saturating_add(1), rest),
        _ => (skipped, jump),
    };
    let end = |length: u64| target.wrapping_add(skipped).wrapping_add(length);
    let relative = |bytes: [u8; 4], length| {
        end(length).wrapping_add_signed(i64::from(i32::from_le_bytes(bytes)))
    };
    let reached = match *jump {
        [0xff, 0x25, a, b, c, d, ..] => word_at(memory, relative([a, b, c, d], 6)),
        [0xe9, a, b, c, d, ..] => Some(relative([a, b, c, d], 5)),
        _ => None,
    };
    reached == Some(start)
}

fn word_at(memory: &File, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    memory.read_exact_at(&mut bytes, address).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_frame_follows_from_its_first_instructions() {
        let bytes = |code: &[u8]| Prologue::parse(code).map(|one| one.bytes);
        assert_eq!(
            bytes(&[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20]),
            Some(0x20)
        );
        // With two pushes and a large frame.
        let large = [
            0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x41, 0x57, 0x53, 0x48, 0x81, 0xec, 0,
            1, 0, 0,
        ];
        assert_eq!(bytes(&large), Some(0x110));
        assert_eq!(bytes(&[0x55, 0x48, 0x89, 0xe5, 0x89, 0xf8]), None);
        assert_eq!(bytes(&[0x53, 0x48, 0x83, 0xec, 0x20]), None);
    }

    #[test]
    fn calls_are_recognised_by_their_last_bytes() {
        let parse = |code: [u8; 7]| Call::parse(&code, 0x1000, |place| Some(place + 1));
        let to = |target| vec![Call::To(target)];
        assert_eq!(parse([0, 0, 0xe8, 0, 1, 0, 0]), to(0x1100));
        assert_eq!(parse([0, 0, 0xe8, 0, 0xff, 0xff, 0xff]), to(0xf00));
        assert_eq!(parse([0, 0xff, 0x15, 0x10, 0, 0, 0]), to(0x1011));
        assert_eq!(parse([0, 0, 0, 0, 0, 0xff, 0xd0]), [Call::ToUnknown]);
        assert_eq!(parse([0, 0, 0, 0, 0xff, 0x50, 0x18]), [Call::ToUnknown]);
        assert_eq!(parse([0, 0xff, 0x90, 0, 1, 0, 0]), [Call::ToUnknown]);
        assert_eq!(parse([0x90; 7]), []);
    }

    #[test]
    fn a_call_through_a_register_is_one_whatever_the_bytes_before_it() {
        let parse = |code: [u8; 7]| Call::parse(&code, 0x1000, |place| Some(place + 1));
        // The end of `mov 0x9ae8ff(%rip), %rax; call *%rax`, as unoptimised code calls functions of other crates.
        let both = parse([0x05, 0xff, 0xe8, 0x9a, 0, 0xff, 0xd0]);
        assert_eq!(both.last(), Some(&Call::ToUnknown));
        for (begins, at) in [([0xe8, 0x90], 2), ([0xff, 0x15], 1), ([0xff, 0x14], 3)] {
            let mut code = [0, 0, 0, 0, 0, 0xff, 0xd0];
            code[at..at + 2].copy_from_slice(&begins);
            assert!(parse(code).contains(&Call::ToUnknown), "{code:x?}");
        }
    }
}
