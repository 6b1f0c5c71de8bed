//! Files that can't be created, written or read, or that have changed.

use super::*;

/// The error for each kind of fault.
fn is_expected(fault: FileFault, error: &JoinError) -> bool {
    let JoinError::Spill(error) = error else { return false };
    match fault {
        FileFault::Create => matches!(error, SpillError::Directory { .. }),
        FileFault::Write => matches!(error, SpillError::Write { .. }),
        _ => matches!(error, SpillError::Read { .. }),
    }
}

/// Partitions of both sides, those of deeper levels, chunks that read the probe side again, runs
/// and merged runs: each file is created, written and read by operations of the same kind.
#[test]
fn any_operation_on_a_file_may_fail() {
    let tries_each = tries(144).cases as usize / CASES.len() / FileFault::ALL.len();
    let (mut levels, mut chunks, mut failed) = (0, 0, [0; FileFault::ALL.len()]);
    for (turn, (case, limit)) in CASES.iter().enumerate() {
        let run = |faults: &_| case.run(&Pool::of(*limit), faults, StopCheck::default());
        let faults = Arc::default();
        let spilled = run(&faults).unwrap();
        (levels, chunks) = (levels.max(spilled.levels), chunks + spilled.chunks);
        for (kind, fault) in FileFault::ALL.into_iter().enumerate() {
            let operations = faults.operations(fault) as usize;
            for operation in steps(operations, tries_each, turn + kind) {
                let faults = FileFaults::at(fault, operation as u64);
                let outcome = run(&faults);
                // Threads and compression may have made fewer operations.
                let happened = faults.operations(fault) > operation as u64;
                // The end of a file is marked by zeros.
                if !happened || (fault == FileFault::Zeros && outcome.is_ok()) {
                    outcome.unwrap();
                    continue;
                }
                let error = outcome.unwrap_err();
                assert!(is_expected(fault, &error), "{fault:?} {operation}: {error:?}");
                assert!(!error.to_string().contains('\n'), "{error}");
                failed[kind] += 1;
            }
        }
    }
    assert!(levels > 2 && chunks > 20, "{levels} {chunks}");
    assert!(failed.iter().all(|failed| *failed > 12), "{failed:?}");
}
