//! The registers of the interrupted code that are needed for unwinding.

use std::mem::offset_of;

use framehop::UnwindRegsNative;

/// The instruction pointer, stack pointer, frame pointer and, on architectures that have one, the link register.
#[derive(Debug, Clone, Copy)]
pub(super) struct Registers {
    pub(super) pc: u64,
    pub(super) sp: u64,
    fp: u64,
    #[cfg(target_arch = "aarch64")]
    link: u64,
}

/// The kernel's layout, which the type of the C library has to match.
#[cfg(target_arch = "x86_64")]
const _: () = assert!(offset_of!(libc::ucontext_t, uc_mcontext.gregs) == 40);

#[cfg(target_arch = "x86_64")]
impl Registers {
    pub(super) const ZERO: Self = Self {
        pc: 0,
        sp: 0,
        fp: 0,
    };

    /// Returns the registers that the kernel saved when it interrupted the thread. Async-signal-safe.
    pub(super) fn from_context(context: &libc::ucontext_t) -> Self {
        let register = |number: libc::c_int| {
            let index = usize::try_from(number).unwrap_or(usize::MAX);
            let value = context.uc_mcontext.gregs.get(index).copied();
            value.unwrap_or_default().cast_unsigned()
        };
        Self {
            pc: register(libc::REG_RIP),
            sp: register(libc::REG_RSP),
            fp: register(libc::REG_RBP),
        }
    }

    /// The code that a handler returns to: `mov $15, %rax; syscall`.
    pub(super) const TRAMPOLINE: &[u8] = &[0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05];

    /// Reads the registers that the kernel saved when it interrupted a thread to run a handler, if the handler returned to the
    /// trampoline with the stack pointer `sp`.
    pub(super) fn saved_at(sp: u64, read: impl Fn(u64) -> Option<u64>) -> Option<Self> {
        const SAVED: usize = offset_of!(libc::ucontext_t, uc_mcontext.gregs);
        let register = |number: libc::c_int| {
            let place = u64::try_from(number).ok()?.checked_mul(8)?;
            read(sp.checked_add(SAVED as u64)?.checked_add(place)?)
        };
        Some(Self {
            pc: register(libc::REG_RIP)?,
            sp: register(libc::REG_RSP)?,
            fp: register(libc::REG_RBP)?,
        })
    }

    /// Stands for an unknown frame pointer. No stack is there, so unwinding by it fails.
    pub(super) const UNKNOWN: u64 = 1;

    /// Returns the registers of a thread of which only these two are known.
    pub(super) fn without_frame_pointer(pc: u64, sp: u64) -> Self {
        let fp = Self::UNKNOWN;
        Self { pc, sp, fp }
    }

    /// Converts the registers for the unwinder.
    pub(super) fn for_unwinding(self, _highest_address: u64) -> UnwindRegsNative {
        UnwindRegsNative::new(self.pc, self.sp, self.fp)
    }
}

/// The kernel's layout, which the types of the C library have to match.
#[cfg(target_arch = "aarch64")]
const _: () = {
    assert!(size_of::<libc::siginfo_t>() == 128);
    assert!(offset_of!(libc::ucontext_t, uc_mcontext) == 176);
    assert!(offset_of!(libc::mcontext_t, pc) == 264);
};

#[cfg(target_arch = "aarch64")]
impl Registers {
    pub(super) const ZERO: Self = Self {
        pc: 0,
        sp: 0,
        fp: 0,
        link: 0,
    };

    /// Returns the registers that the kernel saved when it interrupted the thread. Async-signal-safe.
    pub(super) fn from_context(context: &libc::ucontext_t) -> Self {
        let register = |index: usize| {
            let value = context.uc_mcontext.regs.get(index).copied();
            value.unwrap_or_default()
        };
        Self {
            pc: context.uc_mcontext.pc,
            sp: context.uc_mcontext.sp,
            fp: register(29),
            link: register(30),
        }
    }

    /// The code that a handler returns to: `mov x8, #139; svc #0`.
    pub(super) const TRAMPOLINE: &[u8] = &[0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4];

    /// Reads the registers that the kernel saved when it interrupted a thread to run a handler, if the handler returned to the
    /// trampoline with the stack pointer `sp`.
    pub(super) fn saved_at(sp: u64, read: impl Fn(u64) -> Option<u64>) -> Option<Self> {
        // The frame of a handler starts with the information about the signal, followed by the context.
        const CONTEXT: usize = size_of::<libc::siginfo_t>();
        const SAVED: usize = CONTEXT + offset_of!(libc::ucontext_t, uc_mcontext);
        let word = |offset: usize| {
            let place = u64::try_from(SAVED.checked_add(offset)?).ok()?;
            read(sp.checked_add(place)?)
        };
        const GENERAL: usize = offset_of!(libc::mcontext_t, regs);
        Some(Self {
            pc: word(offset_of!(libc::mcontext_t, pc))?,
            sp: word(offset_of!(libc::mcontext_t, sp))?,
            fp: word(GENERAL + 29 * 8)?,
            link: word(GENERAL + 30 * 8)?,
        })
    }

    /// Converts the registers for the unwinder. Return addresses may be signed in the bits that no address uses. These bits
    /// follow from the highest address in use, which is the top of the stack or of the code.
    pub(super) fn for_unwinding(self, highest_address: u64) -> UnwindRegsNative {
        let mask = framehop::aarch64::PtrAuthMask::from_max_known_address(highest_address.max(1));
        UnwindRegsNative::new_with_ptr_auth_mask(mask, self.link, self.sp, self.fp)
    }
}
