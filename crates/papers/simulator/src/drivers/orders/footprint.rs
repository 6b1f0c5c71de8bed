//! The code footprint of an order-entry engine.
//!
//! The code of the paper's Informix is unpublished. The instruction mix is the paper's for the
//! database; the bytes of code are of the order that Lo et al. (ISCA 1998, "An analysis of database
//! workload performance on simultaneous multithreaded processors") found for Oracle's order
//! processing, some 550 KB; that every statement has code of its own, and the length of a call, are
//! defaults. No figure was chosen for its effect on the model.

use crate::drivers::code::{Footprint, Function, Mix};

/// Statements of all transactions.
pub(super) const STATEMENTS: usize = 28;

/// Receives and parses a request.
pub(super) const RECEIVE: usize = 0;
/// Replies to a request.
pub(super) const REPLY: usize = 1;
/// Begins a transaction.
pub(super) const BEGIN: usize = 2;
/// Commits a transaction.
pub(super) const COMMIT: usize = 3;
/// Switches to another client.
pub(super) const SWITCH: usize = 4;
/// Finds a page in the buffer.
pub(super) const PAGE: usize = 5;
/// Unpins a page.
pub(super) const UNPIN: usize = 6;
/// Replaces a page by one from disk.
pub(super) const REPLACE: usize = 7;
/// Acquires a lock.
pub(super) const LOCK: usize = 8;
/// Releases a lock.
pub(super) const UNLOCK: usize = 9;
/// Writes a record of the log.
pub(super) const LOG: usize = 10;
/// Searches a node of an index.
pub(super) const NODE: usize = 11;
/// Changes a leaf.
pub(super) const INSERT: usize = 12;
/// Splits a leaf.
pub(super) const SPLIT: usize = 13;
/// Reads a row.
pub(super) const FETCH: usize = 14;
/// Updates a row.
pub(super) const UPDATE: usize = 15;
/// Inserts a row.
pub(super) const ADD: usize = 16;
/// The five transactions' code besides their statements, one after the other.
pub(super) const PROCEDURE: usize = 17;
/// The statements' own code: plan, predicates, expressions.
pub(super) const STATEMENT: usize = PROCEDURE + 5;

/// Bytes of a statement's own code.
const STATEMENT_BYTES: u32 = 12_000;

const COUNT: usize = STATEMENT + STATEMENTS;

/// Straight-line code.
const fn straight(name: &'static str, bytes: u32) -> Function {
    Function { name, instructions: bytes * 2 / 7, bytes }
}

const FUNCTIONS: [Function; COUNT] = {
    let mut all = [straight("statement", STATEMENT_BYTES); COUNT];
    all[RECEIVE] = straight("receive", 28_000);
    all[REPLY] = straight("reply", 14_000);
    all[BEGIN] = straight("begin", 7_000);
    all[COMMIT] = straight("commit", 10_500);
    all[SWITCH] = straight("switch", 2_100);
    all[PAGE] = straight("page", 2_450);
    all[UNPIN] = straight("unpin", 700);
    all[REPLACE] = straight("replace", 14_000);
    all[LOCK] = straight("lock", 3_150);
    all[UNLOCK] = straight("unlock", 1_750);
    all[LOG] = straight("log", 3_500);
    // A binary search loops; the rest of these are executed once.
    all[NODE] = Function { name: "node", instructions: 110, bytes: 210 };
    all[INSERT] = straight("insert", 2_100);
    all[SPLIT] = straight("split", 7_000);
    all[FETCH] = straight("fetch", 4_200);
    all[UPDATE] = straight("update", 3_500);
    all[ADD] = straight("add", 4_200);
    let mut kind = 0;
    while kind < 5 {
        all[PROCEDURE + kind] = straight("procedure", 21_000);
        kind += 1;
    }
    all
};

/// The engine's code.
pub(super) static FOOTPRINT: Footprint = Footprint {
    origin: "synthetic: branches and micro-operations of an instruction as the database's in \
             Keeton et al. 1998, tables 5 and 17; data references of table 12's mean, two reads \
             to a write (default); 550 KB of code as in Lo et al. 1998, in functions of our own \
             (default)",
    functions: &FUNCTIONS,
    mix: Mix {
        loads: 0.305,
        stores: 0.152,
        branches: 0.209,
        uops_per_instruction: 1.84,
        unpredictable: 0.1,
    },
    text_bytes: 2 << 20,
    own_bytes: 4096,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_as_large_as_it_says() {
        let bytes = FOOTPRINT.code_bytes();
        assert!((540_000..570_000).contains(&bytes), "{bytes}");
        assert!(FOOTPRINT.text_bytes > bytes);
        assert!(FOOTPRINT.functions.iter().all(|function| function.instructions > 0));
    }
}
