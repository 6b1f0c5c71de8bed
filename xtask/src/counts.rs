//! The sums of libtest's closing lines.

/// Passed, failed and ignored tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Counts {
    /// Reads `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; …`; no other line
    /// is a closing line.
    pub(crate) fn from_closing_line(line: &str) -> Option<Self> {
        let (_, figures) = line.trim().strip_prefix("test result: ")?.split_once(". ")?;
        let mut counts = Self::default();
        for part in figures.split("; ") {
            let Some((number, what)) = part.split_once(' ') else { continue };
            let Ok(number) = number.parse() else { continue };
            match what {
                "passed" => counts.passed = number,
                "failed" => counts.failed = number,
                "ignored" => counts.skipped = number,
                _ => {}
            }
        }
        Some(counts)
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// The closing form that any reader of test logs knows: `12 passed, 0 failed, 1 skipped`.
impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_read_and_added() {
        let ok = "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; \
                  3 filtered out; finished in 0.02s";
        let bad = "test result: FAILED. 2 passed; 5 failed; 0 ignored; 0 measured; 0 filtered out";
        let mut total = Counts::default();
        total.add(Counts::from_closing_line(ok).unwrap());
        total.add(Counts::from_closing_line(bad).unwrap());
        assert_eq!(total, Counts { passed: 14, failed: 5, skipped: 1 });
        assert_eq!(total.to_string(), "14 passed, 5 failed, 1 skipped");
    }

    #[test]
    fn other_lines_are_none() {
        for line in ["test walk::tests::one ... ok", "running 3 tests", "", "test result: "] {
            assert_eq!(Counts::from_closing_line(line), None, "{line}");
        }
    }
}
