//! Turns a copied stack into frames, on the watching thread.

use framehop::{FrameAddress, UnwindRegsNative, Unwinder};

use super::copied_stack::Copied;
#[cfg(target_arch = "x86_64")]
use super::frame_pointer;
use super::modules::Modules;
use super::registers::Registers;
use super::thread::Bounds;
use crate::RawFrame;

/// The frames of a stack, innermost first.
pub(super) struct Unwound {
    pub(super) frames: Vec<RawFrame>,
    /// Whether outer frames are missing.
    pub(super) truncated: bool,
    /// Whether a frame was searched for and the result could not be confirmed.
    #[cfg_attr(
        not(target_arch = "x86_64"),
        expect(dead_code, reason = "the frame pointer is always known here")
    )]
    pub(super) is_guess: bool,
}

/// Returns at most `depth` frames.
pub(super) fn unwind(
    copied: &Copied<'_>,
    bounds: Bounds,
    modules: &mut Modules,
    depth: usize,
) -> Unwound {
    let top = u64::try_from(bounds.high).unwrap_or(u64::MAX);
    let highest = top.max(modules.highest_address());
    let position = Position {
        registers: copied.registers.for_unwinding(highest),
        address: FrameAddress::from_instruction_pointer(copied.registers.pc),
        highest,
    };
    let mut frames = Vec::new();
    let end = walk(copied, position, modules, depth, &mut frames);
    let (truncated, is_guess) = match end {
        End::Root => (false, false),
        End::Cut => (true, false),
        #[cfg(target_arch = "x86_64")]
        End::NeedsFramePointer(stopped) => search(copied, stopped, modules, depth, &mut frames),
    };
    Unwound {
        frames,
        truncated,
        is_guess,
    }
}

/// The registers in one frame.
#[derive(Clone, Copy)]
struct Position {
    registers: UnwindRegsNative,
    address: FrameAddress,
    /// The highest address in use.
    highest: u64,
}

/// Why a walk ended.
enum End {
    /// The outermost frame was reached.
    Root,
    /// Outer frames are missing.
    Cut,
    /// The function keeps its frame pointer in a register whose value is unknown.
    #[cfg(target_arch = "x86_64")]
    NeedsFramePointer(Position),
}

/// Adds frames until there are `depth`.
fn walk(
    copied: &Copied<'_>,
    mut at: Position,
    modules: &mut Modules,
    depth: usize,
    frames: &mut Vec<RawFrame>,
) -> End {
    let mut read_stack = |address| copied.word(address).ok_or(());
    while frames.len() < depth {
        // Loads the data about the module, which the unwinder needs to leave this frame.
        frames.push(modules.frame(at.address.address_for_lookup()));
        if at.address.is_return_address() && modules.is_trampoline(at.address.address()) {
            // The code behind a trampoline was interrupted and made no call: its registers are where the kernel saved them.
            let saved = Registers::saved_at(at.registers.sp(), |place| copied.word(place));
            let Some(saved) = saved else {
                return End::Cut;
            };
            at.registers = saved.for_unwinding(at.highest);
            at.address = FrameAddress::from_instruction_pointer(saved.pc);
            continue;
        }
        #[cfg(target_arch = "x86_64")]
        let stopped = at;
        let (unwinder, cache) = modules.unwinder();
        let caller = unwinder.unwind_frame(at.address, &mut at.registers, cache, &mut read_stack);
        match caller.map(|caller| caller.map(FrameAddress::from_return_address)) {
            Ok(Some(Some(caller))) => at.address = caller,
            Ok(None) => return End::Root,
            #[cfg(target_arch = "x86_64")]
            Err(_) if stopped.registers.bp() == Registers::UNKNOWN => {
                return End::NeedsFramePointer(stopped);
            }
            Ok(Some(None)) | Err(_) => return End::Cut,
        }
    }
    End::Cut
}

/// Continues a walk with the frame pointer that leads furthest. Returns whether outer frames are missing, and whether the result is
/// a guess.
#[cfg(target_arch = "x86_64")]
fn search(
    copied: &Copied<'_>,
    stopped: Position,
    modules: &mut Modules,
    depth: usize,
    frames: &mut Vec<RawFrame>,
) -> (bool, bool) {
    let (address, sp) = (stopped.address.address_for_lookup(), stopped.registers.sp());
    // The walk adds the frame at which it continues.
    let Some(repeated) = frames.pop() else {
        return (true, true);
    };
    let mut longest = vec![repeated];
    for place in frame_pointer::places(copied, modules, address, sp) {
        let mut at = stopped;
        at.registers.set_bp(place.frame_pointer);
        let mut found = Vec::new();
        let left = depth.saturating_sub(frames.len());
        let end = walk(copied, at, modules, left, &mut found);
        let whole = matches!(end, End::Root);
        if whole || found.len() >= left {
            frames.append(&mut found);
            return (!whole, !place.calls_this);
        }
        // Old addresses on the stack lead nowhere, but so do some stacks, such as those of coroutines.
        if place.calls_this && found.len() > longest.len() {
            longest = found;
        }
    }
    frames.append(&mut longest);
    (true, true)
}
