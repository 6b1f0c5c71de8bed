//! The table: what is better where, and who is best.

use serde::Serialize;

use super::record::{Middle, Record};

/// A figure of a load that schedulers are compared by.
#[derive(Debug)]
pub(super) struct Measure {
    pub(super) load: &'static str,
    figure: &'static str,
    pub(super) label: &'static str,
    pub(super) unit: &'static str,
    factor: f64,
    better: Better,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Better {
    More,
    Less,
}

use Better::{Less, More};

const MS: f64 = 1e-6;

/// In the order of the table.
pub(super) const MEASURES: [Measure; 31] = [
    of("memory", "passes_per_s", "passes", "/s", 1.0, More),
    of("memory", "together_share", "time together on siblings", "", 1.0, More),
    of("memory", "corun_share", "time together on any two CPUs", "", 1.0, More),
    of("memory", "same_share", "switches within a program", "", 1.0, More),
    of("memory", "migrations_per_s", "migrations", "/s", 1.0, Less),
    of("memory", "wait_ns_max", "longest wait", "ms", MS, Less),
    of("service", "answers_per_s", "answers", "/s", 1.0, More),
    of("service", "spins_per_s", "spins", "/s", 1.0, More),
    of("service", "delay_ns_p50", "answer late, 50 %", "ms", MS, Less),
    of("service", "delay_ns_p99", "answer late, 99 %", "ms", MS, Less),
    of("service", "delay_ns_p999", "answer late, 99.9 %", "ms", MS, Less),
    of("service", "together_share", "time together on siblings", "", 1.0, More),
    of("service", "migrations_per_s", "migrations", "/s", 1.0, Less),
    of("wakeups", "wakeups_per_s", "wake-ups", "/s", 1.0, More),
    of("wakeups", "delay_ns_p50", "wake-up to run, 50 %", "ms", MS, Less),
    of("wakeups", "delay_ns_p99", "wake-up to run, 99 %", "ms", MS, Less),
    of("wakeups", "delay_ns_p999", "wake-up to run, 99.9 %", "ms", MS, Less),
    of("wakeups", "migrations_per_s", "migrations", "/s", 1.0, Less),
    of("messages", "messages_per_s", "messages", "/s", 1.0, More),
    of("messages", "wakeup_ns_p50", "wake-up to run, 50 %", "ms", MS, Less),
    of("messages", "wakeup_ns_p99", "wake-up to run, 99 %", "ms", MS, Less),
    of("messages", "wakeup_ns_p999", "wake-up to run, 99.9 %", "ms", MS, Less),
    of("messages", "migrations_per_s", "migrations", "/s", 1.0, Less),
    of("weights", "unfairness_points", "deviation from the due share", "points", 1.0, Less),
    of("weights", "spins_per_s", "spins", "/s", 1.0, More),
    of("nice", "unfairness_points", "deviation from the due share", "points", 1.0, Less),
    of("nice", "spins_per_s", "spins", "/s", 1.0, More),
    of("overload", "wait_ns_max", "longest wait", "ms", MS, Less),
    of("overload", "delay_ns_p99", "answer late, 99 %", "ms", MS, Less),
    of("overload", "answers_per_s", "answers", "/s", 1.0, More),
    of("overload", "spins_per_s", "spins", "/s", 1.0, More),
];

const fn of(
    load: &'static str,
    figure: &'static str,
    label: &'static str,
    unit: &'static str,
    factor: f64,
    better: Better,
) -> Measure {
    Measure { load, figure, label, unit, factor, better }
}

/// A row: a value for each scheduler.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) load: &'static str,
    pub(super) label: &'static str,
    pub(super) unit: &'static str,
    pub(super) better: Better,
    pub(super) values: Vec<Option<Middle>>,
    /// The best one by the median; absent where fewer than two have a value.
    pub(super) best: Option<usize>,
}

/// All rows that have a value.
pub(super) fn rows(record: &Record) -> Vec<Row> {
    let row = |measure: &Measure| {
        let value = |words: &str| {
            let Middle { median, least, most } =
                record.middle(words, measure.load, measure.figure)?;
            let [median, least, most] = [median, least, most].map(|value| value * measure.factor);
            Some(Middle { median, least, most })
        };
        let values: Vec<Option<Middle>> =
            record.schedulers.iter().map(|scheduler| value(&scheduler.words)).collect();
        let best = best(&values, measure.better);
        let Measure { load, label, unit, better, .. } = *measure;
        Row { load, label, unit, better, values, best }
    };
    MEASURES.iter().map(row).filter(|row| row.values.iter().any(Option::is_some)).collect()
}

fn best(values: &[Option<Middle>], better: Better) -> Option<usize> {
    let there = || values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?.median)));
    if there().count() < 2 {
        return None;
    }
    let best = match better {
        More => there().max_by(|one, other| one.1.total_cmp(&other.1)),
        Less => there().min_by(|one, other| one.1.total_cmp(&other.1)),
    };
    best.map(|(at, _)| at)
}

impl Row {
    /// Whether the rounds of a value overlap with those of the best one.
    pub(super) fn is_level(&self, at: usize) -> bool {
        let value = |at: usize| self.values.get(at).copied().flatten();
        match (self.best.and_then(value), value(at)) {
            (Some(best), Some(value)) => self.best == Some(at) || value.overlaps(&best),
            _ => false,
        }
    }

    /// How many times as good a value is as another: above 1 where it is better.
    pub(super) fn ratio(&self, at: usize, to: usize) -> Option<f64> {
        let value = |at: usize| self.values.get(at).copied().flatten().map(|value| value.median);
        let (one, other) = (value(at)?, value(to)?);
        let (above, below) = match self.better {
            More => (one, other),
            Less => (other, one),
        };
        let is_equal = one.to_bits() == other.to_bits();
        if is_equal { Some(1.0) } else { (above > 0.0 && below > 0.0).then(|| above / below) }
    }
}

/// A row in which another is better than all of ours, and its rounds lie apart.
#[derive(Debug, Serialize)]
pub(super) struct Loss {
    pub(super) row: usize,
    /// The best scheduler.
    pub(super) by: usize,
    /// The best of ours.
    pub(super) ours: usize,
    /// How many times as good.
    pub(super) ratio: Option<f64>,
}

/// Where others are better, the worst first.
pub(super) fn losses(record: &Record, rows: &[Row]) -> Vec<Loss> {
    let is_ours = |at: &usize| record.schedulers[*at].ours;
    let loss = |(number, row): (usize, &Row)| {
        let by = row.best.filter(|best| !is_ours(best))?;
        let of_ours = || (0..row.values.len()).filter(is_ours);
        let goodness = |at: &usize| row.ratio(*at, by).unwrap_or(0.0);
        let ours = of_ours()
            .filter(|at| row.values[*at].is_some())
            .max_by(|one, other| goodness(one).total_cmp(&goodness(other)))?;
        let is_level = of_ours().any(|at| row.is_level(at));
        (!is_level).then(|| Loss { row: number, by, ours, ratio: row.ratio(by, ours) })
    };
    let mut losses: Vec<Loss> = rows.iter().enumerate().filter_map(loss).collect();
    let size = |loss: &Loss| loss.ratio.unwrap_or(f64::INFINITY);
    losses.sort_by(|one, other| size(other).total_cmp(&size(one)));
    losses
}

/// The comparison in a sentence.
pub(super) fn sentence(record: &Record, rows: &[Row], losses: &[Loss]) -> String {
    let ours: Vec<usize> =
        (0..record.schedulers.len()).filter(|at| record.schedulers[*at].ours).collect();
    let judged = rows
        .iter()
        .filter(|row| row.best.is_some() && ours.iter().any(|at| row.values[*at].is_some()));
    let (mut all, mut best, mut alone) = (0, 0, 0);
    for row in judged {
        all += 1;
        let level = |at: &usize| row.is_level(*at);
        if ours.iter().any(level) {
            best += 1;
            let others = (0..row.values.len()).filter(|at| !ours.contains(at));
            alone += usize::from(!others.into_iter().any(|at| row.is_level(at)));
        }
    }
    if all == 0 {
        return "No row has figures of this project's scheduler and of another.".to_owned();
    }
    let chance = if record.rounds == 1 { " Of one round some of that is chance." } else { "" };
    format!(
        "In {} of {all} rows another scheduler is better than this project's; in {best} it is the \
         best, {alone} of them alone.{chance}",
        losses.len()
    )
}

#[cfg(test)]
mod tests;
