//! Tables 10, 14 and 4, figures 2 and 3: CPI and its parts.

use super::{SIZES, at, cpis, instruction_share, mixed, percent, said};
use crate::published::derived::{Check, Input, Nature, RecomputedFigure};
use crate::published::printed_figure::PrintedFigure;
use workahead_counters::cycles::{Breakdown, Value, mix_by_time, ratio, time_share};

const COLUMNS: [&str; 3] = ["DB", "OS", "Overall"];
const PARTS: [&str; 3] = ["Resource stalls", "Instruction-related stalls", "Computation"];

pub(super) fn all() -> Vec<RecomputedFigure> {
    let mut all = Vec::new();
    for column in COLUMNS {
        all.extend(decomposition(column));
        all.extend(conversion(column));
        all.extend(stalls(column));
    }
    for size in SIZES {
        all.extend(errors(size));
        all.extend(mixture(size));
        all.push(time(size));
    }
    all.extend(mixture_of_uops());
    all.extend(errors_of_table_4());
    all.extend(mixture_by_time());
    all.extend(same_in_both());
    all.extend(gains());
    all.extend(floors());
    all
}

fn breakdown(values: &[f64]) -> Breakdown {
    Breakdown { resource: Ok(values[0]), instruction: Ok(values[1]), computation: Ok(values[2]) }
}

fn parts(column: &str, per: &str) -> Vec<Input> {
    PARTS.map(|part| at("Table 10", &format!("{part}, {per}"), column)).to_vec()
}

/// The parts' sum (A17), per µop and per instruction.
fn decomposition(column: &str) -> Vec<RecomputedFigure> {
    let of = |per: &str, row| {
        Check::new(row, "sum of the parts", parts(column, per))
            .cell(at("Table 10", &format!("Computed, {per}"), column))
            .by(|values| breakdown(values).computed())
    };
    vec![of("CPµ", "E2.1"), of("CPI", "E2.2")]
}

/// Per µop times µops per instruction is per instruction.
fn conversion(column: &str) -> Vec<RecomputedFigure> {
    let of_profile = if column == "DB" { "Database" } else { column };
    let uops = at("Table 17", "µops per macro-instruction", of_profile);
    let rows = PARTS.into_iter().chain(["Computed", "Measured"]);
    rows.map(|part| {
        let per_uop = at("Table 10", &format!("{part}, CPµ"), column);
        Check::new("E2.2", "per µop times µops per instruction", vec![per_uop, uops.clone()])
            .cell(at("Table 10", &format!("{part}, CPI"), column))
            .by(|values| Ok(values[0] * values[1]))
    })
    .collect()
}

/// The share of stalls that the text gives, of the measured cycles.
fn stalls(column: &str) -> Vec<RecomputedFigure> {
    let share = |values: &[f64]| {
        let parts =
            Breakdown { resource: Ok(values[0]), instruction: Ok(values[1]), computation: Ok(0.0) };
        Ok(100.0 * parts.stalled_share(&Ok(values[2]))?)
    };
    let inputs = |per: &str| {
        let rows = [PARTS[0], PARTS[1], "Measured"];
        rows.map(|row| at("Table 10", &format!("{row}, {per}"), column)).to_vec()
    };
    let mut found = vec![
        Check::new("E2.1", "share of stalls", inputs("CPµ"))
            .cell(at("Figure 2", "Stalls", column))
            .by(share),
    ];
    if column == "Overall" {
        let of_cpi = Check::new("E2.2", "share of stalls", inputs("CPI"));
        found.push(of_cpi.claim("stalls-conclusion").by(share));
    }
    found
}

/// How far the parts' sum is from the measured CPI (A17), and what the caption of Table 10 says of
/// it.
fn errors(size: &str) -> Vec<RecomputedFigure> {
    let inputs = |section: &str| {
        let rows = PARTS.into_iter().chain(["Measured CPI"]);
        rows.map(|row| at("Table 14", &format!("{section}: {row}"), size)).collect::<Vec<_>>()
    };
    let error = |values: &[f64]| Ok(100.0 * breakdown(values).error(&Ok(values[3]))?);
    let says = |section: &str| format!("{section}, {size}: computed against measured CPI, %");
    let signed = ["Database", "OS", "Overall"].map(|section| {
        let check = Check::new("A17", says(section), inputs(section));
        check.nature(Nature::Estimate).by(error)
    });
    let claimed_of = |section: &str, claim: &str| {
        let says = format!("{section}, {size}: size of that error, %");
        Check::new("S2.7", says, inputs(section)).claim(claim)
    };
    let size_of_error = |values: &[f64]| Ok(error(values)?.abs());
    let claimed = [
        claimed_of("Database", "error-db")
            .note("\"within 3 to 5 %\" may mean \"at most 5 %\": then it holds")
            .by(size_of_error),
        claimed_of("OS", "error-os").by(size_of_error),
    ];
    signed.into_iter().chain(claimed).collect()
}

fn errors_of_table_4() -> [RecomputedFigure; 2] {
    ["1 bus req.", "<= 4 bus req."].map(|column| {
        let rows =
            ["Resource Stall CPI", "Instruction Stall CPI", "Computation CPI", "Measured CPI"];
        let inputs = rows.map(|row| at("Table 4", row, column)).to_vec();
        let says = format!("{column}: computed against measured CPI, %");
        let check = Check::new("E2.7", says, inputs).nature(Nature::Estimate);
        check.by(|values| Ok(100.0 * breakdown(values).error(&Ok(values[3]))?))
    })
}

/// Overall parts are the database's and the system's, by instructions.
fn mixture(size: &str) -> Vec<RecomputedFigure> {
    let of = |part: &str| {
        let of_section = |section: &str| at("Table 14", &format!("{section}: {part}"), size);
        let mut inputs = cpis(size);
        inputs.extend([of_section("Database"), of_section("OS")]);
        Check::new("E2.6", "database's and system's by instructions", inputs)
            .cell(of_section("Overall"))
            .by(|v| Ok(mixed(instruction_share(v[0], v[1], v[2])?, v[3], v[4])))
    };
    PARTS.map(of).into_iter().collect()
}

/// The same per µop, by µops; and µops per instruction, by instructions.
fn mixture_of_uops() -> Vec<RecomputedFigure> {
    let row = |row: &str, column: &str| at("Table 10", row, column);
    let by_uops = PARTS.map(|part| {
        let part = format!("{part}, CPµ");
        let mut inputs = ["Overall", "DB", "OS"].map(|c| row("Measured, CPµ", c)).to_vec();
        inputs.extend([row(&part, "DB"), row(&part, "OS")]);
        Check::new("E2.1", "database's and system's by µops", inputs)
            .cell(row(&part, "Overall"))
            .by(|v| Ok(mixed(instruction_share(v[0], v[1], v[2])?, v[3], v[4])))
    });
    let uops = |column: &str| at("Table 17", "µops per macro-instruction", column);
    let mut inputs = cpis(super::BASE);
    inputs.extend([uops("Database"), uops("OS")]);
    let by_instructions = Check::new("E2.10", "database's and system's by instructions", inputs)
        .cell(uops("Overall"))
        .by(|v| Ok(mixed(instruction_share(v[0], v[1], v[2])?, v[3], v[4])));
    by_uops.into_iter().chain([by_instructions]).collect()
}

/// The share of cycles in the database that makes of both CPIs the overall one.
fn time(size: &str) -> RecomputedFigure {
    let says = format!("{size}: share of cycles in the database, %");
    let check = Check::new("E2.1", says, cpis(size));
    let check = if size == super::BASE { check.claim("db-time") } else { check };
    check.by(share_of_time)
}

fn share_of_time(values: &[f64]) -> Value {
    Ok(100.0 * time_share(&Ok(values[0]), &Ok(values[1]), &Ok(values[2]))?)
}

/// Overall CPI out of both by time (A20), and the times the text gives by other ways.
fn mixture_by_time() -> Vec<RecomputedFigure> {
    let middle = PrintedFigure { value: 0.78, decimals: 2 };
    let place = "section 3.1, the middle of 76 to 80 %".to_owned();
    let measured = |column: &str| at("Table 10", "Measured, CPI", column);
    let middle = Input { place, printed: middle, is_exact: false };
    let mix = Check::new("A20", "CPIs mixed by time", vec![middle, measured("DB"), measured("OS")])
        .cell(measured("Overall"))
        .by(|v| mix_by_time(&Ok(v[0]), &Ok(v[1]), &Ok(v[2])));
    let per_uop = ["Overall", "DB", "OS"].map(|c| at("Table 10", "Measured, CPµ", c)).to_vec();
    let from_ucpi = Check::new("E2.1", "share of cycles in the database by µCPI, %", per_uop)
        .claim("db-time")
        .by(share_of_time);
    let concluded = Check::new("E2.2", "share of cycles in the database, %", cpis(super::BASE))
        .claim("db-time-conclusion")
        .by(share_of_time);
    vec![mix, from_ucpi, concluded]
}

/// A figure that is printed twice is the same in both places.
fn same_in_both() -> Vec<RecomputedFigure> {
    let mut same = Vec::new();
    let mut of = |row, one: Input, other: Input| {
        let check = Check::new(row, format!("{} again", one.place), vec![one]).cell(other);
        same.push(check.by(|values| Ok(values[0])));
    };
    for (column, section) in [("DB", "Database"), ("OS", "OS"), ("Overall", "Overall")] {
        for part in PARTS {
            let in_10 = at("Table 10", &format!("{part}, CPI"), column);
            of("E2.6", in_10, at("Table 14", &format!("{section}: {part}"), super::BASE));
        }
        let cpi = at("Table 10", "Measured, CPI", column);
        of("E2.6", cpi.clone(), at("Table 14", &format!("{section}: Measured CPI"), super::BASE));
        of("E2.2", cpi, at("Figure 3", "Measured CPI", column));
        let ucpi = at("Table 10", "Measured, CPµ", column);
        of("E2.1", ucpi, at("Figure 2", "Measured µCPI", column));
    }
    let latency = at("Table 4", "Average memory latency", "<= 4 bus req.");
    of("E2.15", latency, at("Table 7", "256 KB", "1 P"));
    same
}

/// The gains of larger caches, in CPI and in throughput.
fn gains() -> Vec<RecomputedFigure> {
    const THROUGHPUT: &str = "Relative transaction throughput";
    let cpi = |size: &str| at("Table 14", "Overall: Measured CPI", size);
    let throughput = |size: &str| at("Table 14", THROUGHPUT, size);
    let less = |v: &[f64]| percent(v[0] - v[1], v[0]);
    let more = |v: &[f64]| percent(v[1] - v[0], v[0]);
    // The throughput of 256 KB is the unit.
    let unit = || super::exact(throughput("256 KB"));
    let check = |says, inputs| Check::new("E2.6", says, inputs);
    let benefit = |v: &[f64]| ratio(&Ok(v[2] - v[1]), &Ok(v[1] - v[0]), "the first benefit");
    vec![
        check("CPI, % less", vec![cpi("256 KB"), cpi("512 KB")]).claim("cpi-512").by(less),
        check("CPI, % less", vec![cpi("256 KB"), cpi("1 MB")]).claim("cpi-1024").by(less),
        check("throughput, % more", vec![unit(), throughput("512 KB")])
            .claim("throughput-512")
            .by(more),
        check("throughput, % more", vec![unit(), throughput("1 MB")])
            .claim("throughput-1024")
            .by(more),
        check("cycles per instruction saved, second over first", SIZES.map(cpi).to_vec())
            .claim("half-benefit")
            .by(benefit),
        check(
            "throughput gained, second over first",
            vec![unit(), throughput("512 KB"), throughput("1 MB")],
        )
        .claim("half-benefit")
        .by(benefit),
    ]
}

/// How far all is from the least that a µop can take.
fn floors() -> Vec<RecomputedFigure> {
    let ucpi = |column: &str| at("Table 10", "Measured, CPµ", column);
    let over = |v: &[f64]| ratio(&Ok(v[0]), &Ok(v[1]), "the floor");
    let check = |says, column| Check::new("E2.1", says, vec![ucpi(column), said("floor")]);
    vec![
        check("database's µCPI over the floor", "DB").claim("floor-multiple").by(over),
        check("system's µCPI over the floor", "OS").claim("floor-multiple").by(over),
        check("overall µCPI over the floor", "Overall").claim("floor-multiple-overall").by(over),
        Check::new("E2.1", "system's µCPI over the database's", vec![ucpi("OS"), ucpi("DB")])
            .claim("os-over-db")
            .by(over),
    ]
}
