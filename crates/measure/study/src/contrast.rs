//! Every query with and without a setting: the ratios of a bar chart.
//!
//! Chang's charts (2013): elapsed time off over on and CPU time on over off, query by query, with
//! the sums; here with intervals, p values that hold for all queries together, and whether the plan
//! was the same.

use serde::Serialize;

use crate::cell::Cell;
use crate::plans::Label;
use crate::results::Results;
use crate::setting::Settings;
use crate::statistics::{Mean, Ratio, holm, mean};

/// A list of ratios.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contrast {
    /// The baseline of the ratios.
    pub baseline: Settings,
    /// A line per cell that is not the baseline itself.
    pub lines: Vec<Line>,
    /// The sums over all lines whose both cells have samples.
    pub total: Total,
}

/// One cell against its baseline.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Index of the cell.
    pub cell: usize,
    /// Index of its baseline.
    pub baseline: usize,
    /// The cell in words.
    pub label: String,
    /// Elapsed time of the baseline over this, for the same work: above 1 is faster.
    pub speedup: Option<Ratio>,
    /// CPU time of this over the baseline's, for the same work: above 1 is more expensive.
    pub cpu: Option<Ratio>,
    /// The p value of the speed-up, adjusted for all lines (Holm 1979).
    pub p_adjusted: Option<f64>,
    /// Whether the plan is the same, where plans are known.
    pub plan: Option<Label>,
}

/// Sums of mean times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Total {
    /// How many lines are in it.
    pub lines: usize,
    /// Elapsed time of the baselines.
    pub elapsed_s_before: f64,
    /// Elapsed time of these.
    pub elapsed_s_after: f64,
    /// CPU time of the baselines.
    pub cpu_s_before: f64,
    /// CPU time of these.
    pub cpu_s_after: f64,
}

impl Total {
    /// `24 % faster with 50 % more CPU`.
    pub fn text(&self) -> String {
        let faster = percent_faster(self.elapsed_s_before, self.elapsed_s_after);
        let dearer = percent_more(self.cpu_s_before, self.cpu_s_after);
        let signed = |percent: f64, more: &str, less: &str| match percent {
            percent if percent >= 0.0 => format!("{percent:.0} % {more}"),
            percent => format!("{:.0} % {less}", -percent),
        };
        format!(
            "{} with {} CPU",
            signed(faster, "faster", "slower"),
            signed(dearer, "more", "less")
        )
    }
}

/// How much faster, in per cent: the ratio of times less one. 692 s before and 559 s after are
/// 24 % faster.
pub fn percent_faster(before_s: f64, after_s: f64) -> f64 {
    (before_s / after_s - 1.0) * 100.0
}

/// How much more, in per cent: 2253 CPU seconds before and 3374 after are 50 % more.
pub fn percent_more(before: f64, after: f64) -> f64 {
    (after / before - 1.0) * 100.0
}

impl Contrast {
    /// All cells against those that differ from them by `baseline`.
    pub fn of(results: &Results, baseline: &Settings) -> Contrast {
        let pairs: Vec<(&Cell, &Cell)> = results
            .run_plan
            .cells
            .iter()
            .filter_map(|cell| Some((cell, results.run_plan.baseline_of(cell, baseline)?)))
            .filter(|(cell, base)| cell.index != base.index)
            .collect();
        let mut lines: Vec<Line> = pairs.iter().map(|pair| line(results, *pair)).collect();
        let p: Vec<Option<f64>> = lines.iter().map(|line| line.speedup?.p).collect();
        for (line, adjusted) in lines.iter_mut().zip(holm(&p)) {
            line.p_adjusted = adjusted;
        }
        Contrast { baseline: baseline.clone(), lines, total: total(results, &pairs) }
    }
}

fn line(results: &Results, (cell, base): (&Cell, &Cell)) -> Line {
    let pairs = |measure| results.paired(cell.index, base.index, measure);
    let turned: Vec<(f64, f64)> =
        pairs("ns_per_tuple").iter().map(|(this, base)| (*base, *this)).collect();
    Line {
        cell: cell.index,
        baseline: base.index,
        label: cell.label(&results.run_plan.axes),
        speedup: Ratio::paired(&turned),
        cpu: Ratio::paired(&pairs("cpu_ns_per_tuple")),
        p_adjusted: None,
        plan: results.plan_label(cell.index, base.index),
    }
}

fn total(results: &Results, pairs: &[(&Cell, &Cell)]) -> Total {
    let of = |cell: &Cell, measure: &str| mean(&results.values(cell.index, measure), Mean::Plain);
    let figures = |(cell, base): &(&Cell, &Cell)| {
        let elapsed = (of(base, "wall_s")?, of(cell, "wall_s")?);
        Some((elapsed, (of(base, "cpu_s")?, of(cell, "cpu_s")?)))
    };
    let mut total = Total::default();
    for (elapsed, cpu) in pairs.iter().filter_map(figures) {
        total.lines += 1;
        total.elapsed_s_before += elapsed.0;
        total.elapsed_s_after += elapsed.1;
        total.cpu_s_before += cpu.0;
        total.cpu_s_after += cpu.1;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::Outcome;
    use crate::plans::{PlanText, Planner};
    use crate::setting::Setting;
    use crate::testing::{self, Mock};

    const STUDY: &str = "title = 't'\nquestion = 'q'\nengine = 'mock'\n\
        [axes]\nsize = ['q1', 'q2', 'q3']\n\
        [[cases]]\nname = 'off'\n[[cases]]\nname = 'on'\nspeed = 1.24\n\
        [method]\nrepetitions = 4\nblocks = ['size']\n";

    #[test]
    fn every_query_and_the_sums() {
        let dir = tempfile::tempdir().unwrap();
        let mut results = testing::results(dir.path(), STUDY, &mut Mock::new());
        for seen in &mut results.observations {
            let Outcome::Sample(sample) = &mut seen.outcome else { continue };
            let filter = if seen.cell == 5 { "b = 1" } else { "a = 1" };
            let text = format!(r#"[{{"Plan": {{"Node Type": "X", "Filter": "{filter}"}}}}]"#);
            sample.plan = Some(PlanText::new(Planner::Postgres, text));
        }
        let baseline = Settings::from([("case".to_owned(), Setting::from("off"))]);
        let contrast = Contrast::of(&results, &baseline);
        assert_eq!(contrast.lines.len(), 3);
        for line in &contrast.lines {
            let speedup = line.speedup.unwrap();
            assert!((speedup.ratio - 1.24).abs() < 0.03, "{speedup:?}");
            assert!(line.p_adjusted >= speedup.p, "{line:?}");
            assert!((line.cpu.unwrap().ratio * speedup.ratio - 1.0).abs() < 1e-9);
        }
        let labels: Vec<_> = contrast.lines.iter().map(|line| line.plan.unwrap()).collect();
        assert_eq!(labels, [Label::Same, Label::Same, Label::Changed]);
        assert_eq!(contrast.total.lines, 3);
        assert!(contrast.total.text().contains("% faster with 1"), "{}", contrast.total.text());
    }

    #[test]
    fn the_article_in_words() {
        let total = Total {
            lines: 22,
            elapsed_s_before: 692.0,
            elapsed_s_after: 559.0,
            cpu_s_before: 2253.0,
            cpu_s_after: 3374.0,
        };
        assert_eq!(total.text(), "24 % faster with 50 % more CPU");
    }
}
