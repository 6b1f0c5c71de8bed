//! Options of the command line.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::cases::{self, Case};
use super::{OURS, PEERS, PYTHON_PEERS};

const THREADS: [usize; 2] = [1, 2];
const ROUNDS: usize = 6;
/// Of fewer there is no median to speak of.
const ROUNDS_LEAST: usize = 3;
const SMALLER: usize = 50;

/// `[--rounds N] [--threads 1,2] [--only TEXT] [--engines a,b] [--python] [--dense] [--small]
/// [--phases] [--json FILE]`
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Options {
    pub(crate) rounds: usize,
    pub(crate) threads: Vec<usize>,
    /// Only cases whose name contains it.
    pub(crate) only: Option<String>,
    /// Only these peers.
    pub(crate) peers: Vec<&'static str>,
    /// Those of our join from Python.
    pub(crate) python: bool,
    pub(crate) dense: bool,
    pub(crate) small: bool,
    pub(crate) phases: bool,
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    pub(crate) fn read(words: &[&str]) -> Result<Self> {
        // The engines to choose from, wherever among the words it is.
        let python = words.contains(&"--python");
        let known = known_peers(python);
        let mut options = Self {
            rounds: ROUNDS,
            threads: THREADS.to_vec(),
            only: None,
            peers: known.to_vec(),
            python,
            dense: false,
            small: false,
            phases: false,
            json: None,
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value"));
            match word {
                "--rounds" => options.rounds = number(value()?)?,
                "--threads" => {
                    options.threads = value()?.split(',').map(number).collect::<Result<_>>()?;
                }
                "--only" => options.only = Some((*value()?).to_owned()),
                "--engines" => {
                    let peers = value()?.split(',').map(|word| peer(word, known));
                    options.peers = peers.collect::<Result<_>>()?;
                }
                "--json" => options.json = Some(PathBuf::from(value()?)),
                "--python" => (),
                "--dense" => options.dense = true,
                "--small" => options.small = true,
                "--phases" => options.phases = true,
                other => bail!("`bench peers` knows no {other}"),
            }
        }
        if options.cases().is_empty() {
            let names: Vec<_> = cases::all().iter().map(|case| case.name).collect();
            bail!("no case is called so; there are: {}", names.join("; "));
        }
        Ok(options)
    }

    /// The cases, with the requested sizes and keys.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let fits = |case: &Case| self.only.as_ref().is_none_or(|only| case.name.contains(only));
        let cases = cases::all().into_iter().filter(fits);
        let cases = cases.map(|case| if self.python { case.without_target() } else { case });
        let cases = cases.map(|case| if self.dense { case.dense() } else { case });
        cases.map(|case| if self.small { case.divided(SMALLER) } else { case }).collect()
    }

    /// Ours and the peers.
    pub(crate) fn engines(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(OURS).chain(self.peers.iter().copied())
    }

    /// Whether the cases are whole: nothing of them left out, and rounds enough for a median.
    pub(crate) fn is_whole(&self) -> bool {
        let all = !self.small && self.peers == known_peers(self.python);
        all && self.threads == THREADS && self.rounds >= ROUNDS_LEAST
    }

    /// The name of the record; one of some cases has a name of its own beside that of all.
    pub(crate) fn record(&self) -> String {
        let peers = if self.python { "python" } else { "peers" };
        let keys = self.dense.then_some("dense");
        let only = self.only.iter().flat_map(|only| only.split(|c: char| !c.is_alphanumeric()));
        let words = only.filter(|word| !word.is_empty()).map(str::to_lowercase);
        let named = std::iter::once(peers).chain(keys).map(str::to_owned);
        named.chain(words).collect::<Vec<_>>().join("-")
    }
}

fn number(word: &str) -> Result<usize> {
    let number = word.parse().ok().filter(|number| *number > 0);
    number.with_context(|| format!("{word} is not a number above zero"))
}

fn known_peers(python: bool) -> &'static [&'static str] {
    if python { &PYTHON_PEERS } else { &PEERS }
}

fn peer(word: &str, known: &[&'static str]) -> Result<&'static str> {
    let found = known.iter().copied().find(|peer| *peer == word);
    found.with_context(|| format!("no peer is called {word}; there are: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_options() {
        let words =
            ["--rounds", "3", "--threads", "2", "--only", "Zipf", "--engines", "acero", "--small"];
        let options = Options::read(&words).unwrap();
        assert_eq!((options.rounds, options.threads.clone()), (3, vec![2]));
        assert_eq!(options.cases().len(), 1);
        assert_eq!(options.cases()[0].probe_rows, 320_000);
        assert_eq!(options.engines().collect::<Vec<_>>(), ["workahead", "acero"]);
        assert!(!options.is_whole());
        assert!(Options::read(&["--dense"]).unwrap().is_whole());
        assert!(!Options::read(&["--rounds", "2"]).unwrap().is_whole());
        let ours = Options::read(&["--engines", "polars,python", "--python"]).unwrap();
        assert_eq!(ours.engines().collect::<Vec<_>>(), ["workahead", "polars", "python"]);
        assert!(ours.cases().iter().all(|case| case.target.is_none()) && !ours.is_whole());
        assert!(Options::read(&["--python"]).unwrap().is_whole());
    }

    #[test]
    fn a_record_of_some_cases_has_a_name_of_its_own() {
        let name = |words: &[&str]| Options::read(words).unwrap().record();
        assert_eq!(name(&[]), "peers");
        assert_eq!(name(&["--python"]), "python");
        assert_eq!(name(&["--dense", "--only", "Zipf(1)"]), "peers-dense-zipf-1");
    }

    #[test]
    fn what_is_unknown_is_named() {
        for (words, says) in [
            (vec!["--rounds"], "--rounds needs a value"),
            (vec!["--rounds", "0"], "0 is not a number"),
            (vec!["--engines", "oracle"], "no peer is called oracle"),
            (vec!["--engines", "python"], "no peer is called python"),
            (vec!["--only", "4M x 4M"], "there are: 2M x 16M"),
            (vec!["--fast"], "knows no --fast"),
        ] {
            let error = Options::read(&words).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
