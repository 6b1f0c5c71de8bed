//! Tables 11 to 13: accesses and misses, their ratios, and how database and system mix.

use super::{SIZES, at, cpis, exact, instruction_share, mixed, percent, said};
use crate::published::derived::{Check, Nature, RecomputedFigure};

/// Table, ledger's row, whose.
const TABLES: [(&str, &str); 3] =
    [("Table 11", "E2.3"), ("Table 12", "E2.4"), ("Table 13", "E2.5")];

const FETCHES: &str = "Instruction fetches";
const DATA: &str = "Data references";
const L1I: &str = "L1 I-cache misses";
const L1D: &str = "L1 D-cache misses";
const L1D_RATIO: &str = "L1 D-cache miss ratio";
const L2I: &str = "L2 Inst.-related misses";
const L2D: &str = "L2 Data-related misses";
const L2: &str = "Overall L2 misses";
const L2_RATIO: &str = "Overall L2 miss ratio";

/// Misses, of what, ratio.
const RATIOS: [(&str, &[&str], &str); 5] = [
    (L1I, &[FETCHES], "L1 I-cache miss ratio"),
    (L1D, &[DATA], L1D_RATIO),
    (L2I, &[L1I], "L2 Inst.-related miss ratio"),
    (L2D, &[L1D], "L2 Data-related miss ratio"),
    (L2, &[L1I, L1D], L2_RATIO),
];

const TOO_FEW_REFERENCES: &str = "the ratios fit some 700 references per 1000 instructions: the \
    row of data references seems to count something else";
const LIKE_THE_DATABASES: &str = "11 is the database's value (Table 12); 13 would fit the printed \
    ratio, the mixture of Tables 12 and 13, and Table 8";

pub(super) fn all() -> Vec<RecomputedFigure> {
    let mut all = Vec::new();
    for (table, row) in TABLES {
        for size in SIZES {
            all.push(sum(table, row, size));
            all.extend(ratios(table, row, size));
        }
    }
    for size in SIZES {
        all.extend(mixture(size));
        all.push(by_dirty_misses(size));
    }
    all.extend(text());
    all.extend(to_memory());
    all
}

/// Misses of instructions and of data are all misses.
fn sum(table: &str, row: &'static str, size: &str) -> RecomputedFigure {
    let inputs = vec![at(table, L2I, size), at(table, L2D, size)];
    let check = Check::new(row, "instruction and data misses", inputs).cell(at(table, L2, size));
    noted(check, table, size).by(|v| Ok(v[0] + v[1]))
}

fn ratios(table: &str, row: &'static str, size: &str) -> Vec<RecomputedFigure> {
    let of = |(misses, of, ratio): (&str, &[&str], &str)| {
        let mut inputs = vec![at(table, misses, size)];
        inputs.extend(of.iter().map(|of| at(table, of, size)));
        let check = Check::new(row, format!("{misses} in % of {}", of.join(" and ")), inputs)
            .cell(at(table, ratio, size));
        let check = if ratio == L1D_RATIO { check.note(TOO_FEW_REFERENCES) } else { check };
        let check = if ratio == L2_RATIO { noted(check, table, size) } else { check };
        check.by(|v| percent(v[0], v[1..].iter().sum()))
    };
    RATIOS.map(of).into_iter().collect()
}

/// The one cell that nothing around it agrees with.
fn noted(check: Check, table: &str, size: &str) -> Check {
    if table == "Table 11" && size == "512 KB" { check.note(LIKE_THE_DATABASES) } else { check }
}

/// Overall rates are the database's and the system's, by instructions.
fn mixture(size: &str) -> Vec<RecomputedFigure> {
    let of = |event: &str| {
        let mut inputs = cpis(size);
        inputs.extend([at("Table 12", event, size), at("Table 13", event, size)]);
        let check = Check::new("E2.3", "database's and system's by instructions", inputs)
            .cell(at("Table 11", event, size));
        let check = if event == L2 { noted(check, "Table 11", size) } else { check };
        check.by(|v| Ok(mixed(instruction_share(v[0], v[1], v[2])?, v[3], v[4])))
    };
    [FETCHES, DATA, L1I, L1D, "ITLB misses", L2I, L2D, L2].map(of).into_iter().collect()
}

/// L2 misses per 1000 instructions out of Table 8: dirty misses of five seconds on four processors,
/// their share, and the instructions of that time.
fn by_dirty_misses(size: &str) -> RecomputedFigure {
    let inputs = vec![
        at("Table 8", &format!("{size}, misses"), "4 P"),
        at("Table 8", size, "4 P"),
        at("Table 14", "Overall: Measured CPI", size),
        exact(at("Table 1", "Processor speed", "Base System")),
        exact(at("Table 1", "Number of processors", "Base System")),
        exact(said("interval")),
    ];
    let check = Check::new("E2.16", "L2 misses per 1000 instructions by Table 8", inputs)
        .cell(at("Table 11", L2, size))
        .nature(Nature::Estimate);
    noted(check, "Table 11", size).by(|v| {
        // Both in millions.
        let (misses, instructions) = (v[0] / (v[1] / 100.0), v[3] * v[4] * v[5] / v[2]);
        Ok(1000.0 * misses / instructions)
    })
}

/// The text's claims about Table 11.
fn text() -> Vec<RecomputedFigure> {
    const IT_IS_PER_1000: &str = "the table's figures are per 1000 instructions";
    let ratio = |size: &str| at("Table 11", L2_RATIO, size);
    let less = |v: &[f64]| percent(v[0] - v[1], v[0]);
    let per_instruction = |misses: &str, claim: &str| {
        Check::new("E2.3", "misses per instruction", vec![at("Table 11", misses, super::BASE)])
            .claim(claim)
            .note(IT_IS_PER_1000)
            .by(|v| Ok(v[0] / 1000.0))
    };
    vec![
        Check::new("E2.3", "L2 miss ratio, % less", vec![ratio("256 KB"), ratio("512 KB")])
            .claim("l2-ratio-512")
            .note("from 16 to 11 would be 31 % less: 11 is the count, 9 the ratio")
            .by(less),
        Check::new("E2.3", "L2 miss ratio, % less", vec![ratio("512 KB"), ratio("1 MB")])
            .claim("l2-ratio-1024")
            .by(less),
        per_instruction(L1I, "l1i-misses"),
        per_instruction(L1D, "l1d-misses"),
    ]
}

/// The share of accesses that reach memory, by the references printed and by those that the
/// printed ratios imply.
fn to_memory() -> Vec<RecomputedFigure> {
    let mut all = Vec::new();
    for (table, row, claim) in
        [("Table 12", "E2.4", "db-to-memory"), ("Table 13", "E2.5", "os-to-memory")]
    {
        let cell = |event: &str| at(table, event, super::BASE);
        all.push(
            Check::new(
                row,
                "accesses that reach memory, %",
                [L2, FETCHES, DATA].map(cell).to_vec(),
            )
            .claim(claim)
            .note("see the next: with the references that the ratios imply it fits")
            .by(|v| percent(v[0], v[1] + v[2])),
        );
        let inputs = [L2, FETCHES, L1D, L1D_RATIO].map(cell).to_vec();
        all.push(
            Check::new(row, "the same by data references out of the L1D ratio, %", inputs)
                .claim(claim)
                .by(|v| percent(v[0], v[1] + v[2] / (v[3] / 100.0))),
        );
        let says = format!("{table}: data references that the L1D ratio implies");
        let implied = Check::new(row, says, [L1D, L1D_RATIO].map(cell).to_vec());
        all.push(implied.by(|v| Ok(v[0] / (v[1] / 100.0))));
    }
    all
}
