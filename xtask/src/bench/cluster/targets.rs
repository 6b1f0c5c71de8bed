//! The targets of a cluster, and how far it is from them.

use serde_json::{Value, json};

use super::figures::{Row, Table};
use super::ways::Way;

/// Queries whose exchanges filters should cut.
const FILTERED: [usize; 5] = [4, 16, 18, 21, 22];

#[derive(Clone, Copy)]
enum Limit {
    None,
    AtMost(f64),
    AtLeast(f64),
}

impl Limit {
    fn text(self, figure: Option<f64>) -> String {
        let (text, met) = match self {
            Self::None => return String::new(),
            Self::AtMost(most) => (format!("≤ {most:.2}"), figure.map(|figure| figure <= most)),
            Self::AtLeast(least) => (format!("≥ {least:.2}"), figure.map(|figure| figure >= least)),
        };
        match met {
            None => text,
            Some(true) => format!("{text}: met"),
            Some(false) => format!("{text}: missed"),
        }
    }
}

/// A figure of all queries, and the same of those that are mostly joins.
struct Target {
    figure: String,
    all: f64,
    six: Option<f64>,
    targets: [Limit; 2],
}

impl Target {
    fn of(figure: String, sums: &Sums, of: impl Fn(&Row) -> f64, targets: [Limit; 2]) -> Self {
        Self { figure, all: of(&sums.all), six: sums.six.as_ref().map(of), targets }
    }

    fn row(&self) -> Value {
        let [all, six] = self.targets;
        json!({
            "figure": self.figure,
            "all queries": self.all,
            "target of all": all.text(Some(self.all)),
            "join-bound six": self.six,
            "target of the six": six.text(self.six),
        })
    }
}

/// Sums of a table.
struct Sums {
    all: Row,
    six: Option<Row>,
}

impl Sums {
    fn of(table: &Table) -> Self {
        Self { all: table.all(), six: table.six() }
    }
}

/// The targets, with the figures.
pub(super) fn rows(wall_s: &Table, cpu_s: &Table, bytes: &Table, workers: usize) -> Vec<Value> {
    let (wall, cpu) = (Sums::of(wall_s), Sums::of(cpu_s));
    let name = |way: Way| way.name(workers);
    let ratio = |over: Way, under: Way| move |row: &Row| row[over as usize] / row[under as usize];
    let second = move |row: &Row| {
        ratio(Way::OneWorker, Way::Workers)(row) / ratio(Way::OneThread, Way::Threads)(row)
    };
    let worst = |table: &Table| {
        let ratios = table.queries.iter().map(|(query, row)| (*query, chosen_over_best(row)));
        ratios.max_by(|one, other| one.1.total_cmp(&other.1))
    };
    let (query, all) = worst(wall_s).unwrap_or_default();
    let of_six = wall.six.and_then(|_| worst(&wall_s.join_bound()));
    let six_query = of_six.map_or(String::new(), |(query, _)| format!(", of the six q{query}"));
    let (most, least) = (Limit::AtMost, Limit::AtLeast);
    let targets = [
        Target::of(
            format!("time: {} over {}", name(Way::OneWorker), name(Way::OneThread)),
            &wall,
            ratio(Way::OneWorker, Way::OneThread),
            [most(1.10), most(1.10)],
        ),
        Target::of(
            format!("gain of {} over that of {}", name(Way::Workers), name(Way::Threads)),
            &wall,
            second,
            [least(1.0), least(1.0)],
        ),
        Target::of(
            format!("speed: {} over {}", name(Way::Workers), name(Way::Threads)),
            &wall,
            ratio(Way::Threads, Way::Workers),
            [least(0.85), least(0.80)],
        ),
        Target {
            figure: format!("time of the worst query, as chosen: q{query}{six_query}"),
            all,
            six: of_six.map(|(_, ratio)| ratio),
            targets: [most(1.15), most(1.15)],
        },
        Target::of(
            format!("CPU time: {} over {}", name(Way::WorkersStock), name(Way::Workers)),
            &cpu,
            ratio(Way::WorkersStock, Way::Workers),
            [Limit::None, least(1.4)],
        ),
    ];
    targets.iter().map(Target::row).chain(exchanged(bytes, workers)).collect()
}

/// Bytes that filters across stages leave, of queries whose exchanges they should cut.
fn exchanged(bytes: &Table, workers: usize) -> Option<Value> {
    let ratio = |row: &Row| row[Way::Workers as usize] / row[Way::WorkersUnfiltered as usize];
    let cut: Vec<(usize, f64)> = FILTERED
        .iter()
        .filter_map(|query| Some((*query, ratio(bytes.queries.get(query)?))))
        .filter(|(_, ratio)| ratio.is_finite())
        .collect();
    let worst = cut.iter().map(|(_, ratio)| *ratio).max_by(f64::total_cmp)?;
    let each: Vec<String> = cut.iter().map(|(query, of)| format!("q{query} {of:.2}")).collect();
    let [with, without] = [Way::Workers, Way::WorkersUnfiltered].map(|way| way.name(workers));
    let target = Target {
        figure: format!("bytes: {with} over {without}, the worst of {}", each.join(", ")),
        all: worst,
        six: None,
        targets: [Limit::AtMost(1.0 / 3.0), Limit::None],
    };
    Some(target.row())
}

/// The time of a query, as chosen, over the better of a process and all workers.
fn chosen_over_best(row: &Row) -> f64 {
    row[Way::Chosen as usize] / row[Way::Threads as usize].min(row[Way::Workers as usize])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// One thread, two, two stock, one worker, two, two unfiltered, two stock, chosen.
    const ROW: Row = [10.0, 6.0, 8.0, 11.0, 7.0, 14.0, 9.0, 6.6];

    #[test]
    fn figures_and_verdicts_follow_from_the_sums() {
        let slow = [1.0, 1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 0.6];
        let table = Table { queries: BTreeMap::from([(1, ROW), (2, slow)]) };
        let rows = rows(&table, &table, &table, 2);
        assert_eq!(rows.len(), 5, "none of the queries should be filtered");
        let figure = |at: usize| rows[at]["all queries"].as_f64().unwrap();
        assert_eq!(figure(0), 12.0 / 11.0);
        assert_eq!(figure(1), (12.0 / 7.5) / (11.0 / 7.0));
        assert_eq!(figure(2), 7.0 / 7.5);
        assert_eq!(figure(3), 1.2);
        assert!(rows[3]["figure"].as_str().unwrap().ends_with(": q2"));
        assert_eq!(figure(4), 10.0 / 7.5);
        assert_eq!(rows[0]["target of all"], "≤ 1.10: met");
        assert_eq!(rows[3]["target of all"], "≤ 1.15: missed");
        assert_eq!(
            (&rows[4]["target of all"], &rows[4]["target of the six"]),
            (&json!(""), &json!("≥ 1.40"))
        );
    }

    #[test]
    fn the_six_have_figures_of_their_own() {
        let queries = [4, 5, 7, 9, 18, 21].map(|query| (query, ROW));
        let other = (1, [1.0; 8]);
        let table = Table { queries: queries.into_iter().chain([other]).collect() };
        let rows = rows(&table, &table, &table, 2);
        assert_eq!(rows[0]["join-bound six"], 1.1);
        assert_eq!(rows[3]["join-bound six"], 6.6 / 6.0);
        assert_eq!(rows[4]["target of the six"], "≥ 1.40: missed");
        assert_eq!(rows[5]["all queries"], 0.5);
        assert_eq!(rows[5]["target of all"], "≤ 0.33: missed");
        assert!(rows[5]["figure"].as_str().unwrap().ends_with("q4 0.50, q18 0.50, q21 0.50"));
    }
}
