//! Turns a sample into frames, on the watching thread.

use framehop::{FrameAddress, Unwinder};

use super::modules::Modules;
use super::registers::Registers;
use super::slot::Sample;
use super::thread::Bounds;
use crate::RawFrame;

/// Returns at most `depth` frames, innermost first, and whether outer ones are missing.
pub(super) fn unwind(
    sample: &Sample,
    bounds: Bounds,
    modules: &mut Modules,
    depth: usize,
) -> (Vec<RawFrame>, bool) {
    let mut frames = Vec::new();
    let top = u64::try_from(bounds.high).unwrap_or(u64::MAX);
    let highest = top.max(modules.highest_address());
    let mut registers = sample.registers.for_unwinding(highest);
    let mut read_stack = |address| word(sample, address).ok_or(());
    let mut address = FrameAddress::from_instruction_pointer(sample.registers.pc);
    while frames.len() < depth {
        // Loads the data about the module, which the unwinder needs to leave this frame.
        frames.push(modules.frame(address.address_for_lookup()));
        if address.is_return_address() && modules.is_trampoline(address.address()) {
            // The code behind a trampoline was interrupted and made no call: its registers are where the kernel saved them.
            let Some(saved) = Registers::saved_at(registers.sp(), |place| word(sample, place))
            else {
                return (frames, true);
            };
            registers = saved.for_unwinding(highest);
            address = FrameAddress::from_instruction_pointer(saved.pc);
            continue;
        }
        let (unwinder, cache) = modules.unwinder();
        let caller = unwinder.unwind_frame(address, &mut registers, cache, &mut read_stack);
        match caller.map(|caller| caller.map(FrameAddress::from_return_address)) {
            Ok(Some(Some(caller))) => address = caller,
            Ok(None) => return (frames, false),
            Ok(Some(None)) | Err(_) => return (frames, true),
        }
    }
    (frames, true)
}

/// Returns the eight bytes at an address of the stack, if they were copied.
fn word(sample: &Sample, address: u64) -> Option<u64> {
    let start = usize::try_from(address.checked_sub(sample.registers.sp)?).ok()?;
    let bytes = sample.stack().get(start..start.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().ok()?))
}
