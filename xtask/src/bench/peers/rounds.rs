//! Engines in turn, there and back, and what their times say.

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::OURS;
use super::cases::Case;
use super::data::Data;
use super::engine::{Engine, Reply};

/// The requested result, in the words of the protocol: count and sums, or every column of the
/// output.
pub(crate) const FORMS: [&str; 2] = ["sums", "columns"];

/// One case, form and number of threads, measured.
#[derive(Debug)]
pub(crate) struct CaseTimes {
    pub(crate) case: Case,
    pub(crate) form: &'static str,
    pub(crate) threads: usize,
    /// Ours first.
    pub(crate) engines: Vec<Times>,
}

/// An engine's replies, a round each.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    pub(crate) name: &'static str,
    pub(crate) replies: Vec<Reply>,
}

/// Which clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Wall,
    Cpu,
}

/// A warm-up whose every column is checked, then the rounds.
pub(crate) fn run(
    case: &Case,
    form: &'static str,
    threads: usize,
    engines: &mut [Engine],
    (data, rounds): (&Data, usize),
) -> Result<CaseTimes> {
    let mut times: Vec<Times> =
        engines.iter().map(|engine| Times { name: engine.name, replies: Vec::new() }).collect();
    for engine in engines.iter_mut() {
        let reply = engine.join(form, true)?;
        check(engine.name, &reply, data)?;
    }
    for round in 0..rounds {
        let there = 0..engines.len();
        let turns: Vec<usize> =
            if round % 2 == 0 { there.collect() } else { there.rev().collect() };
        for turn in turns {
            let reply = engines[turn].join(form, false)?;
            check(engines[turn].name, &reply, data)?;
            times[turn].replies.push(reply);
        }
    }
    Ok(CaseTimes { case: case.clone(), form, threads, engines: times })
}

/// Count, and whatever sums a reply has, must be the answer's.
fn check(name: &str, reply: &Reply, data: &Data) -> Result<()> {
    let count = ("count", &reply.value["count"]);
    let sums = reply.value["sums"].as_object().into_iter().flatten();
    for (column, said) in sums.map(|(column, sum)| (column.as_str(), sum)).chain([count]) {
        match data.answer.get(column) {
            Some(right) if right == said => (),
            right => bail!("{name} says that {column} is {said}; it is {right:?}"),
        }
    }
    Ok(())
}

impl Times {
    /// Seconds of every round.
    pub(crate) fn seconds(&self, clock: Clock) -> impl Iterator<Item = f64> {
        self.replies.iter().map(move |reply| match clock {
            Clock::Wall => reply.wall_s,
            Clock::Cpu => reply.cpu_s,
        })
    }

    /// Millions of probe rows a second of this clock, by the median round.
    pub(crate) fn mrows_per_s(&self, case: &Case, clock: Clock) -> f64 {
        case.probe_rows as f64 / 1e6 / median(self.seconds(clock).collect())
    }
}

impl CaseTimes {
    pub(crate) fn ours(&self) -> &Times {
        &self.engines[0]
    }

    pub(crate) fn peers(&self) -> &[Times] {
        debug_assert_eq!(self.engines[0].name, OURS);
        &self.engines[1..]
    }

    /// How many times as fast as a peer: the median over the rounds.
    pub(crate) fn ratio(&self, peer: &Times, clock: Clock) -> f64 {
        let pairs = peer.seconds(clock).zip(self.ours().seconds(clock));
        median(pairs.map(|(theirs, ours)| theirs / ours).collect())
    }

    /// The peer that is nearest to us, and how many times as fast we are.
    pub(crate) fn best(&self, clock: Clock) -> Option<(&Times, f64)> {
        let ratios = self.peers().iter().map(|peer| (peer, self.ratio(peer, clock)));
        ratios.min_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Seconds of every round, for other statistics.
    pub(crate) fn raw(&self) -> Value {
        let engines = self.engines.iter().map(|times| {
            let seconds = |clock| times.seconds(clock).collect::<Vec<f64>>();
            let (wall_s, cpu_s) = (seconds(Clock::Wall), seconds(Clock::Cpu));
            (times.name.to_owned(), json!({ "wall_s": wall_s, "cpu_s": cpu_s }))
        });
        let engines: serde_json::Map<String, Value> = engines.collect();
        json!({
            "case": self.case.name, "form": self.form, "threads": self.threads,
            "engines": engines,
        })
    }
}

/// The middle value; of an even number, the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(name: &'static str, wall: &[f64]) -> Times {
        let reply = |wall_s: &f64| Reply { wall_s: *wall_s, cpu_s: wall_s / 2.0, value: json!({}) };
        Times { name, replies: wall.iter().map(reply).collect() }
    }

    #[test]
    fn the_best_peer_is_the_one_with_the_smallest_ratio() {
        let mut case = super::super::cases::all().remove(0);
        case.probe_rows = 4_000_000;
        // The machine was slower in the second round: the ratios are the same in all.
        let engines = vec![
            times(OURS, &[1.0, 3.0, 1.0]),
            times("slow", &[4.0, 12.0, 4.0]),
            times("fast", &[2.0, 6.0, 2.0]),
        ];
        let measured = CaseTimes { case: case.clone(), form: "sums", threads: 1, engines };
        let (best, ratio) = measured.best(Clock::Wall).unwrap();
        assert_eq!((best.name, ratio), ("fast", 2.0));
        assert_eq!(measured.ours().mrows_per_s(&case, Clock::Cpu), 8.0);
    }

    #[test]
    fn wrong_answers_end_the_run() {
        let answer = json!({ "count": 3, "bv": 7 }).as_object().unwrap().clone();
        let data = Data { folder: "x".into(), answer };
        let reply = |value| Reply { wall_s: 1.0, cpu_s: 1.0, value };
        let right = reply(json!({ "count": 3, "sums": { "bv": 7 } }));
        assert!(check("x", &right, &data).is_ok());
        for wrong in [
            json!({ "count": 2, "sums": {} }),
            json!({ "count": 3, "sums": { "bv": 8 } }),
            json!({ "sums": {} }),
            json!({ "count": 3, "sums": { "other": 7 } }),
        ] {
            assert!(check("x", &reply(wrong), &data).is_err());
        }
    }

    #[test]
    fn medians_are_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
