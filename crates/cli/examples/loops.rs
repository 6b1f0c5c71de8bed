//! A program whose instructions are known: what counters are held against.
//!
//! ```text
//!   loops ROUNDS [THREADS]     each thread: ROUNDS × (three_parts 3 × 1000 passes, one_part 1000)
//!   loops wait                 nothing until standard input ends
//! ```
//!
//! A pass is four instructions, so a round is 16 000 and few more. The loops are assembly: what a
//! compiler makes of others is its own affair.

use std::arch::asm;
use std::hint::black_box;
use std::process::ExitCode;

const PASSES: u64 = 1000;

/// `count` passes of four instructions.
#[inline(always)]
fn passes(count: u64) {
    // SAFETY: a counter in a register runs to zero; nothing else is touched.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("2:", "nop", "nop", "dec {left}", "jnz 2b", left = inout(reg) count => _,
            options(nomem, nostack));
        #[cfg(target_arch = "aarch64")]
        asm!("2:", "nop", "nop", "subs {left}, {left}, #1", "b.ne 2b",
            left = inout(reg) count => _, options(nomem, nostack));
    }
}

#[inline(never)]
fn three_parts() {
    passes(black_box(3 * PASSES));
}

#[inline(never)]
fn one_part() {
    passes(black_box(PASSES));
}

#[inline(never)]
fn rounds(count: u64) {
    for _ in 0..count {
        three_parts();
        one_part();
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| words.get(at).map_or(Some(1), |word| word.parse::<u64>().ok());
    let (Some(count), Some(threads)) = (number(0), number(1)) else {
        eprintln!("usage: loops ROUNDS [THREADS]");
        return ExitCode::from(2);
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(move || rounds(count));
        }
        rounds(count);
    });
    ExitCode::SUCCESS
}
