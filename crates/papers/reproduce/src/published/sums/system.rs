//! Tables 1, 5 to 9 and 18: branches, the bus, dirty misses, states of lines, and the method.

use super::{at, cpis, exact, instruction_share, mixed, said};
use crate::published::derived::{Check, Input, RecomputedFigure};
use crate::published::keeton;
use workahead_counters::cycles::{Value, ratio};

pub(super) fn all() -> Vec<RecomputedFigure> {
    let mut all = branches();
    all.extend(latencies());
    all.extend(dirty_misses());
    all.extend(states("Table 9", "E2.17"));
    all.extend(states("Table 18", "E2.18"));
    all.extend(store_hits());
    all.extend(method());
    all
}

/// Table 5: overall is the database's and the system's, rates by instructions and ratios by
/// branches.
fn branches() -> Vec<RecomputedFigure> {
    let cell = |row: &str, column: &str| at("Table 5", row, column);
    let inputs = |rows: &[&str]| {
        let cells = rows.iter().flat_map(|row| [cell(row, "DB"), cell(row, "OS")]);
        cpis(super::BASE).into_iter().chain(cells).collect::<Vec<Input>>()
    };
    let by_instructions =
        |v: &[f64]| -> Value { Ok(mixed(instruction_share(v[0], v[1], v[2])?, v[3], v[4])) };
    let by_branches = |v: &[f64]| -> Value {
        let share = instruction_share(v[0], v[1], v[2])?;
        let all = mixed(share, v[3], v[4]);
        ratio(&Ok(mixed(share, v[3] * v[5], v[4] * v[6])), &Ok(all), "branches")
    };
    const FREQUENCY: &str = "Branch frequency";
    let mut all = Vec::new();
    for row in [FREQUENCY, "Speculative exec. factor"] {
        let check = Check::new("E2.11", "database's and system's by instructions", inputs(&[row]));
        all.push(check.cell(cell(row, "Overall")).by(by_instructions));
    }
    for row in ["Branch misprediction ratio", "BTB miss ratio"] {
        let inputs = inputs(&[FREQUENCY, row]);
        let check = Check::new("E2.11", "database's and system's by branches", inputs)
            .cell(cell(row, "Overall"));
        let is_of_targets = row == "BTB miss ratio";
        let check = if is_of_targets {
            check.note("no mixture of 55.6 and 32.9 is 55.7: one of the three is of something else")
        } else {
            check
        };
        all.push(check.by(by_branches));
    }
    let rounded = [
        (FREQUENCY, "branch-share"),
        ("Branch misprediction ratio", "branch-misses"),
        ("Speculative exec. factor", "speculation"),
    ];
    all.extend(rounded.map(|(row, claim)| {
        Check::new("E2.11", row, vec![cell(row, "Overall")]).claim(claim).by(|v| Ok(v[0]))
    }));
    all
}

/// Tables 1, 6 and 7 beside the text's round figures.
fn latencies() -> Vec<RecomputedFigure> {
    let base = |row: &str| at("Table 1", row, "Base System");
    let speed = || exact(base("Processor speed"));
    let first = vec![base("Memory speed, first of 14-1-1-1"), speed(), base("System bus speed")];
    let cell = |table: &str, column: &str| vec![at(table, "1 MB", column)];
    let same = |v: &[f64]| Ok(v[0]);
    vec![
        Check::new(
            "S2.1",
            "lmbench's latency in cycles",
            vec![base("lmbench read latency"), speed()],
        )
        .by(|v| Ok(v[0] * v[1] / 1000.0)),
        Check::new("S2.1", "the bus's first transfer in cycles", first)
            .by(|v| Ok(v[0] * v[1] / v[2])),
        Check::new("E2.14", "utilisation, %", cell("Table 6", "4 P"))
            .claim("utilisation-4p")
            .by(same),
        Check::new("E2.15", "latency", cell("Table 7", "1 P")).claim("latency-1p").by(same),
        Check::new("E2.15", "latency", cell("Table 7", "4 P")).claim("latency-4p").by(same),
    ]
}

/// Table 8: what doubles the share of dirty misses.
fn dirty_misses() -> Vec<RecomputedFigure> {
    const ONE_PROCESSOR: &str = "nobody else can hold a line dirty with one processor: the paper \
        takes that count for another signal itself";
    let ratio_of = |from: Input, to: Input| {
        let says = format!("{} over {}", to.place, from.place);
        Check::new("E2.16", says, vec![to, from])
    };
    let over = |v: &[f64]| ratio(&Ok(v[0]), &Ok(v[1]), "dirty misses");
    let mut all = Vec::new();
    for column in ["1 P", "2 P", "4 P"] {
        for pair in super::SIZES.windows(2) {
            let cell = |size| at("Table 8", size, column);
            let check = ratio_of(cell(pair[0]), cell(pair[1]));
            all.push(check.claim("dirty-by-cache").by(over));
        }
    }
    for size in super::SIZES {
        let cell = |column| at("Table 8", size, column);
        let check = ratio_of(cell("1 P"), cell("2 P")).claim("dirty-by-processors");
        all.push(check.note(ONE_PROCESSOR).by(over));
        all.push(ratio_of(cell("2 P"), cell("4 P")).claim("dirty-by-processors").by(over));
    }
    all
}

/// Shares of states add up to a whole.
fn states(table: &str, row: &'static str) -> Vec<RecomputedFigure> {
    let rows = &keeton().table(table).expect("it is in the file").rows;
    let sum = |name: &str| {
        let inputs = ["M", "E", "S", "I"].map(|state| at(table, name, state)).to_vec();
        let check = Check::new(row, format!("{table}, {name}, all states, %"), inputs);
        check.whole().by(|v| Ok(v.iter().sum()))
    };
    rows.iter().map(|row| sum(&row.name)).collect()
}

/// Hits of the database's stores to modified lines.
fn store_hits() -> [RecomputedFigure; 3] {
    ["Store, 1 P", "Store, 2 P", "Store, 4 P"].map(|row| {
        let inputs = ["M", "E", "S", "I"].map(|state| at("Table 18", row, state)).to_vec();
        let says = format!("{row}: hits to modified lines, %");
        Check::new("E2.18", says, inputs)
            .claim("store-hits")
            .by(|v| Ok(100.0 * ratio(&Ok(v[0]), &Ok(v[0] + v[1] + v[2]), "hits")?))
    })
}

/// How many observations section 2.5 can have had.
fn method() -> Vec<RecomputedFigure> {
    let counts = |ids: &[&str]| ids.iter().map(|id| exact(said(id))).collect::<Vec<Input>>();
    let least = keeton().claim("observations").and_then(|claim| match claim.quantity()? {
        super::Quantity::Between(least, _) => Some((claim, least)),
        _ => None,
    });
    let (claim, least) = least.expect("it is in the file");
    let least = Input { place: claim.place.clone(), printed: least, is_exact: true };
    let mut kept = counts(&["runs"]);
    kept.push(least);
    vec![
        Check::new(
            "S2.4",
            "observations of a run that gives every event its turn",
            counts(&["window", "interval", "events"]),
        )
        .claim("observations")
        .by(|v| Ok(v[0] / v[1] / v[2])),
        Check::new("S2.5", "observations left of five runs with six each", kept)
            .claim("kept")
            .note("some runs must have given more than six")
            .by(|v| Ok(v[0] * v[1] - 2.0)),
    ]
}
