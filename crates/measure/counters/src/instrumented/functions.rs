//! The functions that did the most, small enough to be kept with every sample.

use serde::{Deserialize, Serialize};

use super::{FunctionCounts, ProgramCounts, Quantity, Tool};

/// A function is kept when it has this share of the instructions, or of misses that matter.
const SHARE_MIN: f64 = 0.005;
/// Misses matter from this many an instruction on: a share of next to none says nothing.
const MISSES_MIN: f64 = 0.001;
/// Functions kept at most.
const FUNCTIONS_MAX: usize = 60;

/// The functions of a program, those with the most instructions first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Functions {
    /// The tool that counted.
    pub tool: Tool,
    /// Of the whole program.
    pub totals: Counts,
    /// Every function with at least 0.5 % of the instructions, or of misses of which there are one
    /// in a thousand instructions at least; 60 at most.
    pub rows: Vec<Function>,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Function {
    /// Its name; code without symbols is one function: `???`, or an address.
    pub name: String,
    /// The program or library that it is in, without folders, where the tool knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Of the function alone.
    pub own: Counts,
    /// Its instructions and those of all that it called; `None` where calls are not followed.
    /// Functions that call each other in a circle are counted again with every round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_with_callees: Option<i64>,
}

/// Counts kept of a function. Below zero where the start of the program, which was taken away, did
/// more of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Instructions executed.
    pub instructions: i64,
    /// Fetches of instructions that miss the first level.
    pub l1i_misses: i64,
    /// Loads and stores that miss the first level.
    pub l1d_misses: i64,
    /// Accesses that reach memory.
    pub last_level_misses: i64,
}

impl Counts {
    fn all(self) -> [i64; 4] {
        [self.instructions, self.l1i_misses, self.l1d_misses, self.last_level_misses]
    }

    /// Whether it has this share of any count that matters.
    fn has(self, share: f64, totals: Self) -> bool {
        let matters = |whole: i64| whole as f64 >= MISSES_MIN * totals.instructions as f64;
        let mut pairs = self.all().into_iter().zip(totals.all());
        pairs.any(|(own, whole)| own > 0 && matters(whole) && own as f64 >= share * whole as f64)
    }
}

impl ProgramCounts {
    /// The functions that did the most; `None` when caches were not modelled.
    #[must_use]
    pub fn largest_functions(&self) -> Option<Functions> {
        let quantities = [
            Quantity::Instructions,
            Quantity::L1iMisses,
            Quantity::L1dMisses,
            Quantity::LastLevelMisses,
        ];
        let places: Option<Vec<Vec<usize>>> =
            quantities.into_iter().map(|quantity| self.places(quantity)).collect();
        let places = places?;
        let counts = |of: &[i64]| {
            let sum = |at: &Vec<usize>| at.iter().filter_map(|&at| of.get(at)).sum();
            let [instructions, l1i_misses, l1d_misses, last_level_misses] =
                [&places[0], &places[1], &places[2], &places[3]].map(sum);
            Counts { instructions, l1i_misses, l1d_misses, last_level_misses }
        };
        let totals = counts(&self.totals);
        let row = |one: &FunctionCounts| Function {
            name: one.name.clone(),
            module: one.module.as_deref().map(without_folders),
            own: counts(&one.counts),
            instructions_with_callees: one.inclusive.as_deref().map(|all| counts(all).instructions),
        };
        let rows = self.functions.iter().map(row);
        let large = rows.filter(|row| row.own.has(SHARE_MIN, totals)).take(FUNCTIONS_MAX);
        Some(Functions { tool: self.tool, totals, rows: large.collect() })
    }
}

fn without_folders(path: &str) -> String {
    path.rsplit('/').next().unwrap_or(path).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, counts: [i64; 7]) -> FunctionCounts {
        let module = Some(format!("/usr/lib/lib{name}.so"));
        let inclusive = Some(counts.map(|count| 2 * count).to_vec());
        FunctionCounts {
            name: name.to_owned(),
            module,
            file: None,
            counts: counts.to_vec(),
            inclusive,
        }
    }

    fn counted(functions: Vec<FunctionCounts>) -> ProgramCounts {
        let events = ["Ir", "I1mr", "D1mr", "D1mw", "ILmr", "DLmr", "DLmw"];
        let total = |at: usize| functions.iter().map(|one| one.counts[at]).sum();
        ProgramCounts {
            tool: Tool::Callgrind,
            geometry: None,
            command: String::new(),
            processes: 1,
            events: events.map(str::to_owned).to_vec(),
            totals: (0..events.len()).map(total).collect(),
            functions,
        }
    }

    #[test]
    fn functions_with_a_share_of_anything_are_kept() {
        let all = counted(vec![
            function("scan", [9000, 1, 5, 5, 0, 1, 2]),
            function("probe", [20, 0, 80, 0, 1, 40, 0]),
            function("hardly", [30, 3, 0, 0, 0, 0, 0]),
            function("start", [-10, 0, -1, 0, 0, 0, 0]),
        ]);
        let functions = all.largest_functions().unwrap();
        let names: Vec<&str> = functions.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["scan", "probe"]);
        let probe = &functions.rows[1];
        assert_eq!(probe.own.all(), [20, 0, 80, 41]);
        assert_eq!(probe.instructions_with_callees, Some(40));
        assert_eq!(probe.module.as_deref(), Some("libprobe.so"));
        assert_eq!(functions.totals.all(), [9040, 4, 89, 44]);
    }

    #[test]
    fn without_a_model_of_caches_there_are_none() {
        let mut bare = counted(vec![function("a", [1; 7])]);
        bare.events.truncate(1);
        bare.totals.truncate(1);
        assert_eq!(bare.largest_functions(), None);
    }
}
