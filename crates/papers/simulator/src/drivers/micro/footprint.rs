//! The code of the queries: functions named as in PostgreSQL 8.1, with the work of a call.
//!
//! Instructions of a call and bytes of code are PostgreSQL 15.18's, counted with callgrind while it
//! ran the same plans (`--dump-instr=yes`; bytes are distinct instructions executed, at 3.5 bytes
//! each): 64-bit code of today, not the paper's. The comparison of a sort is the B-tree's: 15
//! inlines it, 8.1 calls it. The mix of instructions is printed in tables 1 and 2 of Hassanein et
//! al. (2008). Nothing here is fitted to the results.

use super::Query;
use crate::drivers::code::{Footprint, Function, Mix};

/// Declares functions: a variant each, and a table in the same order.
macro_rules! functions {
    ($($call:ident $name:literal $instructions:literal $distinct:literal)*) => {
        /// A function called by plans.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Call {
            $($call),*
        }

        /// All functions. Bytes are distinct instructions at 3.5 bytes each.
        const FUNCTIONS: &[Function] = &[
            $(Function { name: $name, instructions: $instructions, bytes: $distinct * 7 / 2 }),*
        ];
    };
}

functions! {
    // A statement's fixed part: each of its instructions runs four times.
    Parse "raw_parser" 18_400 4600
    Analyse "parse_analyze" 35_600 8900
    Plan "standard_planner" 109_000 27_000
    Start "ExecutorStart" 24_500 6100
    End "CommitTransactionCommand" 13_000 3200
    LockRelation "LockAcquire" 700 300
    Snapshot "GetSnapshotData" 260 150
    // Pages of the buffer pool.
    ReadBuffer "ReadBuffer" 154 300
    LockAcquire "LWLockAcquire" 63 67
    LockRelease "LWLockRelease" 52 65
    HashSearch "hash_search" 183 420
    PinBuffer "PinBuffer" 139 120
    ReleaseBuffer "ReleaseBuffer" 141 120
    LockBuffer "LockBuffer" 18 31
    // Rows of a table.
    Scan "ExecScan" 90 115
    NextRow "heapgettup" 113 228
    Fetch "heap_release_fetch" 120 181
    Visible "HeapTupleSatisfiesSnapshot" 48 73
    Slot "ExecStoreTuple" 37 50
    Deform "slot_deform_tuple" 150 142
    Qualify "ExecQual" 48 60
    Evaluate "ExecMakeFunctionResultNoSets" 37 60
    // A bitmap of pages.
    AddToBitmap "tbm_add_tuples" 185 180
    SortBitmap "qsort" 31 320
    CompareBitmap "tbm_comparator" 10 11
    NextOfBitmap "tbm_iterate" 233 51
    BitmapRow "BitmapHeapNext" 326 368
    // A sort.
    IntoSort "tuplesort_puttuple" 117 120
    Allocate "AllocSetAlloc" 35 43
    SiftUp "tuplesort_heap_siftup" 31 80
    CompareRows "comparetup_heap" 89 164
    OutOfSort "tuplesort_gettuple" 94 90
    Distinct "ExecUnique" 105 110
    // An index.
    Rescan "ExecReScan" 420 400
    BeginSearch "_bt_first" 294 300
    Descend "_bt_search" 121 97
    MoveRight "_bt_moveright" 52 58
    Search "_bt_binsrch" 157 71
    CompareKeys "_bt_compare" 89 164
    Compare "FunctionCall2" 36 35
    ReadEntries "_bt_readpage" 158 162
    CheckKey "_bt_checkkeys" 115 101
    NextOfIndex "index_getnext" 206 230
    Join "ExecNestLoop" 150 150
    // An answer.
    Advance "advance_aggregates" 160 150
    FormRow "heap_formtuple" 197 200
    FindPage "RelationGetBufferForTuple" 113 211
    InsertRow "heap_insert" 300 370
    LogRow "XLogInsert" 695 640
    Insert "ExecInsert" 700 600
}

impl Call {
    /// Its index in the footprint.
    pub(super) const fn number(self) -> usize {
        self as usize
    }

    /// Its figures.
    pub(super) const fn function(self) -> &'static Function {
        &FUNCTIONS[self as usize]
    }
}

/// Share of a database's branches that depend on data: a default, the paper doesn't print it.
const UNPREDICTABLE: f64 = 0.05;

const fn footprint(loads: f64, stores: f64, branches: f64, uops_per_instruction: f64) -> Footprint {
    Footprint {
        origin: "synthetic: calls and code of PostgreSQL 15.18 under callgrind, mix of Hassanein \
                 et al. 2008, tables 1 and 2",
        functions: FUNCTIONS,
        mix: Mix { loads, stores, branches, uops_per_instruction, unpredictable: UNPREDICTABLE },
        // `size postgres` of 15.18, over which the functions are spread.
        text_bytes: 8_711_945,
        // A default: a stack's top, plan nodes, slots and expressions.
        own_bytes: 16 << 10,
    }
}

static UTPCC: Footprint = footprint(0.36, 0.21, 0.18, 1.6);
static USS: Footprint = footprint(0.40, 0.25, 0.19, 1.65);
static UNJ: Footprint = footprint(0.36, 0.24, 0.18, 1.62);

/// The footprint of a query.
#[must_use]
pub fn of(query: Query) -> &'static Footprint {
    match query {
        Query::Utpcc => &UTPCC,
        Query::Uss => &USS,
        Query::Unj => &UNJ,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_paper() {
        let name = |call: Call| FUNCTIONS[call.number()].name;
        assert_eq!(name(Call::HashSearch), "hash_search");
        assert_eq!(name(Call::CompareKeys), "_bt_compare");
        assert_eq!(name(Call::Insert), "ExecInsert");
        // No function executes more code than it takes instructions.
        for function in FUNCTIONS.iter().filter(|one| one.name.starts_with("LWLock")) {
            assert!(function.bytes <= function.instructions * 5, "{function:?}");
        }
    }
}
