//! The copied stack of a thread.

use super::registers::Registers;

/// The registers of a thread, and a copy of its stack from the stack pointer on.
#[derive(Clone, Copy)]
pub(super) struct Copied<'a> {
    pub(super) registers: Registers,
    pub(super) stack: &'a [u8],
}

impl Copied<'_> {
    /// Returns the eight bytes at an address of the stack, if they were copied.
    pub(super) fn word(&self, address: u64) -> Option<u64> {
        let start = usize::try_from(address.checked_sub(self.registers.sp)?).ok()?;
        let bytes = self.stack.get(start..start.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }
}
