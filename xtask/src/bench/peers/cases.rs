//! The data sets, and how much faster than the best peer we mean to be on each.

/// A join of two generated inputs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) build_rows: usize,
    pub(crate) probe_rows: usize,
    /// Words of `bench/peers/generate.py` beyond the sizes.
    pub(crate) words: Vec<&'static str>,
    /// Times as fast as the best peer, at least.
    pub(crate) target: Option<f64>,
}

const MI: usize = 1_000_000;

/// All of them, as in the issue that set the targets.
pub(crate) fn all() -> Vec<Case> {
    let case = |name, [build, probe]: [usize; 2], words: &[&'static str], target| Case {
        name,
        build_rows: build * MI,
        probe_rows: probe * MI,
        words: words.to_vec(),
        target: Some(target),
    };
    let int = ["--keys", "int"];
    let with = |more: &[&'static str]| [&int, more].concat();
    vec![
        case("2M x 16M, all match", [2, 16], &int, 3.0),
        case("2M x 16M, 10 % match", [2, 16], &with(&["--hit-rate", "0.1"]), 1.8),
        case("2M x 16M, Zipf(1) probe keys", [2, 16], &with(&["--zipf"]), 3.5),
        case("16M x 64M, all match", [16, 64], &int, 4.0),
        case("2M x 16M, two int keys", [2, 16], &["--keys", "two"], 2.0),
        case("2M x 16M, 12-byte string key", [2, 16], &["--keys", "text"], 2.0),
        case("1M with 16 rows per key x 4M", [1, 4], &with(&["--duplicates", "16"]), 2.0),
    ]
}

impl Case {
    /// The same with a fraction of the rows.
    pub(crate) fn divided(mut self, by: usize) -> Self {
        self.build_rows /= by;
        self.probe_rows /= by;
        self
    }

    /// The same with keys 0, 1, 2…
    pub(crate) fn dense(mut self) -> Self {
        self.words.push("--dense");
        self
    }

    /// The same beside engines that the target is not for.
    pub(crate) fn without_target(mut self) -> Self {
        self.target = None;
        self
    }

    /// A folder's name: whatever makes the data differ is in it.
    pub(crate) fn slug(&self) -> String {
        let words = self.words.join("").replace("--", "-");
        format!("{}x{}{words}", self.build_rows, self.probe_rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_cases_share_their_data() {
        let mut slugs: Vec<String> =
            all().into_iter().flat_map(|case| [case.slug(), case.dense().slug()]).collect();
        let count = slugs.len();
        slugs.sort();
        slugs.dedup();
        assert_eq!(slugs.len(), count);
    }
}
