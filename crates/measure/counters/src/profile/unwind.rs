//! From registers and a copy of the stack to the calls that led there.

use framehop::{CacheNative, FrameAddress, MayAllocateDuringUnwind, Unwinder as _};
use framehop::{Error, UnwindRegsNative};

use workahead_machine::guarded::guarded;

use super::space::Unwinder;

/// Rules already worked out, by address; shared by all processes.
pub(super) type Cache = CacheNative<MayAllocateDuringUnwind>;

/// Deeper stacks are cut. Recursion of a planner or of a regular expression goes that deep.
const FRAMES_MAX: usize = 256;

/// The registers that unwinding starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Registers {
    pub(super) pc: u64,
    pub(super) sp: u64,
    fp: u64,
    #[cfg(target_arch = "aarch64")]
    lr: u64,
}

#[cfg(target_arch = "x86_64")]
mod native {
    use super::{Registers, UnwindRegsNative};

    // asm/perf_regs.h: BP, SP and IP.
    pub(super) const NUMBERS: [u32; 3] = [6, 7, 8];

    pub(super) fn registers(values: &[u64]) -> Option<Registers> {
        let &[fp, sp, pc] = values else { return None };
        Some(Registers { pc, sp, fp })
    }

    impl Registers {
        pub(super) fn native(&self) -> UnwindRegsNative {
            UnwindRegsNative::new(self.pc, self.sp, self.fp)
        }
    }
}

#[cfg(target_arch = "aarch64")]
mod native {
    use super::{Registers, UnwindRegsNative};
    use framehop::aarch64::PtrAuthMask;

    // asm/perf_regs.h: X29, LR, SP and PC.
    pub(super) const NUMBERS: [u32; 4] = [29, 30, 31, 32];

    pub(super) fn registers(values: &[u64]) -> Option<Registers> {
        let &[fp, lr, sp, pc] = values else { return None };
        Some(Registers { pc, sp, fp, lr })
    }

    impl Registers {
        pub(super) fn native(&self) -> UnwindRegsNative {
            // Linux gives programs 48 bits of address; the rest of a return address is its
            // signature.
            let mask = PtrAuthMask(u64::MAX >> 16);
            UnwindRegsNative::new_with_ptr_auth_mask(mask, self.lr, self.sp, self.fp)
        }
    }
}

/// The registers to ask the kernel for, as `attr.sample_regs_user` wants them.
pub(super) fn register_mask() -> u64 {
    native::NUMBERS.iter().fold(0, |mask, number| mask | 1 << number)
}

impl Registers {
    /// From what the kernel copied for [`register_mask`].
    pub(super) fn from_sample(values: &[u64]) -> Option<Self> {
        native::registers(values)
    }
}

/// The calls of one stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Calls {
    /// Addresses inside the calls, the innermost first.
    pub(super) addresses: Vec<u64>,
    /// Whether the outermost was not reached.
    pub(super) truncated: bool,
}

/// Walks a stack whose bytes from the stack pointer on are `stack`. Where a file has no unwind
/// tables, the unwinder follows frame pointers; damaged ones end the walk.
pub(super) fn unwind(
    unwinder: &Unwinder,
    cache: &mut Cache,
    registers: &Registers,
    stack: &[u8],
    is_code: impl Fn(u64) -> bool,
) -> Calls {
    guarded(|| walk(unwinder, cache, registers, stack, is_code)).unwrap_or_else(|_| {
        *cache = Cache::new();
        Calls { addresses: vec![registers.pc], truncated: true }
    })
}

fn walk(
    unwinder: &Unwinder,
    cache: &mut Cache,
    registers: &Registers,
    stack: &[u8],
    is_code: impl Fn(u64) -> bool,
) -> Calls {
    let mut read = |address: u64| {
        let at = usize::try_from(address.checked_sub(registers.sp).ok_or(())?).map_err(drop)?;
        let bytes = stack.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or(())?;
        Ok(u64::from_le_bytes(*bytes))
    };
    let mut frames = unwinder.iter_frames(registers.pc, registers.native(), cache, &mut read);
    let mut addresses = Vec::new();
    loop {
        match frames.next() {
            Ok(Some(frame)) => {
                let address = frame.address_for_lookup();
                let known =
                    matches!(frame, FrameAddress::InstructionPointer(_)) || is_code(address);
                if !known || addresses.len() == FRAMES_MAX {
                    return Calls { addresses, truncated: true };
                }
                addresses.push(address);
            }
            // The outermost function has nowhere to return to.
            Ok(None) | Err(Error::ReturnAddressIsNull) => {
                return Calls { addresses, truncated: false };
            }
            Err(_) => return Calls { addresses, truncated: true },
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    const SP: u64 = 0x7000;

    /// Two calls by frame pointers: code at 0x400 called from 0x500, that from 0x600.
    fn walk(stack_bytes: usize, is_code: impl Fn(u64) -> bool) -> Calls {
        let words = [9, 9, SP + 40, 0x501, 9, 0, 0x601, 9];
        let stack: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
        let registers = Registers { pc: 0x400, sp: SP, fp: SP + 16 };
        let stack = &stack[..stack_bytes];
        unwind(&Unwinder::default(), &mut Cache::new(), &registers, stack, is_code)
    }

    #[test]
    fn without_tables_frame_pointers_are_followed() {
        let calls = walk(64, |_| true);
        assert_eq!(calls, Calls { addresses: vec![0x400, 0x500, 0x600], truncated: false });
    }

    #[test]
    fn a_stack_that_ends_early_or_leads_nowhere_is_truncated() {
        assert_eq!(walk(40, |_| true), Calls { addresses: vec![0x400, 0x500], truncated: true });
        assert_eq!(walk(0, |_| true), Calls { addresses: vec![0x400], truncated: true });
        let calls = walk(64, |address| address != 0x500);
        assert_eq!(calls, Calls { addresses: vec![0x400], truncated: true });
    }
}
