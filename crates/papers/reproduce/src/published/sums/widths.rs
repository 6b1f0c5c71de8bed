//! Tables 15 to 17: decoding and retiring by width.

use super::{at, cpis, exact, percent, said};
use crate::published::derived::{Check, Input, Nature, RecomputedFigure};
use workahead_counters::cycles::{
    Profile, Reciprocals, Value, computation_cpi, computation_ucpi, ratio, speculative_factor,
    time_share,
};

/// Table, what is counted, ledger's row.
type Table = (&'static str, &'static str, &'static str);
const DECODE: Table = ("Table 15", "instruction decode", "E2.8");
const RETIRE: Table = ("Table 16", "instruction retire", "E2.9");
const UOPS: Table = ("Table 17", "µop retire", "E2.10");

/// Columns here, and what other tables call them.
const COLUMNS: [(&str, &str); 3] = [("Overall", "Overall"), ("Database", "DB"), ("OS", "OS")];

pub(super) fn all() -> Vec<RecomputedFigure> {
    let mut all = Vec::new();
    for (column, elsewhere) in COLUMNS {
        for table in [DECODE, RETIRE, UOPS] {
            all.extend(wholes(table, column));
            all.extend(shares(table, column));
        }
        all.extend(rates(column, elsewhere));
        all.extend(computation(column, elsewhere));
    }
    for table in [DECODE, RETIRE, UOPS] {
        all.extend(mixture(table));
    }
    all.extend(example());
    all.extend(text());
    all
}

fn cycles(table: Table, column: &str) -> Vec<Input> {
    let row = |width| format!("{width}-{}, % cycles", table.1);
    (0..4).map(|width| at(table.0, &row(width), column)).collect()
}

fn instructions(table: Table, column: &str) -> Vec<Input> {
    let row = |width| format!("{width}-{}, % inst.", table.1);
    (1..4).map(|width| at(table.0, &row(width), column)).collect()
}

fn profile(cycles: &[f64]) -> Result<Profile, workahead_counters::cycles::Unavailable> {
    Profile::new("the printed profile", cycles)
}

/// Shares add up to a whole.
fn wholes(table: Table, column: &str) -> [RecomputedFigure; 2] {
    let whole = |of: &str, inputs| {
        let says = format!("{}, {column}, all widths, % {of}", table.0);
        Check::new(table.2, says, inputs).whole().by(|v| Ok(v.iter().sum()))
    };
    [whole("cycles", cycles(table, column)), whole("inst.", instructions(table, column))]
}

/// Shares of instructions out of shares of cycles (A21).
fn shares(table: Table, column: &str) -> Vec<RecomputedFigure> {
    let printed = instructions(table, column).into_iter().enumerate();
    printed
        .map(|(index, printed)| {
            Check::new("A21", "out of the shares of cycles", cycles(table, column))
                .cell(printed)
                .by(|v| Ok(100.0 * profile(v)?.instruction_shares()?[index]))
        })
        .collect()
}

/// CPI, µCPI, speculation and µops per instruction out of the profiles (A21), against what other
/// counters gave.
fn rates(column: &str, elsewhere: &str) -> [RecomputedFigure; 4] {
    const SLOTS: &str = "the profile and the figure were counted in different intervals";
    let retired = || cycles(RETIRE, column);
    let with = |mut one: Vec<Input>, other: Vec<Input>| {
        one.extend(other);
        one
    };
    let check = |says: &str, inputs, printed| {
        let check = Check::new("A21", says, inputs).cell(printed);
        check.nature(Nature::Estimate).note(SLOTS)
    };
    let measured = |per: &str| at("Table 10", &format!("Measured, {per}"), elsewhere);
    [
        check("CPI out of the retire profile", retired(), measured("CPI"))
            .by(|v| profile(v)?.cpi()),
        check("µCPI out of the retire profile", cycles(UOPS, column), measured("CPµ"))
            .by(|v| profile(v)?.cpi()),
        check(
            "decoded over retired",
            with(cycles(DECODE, column), retired()),
            at("Table 5", "Speculative exec. factor", elsewhere),
        )
        .by(|v| speculative_factor(&profile(&v[..4])?, &profile(&v[4..])?)),
        check(
            "µops over instructions retired",
            with(cycles(UOPS, column), retired()),
            at("Table 17", "µops per macro-instruction", column),
        )
        .by(|v| ratio(&profile(&v[..4])?.per_cycle(), &profile(&v[4..])?.per_cycle(), "IPC")),
    ]
}

/// Computation µCPI out of the shares of µops (A18), with 0.33 and with a third.
fn computation(column: &str, elsewhere: &str) -> [RecomputedFigure; 2] {
    [(Reciprocals::Rounded, "0.33"), (Reciprocals::Exact, "1/3")].map(|(reciprocals, third)| {
        let says = format!("computation µCPI with {third}");
        let check = Check::new("A18", says, instructions(UOPS, column)).cell(at(
            "Table 10",
            "Computation, CPµ",
            elsewhere,
        ));
        let check = match reciprocals {
            Reciprocals::Rounded => check.note("the text says 0.33; with 1/3 the table fits"),
            Reciprocals::Exact => check,
        };
        check.by(|v| ucpi(v, reciprocals))
    })
}

fn ucpi(percents: &[f64], reciprocals: Reciprocals) -> Value {
    let shares: Vec<f64> = percents.iter().map(|percent| percent / 100.0).collect();
    computation_ucpi(&shares, reciprocals)
}

/// Overall cycles are the database's and the system's, by time.
fn mixture(table: Table) -> Vec<RecomputedFigure> {
    let columns = ["Overall", "Database", "OS"].map(|column| cycles(table, column));
    let [overall, database, system] = columns;
    let rows = overall.into_iter().zip(database.into_iter().zip(system));
    rows.map(|(overall, (database, system))| {
        let mut inputs = cpis(super::BASE);
        inputs.extend([database, system]);
        Check::new(table.2, "database's and system's by time", inputs)
            .cell(overall)
            .nature(Nature::Estimate)
            .by(|v| {
                let share = time_share(&Ok(v[0]), &Ok(v[1]), &Ok(v[2]))?;
                Ok(super::mixed(share, v[3], v[4]))
            })
    })
    .collect()
}

/// The example of sections 3.1 and 5.3: an example's figures are what they are, unrounded.
fn example() -> Vec<RecomputedFigure> {
    let shares = || {
        ["example-single", "example-double", "example-triple"].map(|id| exact(said(id))).to_vec()
    };
    let with = |uops| {
        let mut inputs = shares();
        inputs.push(uops);
        inputs
    };
    let cpi =
        |v: &[f64]| computation_cpi(&computation_ucpi(&v[..3], Reciprocals::Rounded), &Ok(v[3]));
    vec![
        Check::new("A18", "the example's computation µCPI", shares())
            .claim("example-ucpi")
            .nature(Nature::Identity)
            .by(|v| computation_ucpi(v, Reciprocals::Rounded)),
        Check::new("S2.8", "the example's computation CPI", with(exact(said("example-uops"))))
            .claim("example-cpi")
            .nature(Nature::Identity)
            .note("1.84 µops per instruction are the database's; with the overall 1.87 it fits")
            .by(cpi),
        Check::new(
            "S2.8",
            "the same with the overall µops per instruction",
            with(at("Table 17", "µops per macro-instruction", "Overall")),
        )
        .claim("example-cpi")
        .nature(Nature::Identity)
        .by(cpi),
    ]
}

/// The text's claims about the profiles.
fn text() -> Vec<RecomputedFigure> {
    let idle = [DECODE, RETIRE, UOPS].map(|table| {
        let none = cycles(table, "Overall").swap_remove(0);
        let says = format!("cycles of {} width 0, %", table.1);
        Check::new(table.2, says, vec![none]).claim("zero-cycles").by(|v| Ok(v[0]))
    });
    let wide = [(DECODE, "triple-decode"), (RETIRE, "triple-retire"), (UOPS, "triple-uops")];
    let triple = wide.map(|(table, claim)| {
        let widest = instructions(table, "Overall").swap_remove(2);
        Check::new(table.2, "at width 3, %", vec![widest]).claim(claim).by(|v| percent(v[0], 100.0))
    });
    idle.into_iter().chain(triple).collect()
}
