//! Counts of a program, by function and in total.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Error, Geometry, Tool};

/// The counts of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramCounts {
    /// The tool that counted.
    pub tool: Tool,
    /// The caches of the model; `None` where the tool did not write them all down.
    pub geometry: Option<Geometry>,
    /// The command line of the first process.
    pub command: String,
    /// Number of processes counted.
    pub processes: usize,
    /// The tool's names of the events: `Ir`, `D1mr`…
    pub events: Vec<String>,
    /// One per event: the sum over the functions.
    pub totals: Vec<i64>,
    /// Functions, largest in the first event first.
    pub functions: Vec<FunctionCounts>,
}

/// The counts of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCounts {
    /// Its name; code without symbols is one function: `???`, or an address.
    pub name: String,
    /// The program or library that it is in; only callgrind knows.
    pub module: Option<String>,
    /// The source file: where code of others was inlined, the one that counted most; `None` when
    /// unknown.
    pub file: Option<String>,
    /// One per event, of the function alone. Negative only after [`ProgramCounts::minus`].
    pub counts: Vec<i64>,
    /// One per event, with all that it called; `None` for cachegrind, which follows no calls.
    /// Functions that call each other in a circle are counted again with every round.
    pub inclusive: Option<Vec<i64>>,
}

impl FunctionCounts {
    fn key(&self) -> (Option<&str>, &str) {
        (self.module.as_deref(), &self.name)
    }
}

impl ProgramCounts {
    /// These counts without those of another run: of the same program on no input, which leaves
    /// its start and end out. A function may then be below zero: it did more there.
    ///
    /// # Errors
    /// If another tool or other caches counted, or the other run executed more instructions.
    pub fn minus(&self, other: &Self) -> Result<Self, Error> {
        if self.tool != other.tool || self.geometry != other.geometry {
            return Err(Error::Unlike("another tool or other caches counted them".to_owned()));
        }
        let difference = self.combined(other, i64::saturating_sub)?;
        match (self.totals.first(), other.totals.first()) {
            (Some(here), Some(there)) if here < there => Err(Error::Unlike(format!(
                "{} counted more: {there} {} against {here}",
                other.command,
                self.events.first().map_or("", String::as_str)
            ))),
            _ => Ok(difference),
        }
    }

    /// These counts and those of another process of the same run.
    pub(super) fn plus(&self, other: &Self) -> Result<Self, Error> {
        let sum = self.combined(other, i64::saturating_add)?;
        Ok(Self { processes: self.processes + other.processes, ..sum })
    }

    /// Saturating, because counts stay below 2^63 by far: at 10^9 a second for 292 years.
    fn combined(&self, other: &Self, with: fn(i64, i64) -> i64) -> Result<Self, Error> {
        if self.events != other.events {
            return Err(Error::Unlike("they are counts of other events".to_owned()));
        }
        let add = |to: &mut Vec<i64>, from: &[i64]| {
            to.iter_mut().zip(from).for_each(|(to, from)| *to = with(*to, *from));
        };
        let mut sum = self.clone();
        add(&mut sum.totals, &other.totals);
        let places: HashMap<_, _> =
            self.functions.iter().enumerate().map(|(at, one)| (one.key(), at)).collect();
        for theirs in &other.functions {
            let at = places.get(&theirs.key()).copied().unwrap_or_else(|| {
                let none = vec![0; self.events.len()];
                let inclusive = theirs.inclusive.as_ref().map(|_| none.clone());
                sum.functions.push(FunctionCounts { counts: none, inclusive, ..theirs.clone() });
                sum.functions.len() - 1
            });
            let ours = &mut sum.functions[at];
            add(&mut ours.counts, &theirs.counts);
            match (&mut ours.inclusive, &theirs.inclusive) {
                (Some(ours), Some(theirs)) => add(ours, theirs),
                (ours, _) => *ours = None,
            }
        }
        sort(&mut sum.functions);
        Ok(sum)
    }
}

/// By the first event, which is that of instructions; then by name, so that two runs agree.
pub(super) fn sort(functions: &mut [FunctionCounts]) {
    functions.sort_by(|a, b| {
        let most = b.counts.first().cmp(&a.counts.first());
        most.then_with(|| a.key().cmp(&b.key()))
    });
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Counts of functions `a`, `b`… that have these instructions and read misses.
    pub(in crate::instrumented) fn counted(of: &[(&str, [i64; 2])]) -> ProgramCounts {
        let functions = of.iter().map(|(name, counts)| FunctionCounts {
            name: (*name).to_owned(),
            module: None,
            file: None,
            counts: counts.to_vec(),
            inclusive: None,
        });
        let mut functions: Vec<_> = functions.collect();
        sort(&mut functions);
        let total = |event: usize| of.iter().map(|(_, counts)| counts[event]).sum();
        ProgramCounts {
            tool: Tool::Cachegrind,
            geometry: None,
            command: "program".to_owned(),
            processes: 1,
            events: vec!["Ir".to_owned(), "D1mr".to_owned()],
            totals: vec![total(0), total(1)],
            functions,
        }
    }

    #[test]
    fn a_start_is_taken_away_function_by_function() {
        let run = counted(&[("start", [90, 9]), ("work", [1000, 50])]);
        let empty = counted(&[("start", [100, 9]), ("leave", [10, 1])]);
        let rest = run.minus(&empty).unwrap();
        let expected = counted(&[("start", [-10, 0]), ("work", [1000, 50]), ("leave", [-10, -1])]);
        assert_eq!(rest, expected);
    }

    #[test]
    fn only_like_is_taken_from_like() {
        let (small, large) = (counted(&[("a", [10, 1])]), counted(&[("a", [11, 1])]));
        let error = small.minus(&large).unwrap_err().to_string();
        assert!(error.contains("11 Ir against 10"), "{error}");
        let mut other = small.clone();
        other.events.pop();
        assert!(matches!(large.minus(&other), Err(Error::Unlike(_))));
        let other = ProgramCounts { tool: Tool::Callgrind, ..small };
        assert!(matches!(large.minus(&other), Err(Error::Unlike(_))));
    }

    proptest! {
        /// Added counts are taken away again; and totals stay the sums of the functions.
        #[test]
        fn minus_undoes_plus(
            ours in prop::collection::btree_map("[a-e]", [0i64..1000, 0i64..1000], 0..5),
            theirs in prop::collection::btree_map("[c-g]", [0i64..1000, 0i64..1000], 0..5),
        ) {
            let of = |map: &std::collections::BTreeMap<String, [i64; 2]>| {
                counted(&map.iter().map(|(name, counts)| (&**name, *counts)).collect::<Vec<_>>())
            };
            let (ours, theirs) = (of(&ours), of(&theirs));
            let sum = ours.plus(&theirs).unwrap();
            prop_assert_eq!(sum.processes, 2);
            for event in 0..2 {
                let functions = sum.functions.iter().map(|one| one.counts[event]);
                prop_assert_eq!(functions.sum::<i64>(), sum.totals[event]);
            }
            let mut rest = sum.minus(&theirs).unwrap();
            prop_assert_eq!(&rest.totals, &ours.totals);
            rest.functions.retain(|one| ours.functions.iter().any(|own| own.name == one.name));
            prop_assert_eq!(rest.functions, ours.functions);
        }
    }
}
