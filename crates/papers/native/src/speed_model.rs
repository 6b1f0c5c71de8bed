//! How fast the main thread gets beside a helper, by the paper's model.
//!
//! Zhou, Cieslewicz, Ross, Shah: *Improving Database Performance on Simultaneous Multithreading
//! Processors*, VLDB 2005, §4.3. Two threads go round a work-ahead set of `d` cache lines. On the
//! one line where they meet, memory-order machine clears slow both (speeds `m'` and `h'`); on the
//! other `d - 1` they are free (`m` and `h`). Each part lasts as long as their relative speed makes
//! it, and the main thread's speed is the mean over that time:
//!
//! ```text
//! forward    s_f = (m'/(h'-m') + m(d-1)/(h-m)) / (1/(h'-m') + (d-1)/(h-m))
//! backward   s_b = (m'/(h'+m') + m(d-1)/(h+m)) / (1/(h'+m') + (d-1)/(h+m))
//! ```
//!
//! The paper does not say where `s_f` holds. Both of its weights are durations, so the thread that
//! is faster on free lines must also be faster where they meet; otherwise the leading thread falls
//! back, they stay together, and the formula gives nonsense (4.08 for a main thread that never
//! exceeds 1). Such speeds are refused.

/// Speeds of both threads, in cache lines of the set per second, or in any other unit all share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Speeds {
    /// The main thread's on lines of its own: `m`.
    pub(crate) main: f64,
    /// The main thread's on a line the helper is at: `m'`.
    pub(crate) main_meeting: f64,
    /// The helper's on lines of its own: `h`.
    pub(crate) helper: f64,
    /// The helper's on a line the main thread is at: `h'`.
    pub(crate) helper_meeting: f64,
}

/// The model says nothing about such speeds.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub(crate) enum SpeedError {
    /// Not a speed at all.
    #[error("the speed {name} is {value}: it must be a positive, finite number")]
    NotASpeed {
        /// Its letter in the paper.
        name: &'static str,
        /// The given value.
        value: f64,
    },
    /// A set without lines.
    #[error("a work-ahead set has at least one cache line")]
    NoLines,
    /// Neither thread gets away from the other.
    #[error(
        "main and helper fall into lock-step, at about {main_meeting} lines a second: \
         the forward model does not hold, let the helper go backward"
    )]
    LockStep {
        /// `m'`: what is left of the main thread's speed.
        main_meeting: f64,
    },
    /// They differ only where they meet, so once apart they stay apart.
    #[error(
        "main and helper are equally fast on lines of their own and never meet again: \
         the forward model does not hold, the speed is {main} lines a second"
    )]
    NeverMeet {
        /// `m`: the main thread's speed.
        main: f64,
    },
}

impl Speeds {
    /// The main thread's speed beside a helper that goes its way: the paper's `s_f`, over a set of
    /// `lines` cache lines (lines of the array itself, not references in it).
    ///
    /// # Errors
    /// For speeds that are none, and for those where the model does not hold: `h - m` and
    /// `h' - m'` must have the same sign.
    pub(crate) fn forward(&self, lines: usize) -> Result<f64, SpeedError> {
        self.check(lines)?;
        let apart = self.helper - self.main;
        let together = self.helper_meeting - self.main_meeting;
        // A product of tiny differences may round to zero, so their signs are compared.
        let one_sign = together != 0.0 && (apart > 0.0) == (together > 0.0);
        if apart == 0.0 && together != 0.0 {
            return Err(SpeedError::NeverMeet { main: self.main });
        }
        if !one_sign {
            return Err(SpeedError::LockStep { main_meeting: self.main_meeting });
        }
        Ok(self.mean(lines, 1.0 / together.abs(), 1.0 / apart.abs()))
    }

    /// The main thread's speed beside a helper that comes against it: the paper's `s_b`.
    ///
    /// # Errors
    /// For speeds that are none.
    pub(crate) fn backward(&self, lines: usize) -> Result<f64, SpeedError> {
        self.check(lines)?;
        let (apart, together) = (self.helper + self.main, self.helper_meeting + self.main_meeting);
        Ok(self.mean(lines, 1.0 / together, 1.0 / apart))
    }

    /// Mean speed over the time at the one line where they meet and the time at each of the others.
    fn mean(&self, lines: usize, meeting: f64, apart_each: f64) -> f64 {
        let apart = (lines - 1) as f64 * apart_each;
        // As shares: the times themselves may be infinitely long for nearly equal speeds.
        let share = if meeting.is_infinite() { 1.0 } else { 1.0 / (1.0 + apart / meeting) };
        share * self.main_meeting + (1.0 - share) * self.main
    }

    fn check(&self, lines: usize) -> Result<(), SpeedError> {
        let named = [
            ("m", self.main),
            ("m'", self.main_meeting),
            ("h", self.helper),
            ("h'", self.helper_meeting),
        ];
        for (name, value) in named {
            if !(value > 0.0 && value.is_finite()) {
                return Err(SpeedError::NotASpeed { name, value });
            }
        }
        if lines == 0 { Err(SpeedError::NoLines) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn speeds(main: f64, main_meeting: f64, helper: f64, helper_meeting: f64) -> Speeds {
        Speeds { main, main_meeting, helper, helper_meeting }
    }

    /// The formulas as the paper prints them.
    fn printed(s: Speeds, d: f64, sign: f64) -> f64 {
        let meeting = s.helper_meeting + sign * s.main_meeting;
        let apart = s.helper + sign * s.main;
        (s.main_meeting / meeting + s.main * (d - 1.0) / apart)
            / (1.0 / meeting + (d - 1.0) / apart)
    }

    /// Row A33 of the ledger: both worked out by hand.
    #[test]
    fn the_hand_values_come_out() {
        let s = speeds(1.0, 0.2, 1.5, 0.25);
        assert!((s.forward(64).unwrap() - 130.0 / 146.0).abs() < 1e-12);
        assert!((s.backward(64).unwrap() - 0.935_170_18).abs() < 1e-8);
    }

    #[test]
    fn opposite_signs_are_lock_step_where_the_formula_would_exceed_the_fastest() {
        let s = speeds(1.0, 0.2, 1.5, 0.19);
        assert!((printed(s, 64.0, -1.0) - 4.08).abs() < 0.01, "what the paper's formula gives");
        assert_eq!(s.forward(64), Err(SpeedError::LockStep { main_meeting: 0.2 }));
        assert!(s.backward(64).is_ok());
        assert!(s.forward(64).unwrap_err().to_string().contains("backward"));
        // The other way round: the main thread is faster when free, slower when meeting.
        assert!(speeds(1.5, 0.19, 1.0, 0.2).forward(64).is_err());
    }

    #[test]
    fn equal_speeds_are_told_apart() {
        let lock_step = Err(SpeedError::LockStep { main_meeting: 0.2 });
        assert_eq!(speeds(1.0, 0.2, 1.5, 0.2).forward(64), lock_step);
        assert_eq!(speeds(1.0, 0.2, 1.0, 0.2).forward(64), lock_step);
        let never = Err(SpeedError::NeverMeet { main: 1.0 });
        assert_eq!(speeds(1.0, 0.2, 1.0, 0.3).forward(64), never);
    }

    #[test]
    fn what_is_no_speed_is_refused_by_name() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, -0.0] {
            for place in 0..4 {
                let mut all = [1.0, 0.2, 1.5, 0.25];
                all[place] = bad;
                let [m, mm, h, hh] = all;
                for result in [speeds(m, mm, h, hh).forward(64), speeds(m, mm, h, hh).backward(64)]
                {
                    let name = ["m", "m'", "h", "h'"][place];
                    let Err(SpeedError::NotASpeed { name: named, .. }) = result else {
                        panic!("{name} = {bad} gave {result:?}");
                    };
                    assert_eq!(named, name);
                }
            }
        }
        assert_eq!(speeds(1.0, 0.2, 1.5, 0.25).backward(0), Err(SpeedError::NoLines));
    }

    #[test]
    fn near_lock_step_costs_the_forward_helper_all_and_the_backward_one_little() {
        let s = speeds(1.0, 0.2, 1.5, 0.2 + 1e-9);
        assert!(s.forward(1024).unwrap() < 0.2 + 1e-4);
        assert!(s.backward(1024).unwrap() > 0.99);
    }

    proptest! {
        #[test]
        fn where_it_holds_it_is_the_printed_formula_and_a_mean(
            all in prop::array::uniform4(0.01..10.0_f64),
            lines in 1..5000_usize,
        ) {
            let s = speeds(all[0], all[1], all[2], all[3]);
            let (low, high) = (s.main.min(s.main_meeting), s.main.max(s.main_meeting));
            let mut results = vec![(s.backward(lines).unwrap(), 1.0)];
            let one_sign = (s.helper > s.main) == (s.helper_meeting > s.main_meeting);
            match s.forward(lines) {
                Ok(speed) => {
                    prop_assert!(one_sign);
                    results.push((speed, -1.0));
                }
                Err(_) => prop_assert!(!one_sign),
            }
            for (speed, sign) in results {
                prop_assert!(low - 1e-9 <= speed && speed <= high + 1e-9, "{speed}");
                let printed = printed(s, lines as f64, sign);
                prop_assert!((speed - printed).abs() <= 1e-6 * speed, "{speed} {printed}");
            }
        }
    }
}
