//! The cycles as if nothing overlapped, and how much does.
//!
//! Keeton et al. (1998, section 5.3, after Bhandarkar and Ding 1997): treat the core as if it did
//! one thing at a time, and charge every miss its whole penalty. The measured CPI over that sum
//! says what out-of-order execution hides: the lower, the more. On wide cores with several misses
//! in flight fixed penalties overcharge, so each says where it is from, and measured stalls belong
//! beside the result.

use serde::{Deserialize, Serialize};

use crate::unavailable::{self, Value, ratio};

/// Where a penalty is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Measured on this machine; how, e.g. `pointer chase, sibling idle`.
    Measured(String),
    /// Derived from events of the same run, e.g. `reads outstanding / reads`.
    Counted(String),
    /// Taken from somewhere else, e.g. `Keeton et al. 1998, Table 3`.
    Quoted(String),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Origin::Measured(how) => write!(f, "measured here: {how}"),
            Origin::Counted(how) => write!(f, "from counters: {how}"),
            Origin::Quoted(source) => write!(f, "quoted: {source}"),
        }
    }
}

/// One part of the sum, in cycles per instruction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Component {
    /// Its name: `L2 misses`.
    pub name: String,
    /// Its cycles per instruction.
    pub cpi: Value,
    /// The cycles that each event is charged, and where they are from; none for what is counted in
    /// cycles itself.
    pub penalty: Option<(f64, Origin)>,
}

impl Component {
    /// Events that are charged a penalty each, in cycles.
    pub fn of_events(
        name: &str,
        events_per_instruction: &Value,
        penalty_cycles: f64,
        origin: Origin,
    ) -> Component {
        let cpi = events_per_instruction.clone().and_then(|events| {
            let penalty = unavailable::sound("penalty", penalty_cycles)?;
            Ok(unavailable::sound(name, events)? * penalty)
        });
        Component { name: name.to_owned(), cpi, penalty: Some((penalty_cycles, origin)) }
    }

    /// A component counted in cycles per instruction: computation, resource stalls.
    pub fn of_cycles(name: &str, cpi: &Value) -> Component {
        let cpi = cpi.clone().and_then(|cpi| unavailable::sound(name, cpi));
        Component { name: name.to_owned(), cpi, penalty: None }
    }
}

/// The sum as if nothing overlapped.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NonOverlappedSum {
    /// Its parts: computation, misses by level, mispredicted branches, resource stalls, others.
    pub components: Vec<Component>,
}

impl NonOverlappedSum {
    /// Cycles per instruction, all parts together.
    ///
    /// # Errors
    /// If a part is unavailable: a sum without it would understate the machine.
    pub fn cpi(&self) -> Value {
        self.components.iter().try_fold(0.0, |sum, part| Ok(sum + part.cpi.clone()?))
    }

    /// Measured over non-overlapped: 1 if nothing is hidden. Above 1, penalties or parts are
    /// missing.
    ///
    /// # Errors
    /// If a part is unavailable, or the sum is zero.
    pub fn overlap(&self, measured_cpi: &Value) -> Value {
        ratio(measured_cpi, &self.cpi(), "non-overlapped CPI")
    }

    /// The sum that a measured CPI and its share of it imply: of a figure that prints only these.
    ///
    /// # Errors
    /// If an input is unavailable, or the share is zero.
    pub fn implied_cpi(measured_cpi: &Value, overlap: &Value) -> Value {
        ratio(measured_cpi, overlap, "measured over non-overlapped")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycles::missing;

    fn quoted() -> Origin {
        Origin::Quoted("Keeton et al. 1998, Table 3".to_owned())
    }

    fn base_system() -> NonOverlappedSum {
        NonOverlappedSum {
            components: vec![
                Component::of_cycles("computation", &Ok(1.0)),
                Component::of_cycles("resource stalls", &Ok(0.66)),
                Component::of_events("L2 misses", &Ok(0.008), 97.0, quoted()),
            ],
        }
    }

    #[test]
    fn figure_8_implies_its_bars() {
        for (cpi, share, bar) in [(3.86, 0.62, 6.23), (3.27, 0.67, 4.88), (2.90, 0.70, 4.14)] {
            let implied = NonOverlappedSum::implied_cpi(&Ok(cpi), &Ok(share)).unwrap();
            assert!((implied - bar).abs() < 0.005, "{implied} is not {bar}");
        }
        assert!(NonOverlappedSum::implied_cpi(&Ok(1.0), &Ok(0.0)).is_err());
    }

    #[test]
    fn parts_are_charged_in_full() {
        let sum = base_system();
        assert!((sum.cpi().unwrap() - (1.66 + 0.776)).abs() < 1e-12);
        assert!((sum.overlap(&Ok(1.218)).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(sum.overlap(&sum.cpi()), Ok(1.0), "nothing hidden");
        let said = sum.components[2].penalty.as_ref().unwrap().1.to_string();
        assert_eq!(said, "quoted: Keeton et al. 1998, Table 3");
    }

    #[test]
    fn a_part_not_counted_leaves_no_sum() {
        let mut sum = base_system();
        let reason = missing("ITLB misses", "no such event");
        let origin = Origin::Measured("page walk, sibling idle".to_owned());
        sum.components.push(Component::of_events("ITLB", &Err(reason.clone()), 30.0, origin));
        assert_eq!(sum.cpi(), Err(reason.clone()));
        assert_eq!(sum.overlap(&Ok(2.0)), Err(reason));
        assert!(Component::of_events("x", &Ok(0.1), f64::NAN, quoted()).cpi.is_err());
        assert!(NonOverlappedSum::default().overlap(&Ok(1.0)).is_err(), "no parts give no bound");
    }
}
