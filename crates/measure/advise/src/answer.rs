//! The answer, from the samples so far.

use std::collections::BTreeMap;

use serde::Serialize;
use workahead_study::cell::Cell;
use workahead_study::measure::THROUGHPUT;
use workahead_study::plans::Label;
use workahead_study::results::Results;
use workahead_study::statistics::Interval;

use crate::comparison::{Comparison, ERROR_RATE, LOOKS, Verdict};
use crate::prices::Prices;
use crate::question::Question;
use crate::request::LEVELS_MAX;
use crate::words::{change, duration, percent, significant};

/// The longest wait of 99 of 100 clients.
const P99: &str = "latency_p99_ms";

/// A question's answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The question.
    pub question: Question,
    /// The answer in a sentence.
    pub sentence: String,
    /// Whether it is decided; else the sentence says between what it lies.
    pub decided: bool,
    /// The value of the level that suffices, once that is decided; of SMT, `on` or `off`.
    pub choice: Option<String>,
    /// Rounds in which every level was sampled.
    pub rounds: usize,
    /// How often such an answer may be wrong.
    pub error_rate: f64,
    /// The difference of throughput that is of no matter.
    pub within: f64,
    /// The unit of a throughput, in a second or a minute.
    pub unit: String,
    /// The levels, from small to large.
    pub levels: Vec<LevelAnswer>,
    /// Notes for the reader.
    pub notes: Vec<String>,
}

/// A level of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelAnswer {
    /// Its value: `4`, `off`.
    pub value: String,
    /// In words: `4 CPUs`.
    pub name: String,
    /// The mean throughput, in the answer's unit.
    pub throughput: Option<f64>,
    /// Its throughput over that of the best level; none of the best itself, and none in the first
    /// rounds.
    pub of_best: Option<f64>,
    /// The interval of that, which holds together with all others at all looks.
    pub of_best_interval: Option<Interval>,
    /// Whether it has the most throughput of all.
    pub is_best: bool,
    /// The longest wait of 99 of 100, in milliseconds: the mean over the rounds.
    pub p99_ms: Option<f64>,
    /// The cost of a million there, in the prices' currency.
    pub cost_of_million: Option<f64>,
    /// Whether it suffices.
    pub verdict: Verdict,
    /// Whether its query plans are those of the first level, where plans are known.
    pub plan: Option<Label>,
}

/// The result after a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// Whether the answer is.
    pub is_decided: bool,
    /// The cells of levels that fall short: samples of them would change nothing.
    pub fallen: Vec<usize>,
}

/// The levels of a result that have samples.
struct Levels<'a> {
    question: Question,
    results: &'a Results,
    cells: Vec<&'a Cell>,
    comparison: Comparison,
    within: f64,
}

impl Answer {
    /// The answer of a result, finished or not. `within` is the difference of throughput that is of
    /// no matter, such as 0.05. `None` if the result's study asks none of the questions.
    #[must_use]
    pub fn of(results: &Results, within: f64) -> Option<Answer> {
        Some(Levels::of(results, within)?.answer())
    }

    /// The same with what each number of CPUs costs. Other questions have no prices.
    #[must_use]
    pub fn priced(mut self, prices: &Prices, results: &Results) -> Answer {
        if self.question != Question::Cores {
            return self;
        }
        let per_s = 1e6 / results.unit().factor;
        for level in &mut self.levels {
            let cores: Option<f64> = level.value.parse().ok();
            let cost = |cores| Some(prices.of_million(cores, level.throughput? * per_s));
            level.cost_of_million = cores.and_then(cost);
        }
        let cost = |level: &LevelAnswer| level.cost_of_million.unwrap_or(f64::INFINITY);
        let cheapest = self.levels.iter().min_by(|one, other| cost(one).total_cmp(&cost(other)));
        if let Some((level, cost)) = cheapest.and_then(|one| Some((one, one.cost_of_million?))) {
            let counted = &results.spec.method.tuples;
            self.notes.insert(
                0,
                format!(
                    "A million {counted} cost least with {}: {} {}.",
                    level.name,
                    significant(cost),
                    prices.currency
                ),
            );
        }
        self
    }

    /// The result after a round; between looks there is none.
    #[must_use]
    pub fn at_look(results: &Results, within: f64) -> Option<Look> {
        let levels = Levels::of(results, within).filter(|levels| levels.comparison.is_look())?;
        let racing: Vec<usize> = levels.comparison.racing().collect();
        let cells = levels.cells.iter().enumerate();
        let fallen = cells.filter(|(level, _)| !racing.contains(level));
        Some(Look {
            is_decided: levels.choice().is_some(),
            fallen: fallen.map(|(_, cell)| cell.index).collect(),
        })
    }
}

impl<'a> Levels<'a> {
    fn of(results: &'a Results, within: f64) -> Option<Self> {
        let question = Question::of_study(&results.spec.id)?;
        if results.run_plan.cells.len() > LEVELS_MAX {
            return None;
        }
        let can_run = |cell: &&Cell| {
            results.failure(cell.index).is_none() && !results.run_plan.skipped.contains(&cell.index)
        };
        let cells: Vec<&Cell> = results.run_plan.cells.iter().filter(can_run).collect();
        let samples: Vec<BTreeMap<u32, f64>> = cells
            .iter()
            .map(|cell| {
                let value = |seen| results.measure(seen, THROUGHPUT);
                let seen = results.of_cell(cell.index);
                seen.filter_map(|seen| Some((seen.repetition, value(seen)?))).collect()
            })
            .collect();
        let comparison = Comparison::new(samples, within);
        Some(Levels { question, results, cells, comparison, within })
    }

    fn answer(&self) -> Answer {
        let choice = self.choice();
        let unit = self.results.unit();
        Answer {
            question: self.question,
            sentence: self.sentence(choice),
            decided: choice.is_some(),
            choice: choice.map(|level| self.value(level)),
            rounds: self.comparison.rounds(),
            error_rate: ERROR_RATE,
            within: self.within,
            unit: unit.name.clone(),
            levels: (0..self.cells.len()).map(|level| self.level(level)).collect(),
            notes: self.notes(),
        }
    }

    fn level(&self, level: usize) -> LevelAnswer {
        let best = self.comparison.best();
        let is_known = level != best && self.comparison.rounds() >= LOOKS[0] as usize;
        let ratio = is_known.then(|| self.comparison.ratio(level, best)).flatten();
        let throughput = self.results.value(self.cells[level].index, THROUGHPUT);
        LevelAnswer {
            value: self.value(level),
            name: self.name(level),
            throughput: throughput.map(|value| self.results.unit().scaled(value)),
            of_best: ratio.map(|(ratio, _)| ratio),
            of_best_interval: ratio.map(|(_, interval)| interval),
            is_best: level == best && self.comparison.rounds() > 0,
            p99_ms: self.p99_ms(level),
            cost_of_million: None,
            verdict: self.comparison.verdict(level),
            plan: self.plan(level),
        }
    }

    /// The level that is the answer, once it is decided.
    fn choice(&self) -> Option<usize> {
        match self.question {
            Question::Smt => self.siblings(),
            _ if self.cells.len() < 2 => None,
            _ => self.comparison.decided(),
        }
    }

    /// Whether siblings should be on (1) or off (0); where it makes no difference that matters,
    /// they stay as a machine comes.
    fn siblings(&self) -> Option<usize> {
        let (_, interval) = self.gain()?;
        let same = Interval { low: 1.0 - self.within, high: 1.0 / (1.0 - self.within) };
        match interval {
            Interval { low, .. } if low > 1.0 => Some(1),
            Interval { high, .. } if high < 1.0 => Some(0),
            Interval { low, high } if same.low <= low && high <= same.high => Some(1),
            _ => None,
        }
    }

    /// The throughput with siblings over that without.
    fn gain(&self) -> Option<(f64, Interval)> {
        match self.cells.len() {
            2 => self.comparison.ratio(1, 0),
            _ => None,
        }
    }

    fn value(&self, level: usize) -> String {
        let place = self.cells[level].place.get(self.question.axis());
        place.map(ToString::to_string).unwrap_or_default()
    }

    fn name(&self, level: usize) -> String {
        self.question.level(&self.value(level))
    }

    fn p99_ms(&self, level: usize) -> Option<f64> {
        self.results.value(self.cells[level].index, P99)
    }

    /// Its plans beside those of the first level.
    fn plan(&self, level: usize) -> Option<Label> {
        match level {
            0 => None,
            _ => self.results.plan_label(self.cells[level].index, self.cells[0].index),
        }
    }

    fn sentence(&self, choice: Option<usize>) -> String {
        match (self.cells.len(), self.comparison.rounds()) {
            (0, _) => return "Nothing of it can be run here.".to_owned(),
            (1, _) => {
                return format!("There is nothing to compare {} with here.", self.name(0));
            }
            (_, rounds) if rounds < LOOKS[0] as usize => {
                return format!(
                    "Not decided: {rounds} of the {} rounds that an answer takes at least are \
                     measured; give it more time.",
                    LOOKS[0]
                );
            }
            _ => {}
        }
        match (self.question, choice) {
            (Question::Smt, _) => self.sentence_on_siblings(choice),
            (_, Some(level)) => self.sentence_on_choice(level),
            (_, None) => {
                let (least, most) = self.comparison.range();
                let values = (self.value(least), self.value(most));
                let between = if most == least + 1 { "or" } else { "to" };
                let range = self.question.level(&format!("{} {between} {}", values.0, values.1));
                self.undecided(&format!("the answer is {range}"))
            }
        }
    }

    fn sentence_on_choice(&self, level: usize) -> String {
        let best = self.comparison.best();
        let (name, last) = (self.name(level), self.cells.len() - 1);
        let lead = match self.question {
            _ if level < last => format!("{name} suffice{}", third_person(&self.value(level))),
            Question::Cores if self.value(level) == "2" => "both CPUs are of use".to_owned(),
            Question::Cores => format!("all {name} are of use"),
            _ => format!("take {name}, the most of those tried"),
        };
        let because = match (self.comparison.ratio(level, best), level.checked_sub(1)) {
            (Some((ratio, interval)), _) if level != best => {
                let share = percent(ratio, interval);
                format!("{share} of the throughput with {}, the best", self.value(best))
            }
            (_, None) => "no other does more".to_owned(),
            (_, Some(below)) => match self.comparison.ratio(below, level) {
                Some((ratio, interval)) => {
                    format!("with {} throughput is {}", self.name(below), percent(ratio, interval))
                }
                None => "no other does more".to_owned(),
            },
        };
        let beside = if level == best { level.saturating_sub(1) } else { best };
        format!("{}: {because}{}.", capital(&lead), self.wait(level, beside))
    }

    /// `; p99 12.1 ms, with 8 CPUs 11.0 ms`.
    fn wait(&self, level: usize, beside: usize) -> String {
        match (self.p99_ms(level), self.p99_ms(beside)) {
            (Some(this), Some(other)) if level != beside => format!(
                "; p99 {} ms, with {} {} ms",
                significant(this),
                self.name(beside),
                significant(other)
            ),
            (Some(this), _) => format!("; p99 {} ms", significant(this)),
            _ => String::new(),
        }
    }

    fn sentence_on_siblings(&self, choice: Option<usize>) -> String {
        let Some((ratio, interval)) = self.gain() else {
            return "There is no comparison of on with off yet.".to_owned();
        };
        let gain = change(ratio, interval);
        let wait = match (self.p99_ms(1), self.p99_ms(0)) {
            (Some(on), Some(off)) => {
                let sign = if on < off { '−' } else { '+' };
                format!(", p99 {sign}{} ms", significant((on - off).abs()))
            }
            _ => String::new(),
        };
        let clients = self.cells[0].integer("clients").unwrap_or(1);
        let clients = Question::Clients.level(&clients.to_string());
        let found = format!("{gain} throughput at {clients}{wait}");
        match choice {
            Some(0) => format!("Turn SMT off: with it {found}."),
            Some(_) if interval.low > 1.0 => format!("Keep SMT on: {found}."),
            Some(_) => {
                format!("SMT makes no difference of {:.0} %: with it {found}.", self.within * 100.0)
            }
            None => self.undecided(&format!("with SMT {found}")),
        }
    }

    /// The sentence with the result so far, and the time that a decision would take.
    fn undecided(&self, known: &str) -> String {
        let rounds = self.comparison.rounds();
        let found = format!("Not decided after {rounds} rounds: {known}");
        match (self.comparison.rounds_needed(), self.round_s()) {
            (Some(needed), Some(round_s)) => {
                format!("{found}; about {} in all would show it.", duration(needed * round_s))
            }
            _ => format!("{found}."),
        }
    }

    /// Seconds of a round, with all that is between samples.
    fn round_s(&self) -> Option<f64> {
        let times: Vec<u64> = self.results.observations.iter().map(|seen| seen.unix_ms).collect();
        let (first, last) = (times.iter().min()?, times.iter().max()?);
        let between = times.len().checked_sub(1).filter(|between| *between > 0)?;
        let levels = self.comparison.racing().count() as f64;
        Some((last - first) as f64 / 1e3 / between as f64 * levels)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let changed: Vec<String> = (1..self.cells.len())
            .filter(|level| self.plan(*level) == Some(Label::Changed))
            .map(|level| self.name(level))
            .collect();
        if !changed.is_empty() {
            notes.push(format!(
                "The query plan is another one with {} than with {}: that part of the difference \
                 is the planner's, not the machine's.",
                changed.join(", "),
                self.name(0)
            ));
        }
        for cell in &self.results.run_plan.cells {
            let is_compared = self.cells.iter().any(|other| other.index == cell.index);
            if !is_compared {
                let place = cell.place.get(self.question.axis()).map(ToString::to_string);
                let name = self.question.level(&place.unwrap_or_default());
                notes.push(format!("{name}: {}.", self.results.absence(cell.index)));
            }
        }
        let rounds = self.comparison.rounds();
        let shorter = (0..self.cells.len()).filter(|one| self.comparison.rounds_of(*one) < rounds);
        let left_out: Vec<String> = shorter
            .map(|one| format!("{} after {}", self.name(one), self.comparison.rounds_of(one)))
            .collect();
        if !left_out.is_empty() {
            notes.push(format!(
                "Levels that plainly fell short were not sampled in all {rounds} rounds: {}.",
                left_out.join(", ")
            ));
        }
        notes.extend(self.results.disturbance().map(|why| format!("{}.", capital(&why))));
        notes.push(format!(
            "At most {:.0} of 100 such answers are wrong, also those that are given early: all \
             intervals hold together, after {} rounds and at the end. Less than {:.0} % of \
             throughput is taken for no difference.",
            ERROR_RATE * 100.0,
            LOOKS[..LOOKS.len() - 1].iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            self.within * 100.0
        ));
        notes
    }
}

fn third_person(value: &str) -> &'static str {
    if value == "1" { "s" } else { "" }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests;
