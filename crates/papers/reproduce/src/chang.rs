//! Chang's arithmetic (2013): what "24 % faster" and "a doubled core" mean there.

use workahead_study::contrast::{percent_faster, percent_more};

use crate::published::{Input, PrintedFigure, Quantity, RecomputedFigure};

/// Two threads on one core of which both together gain `gain` over one alone (0.3 for 30 %): the
/// speed of each, against a thread that has its core for itself.
pub fn doubled_up_speed(gain: f64) -> f64 {
    (1.0 + gain) / 2.0
}

/// How much longer such a thread takes: at 30 % gain 1.54 times as long, and a plan that waits for
/// all of its threads with it.
pub fn doubled_up_time(gain: f64) -> f64 {
    1.0 / doubled_up_speed(gain)
}

/// The article's own figures by that arithmetic, against what it prints (A10).
pub fn recomputed() -> Vec<RecomputedFigure> {
    const ROW: &str = "A10";
    let of = |place: &str, value: f64, decimals: i32| Input {
        place: place.to_owned(),
        printed: PrintedFigure { value, decimals },
        is_exact: false,
    };
    let about = |value, decimals| Some(Quantity::Exactly(PrintedFigure { value, decimals }));
    let off_on = |what: &str, off, on| {
        let place = |side: &str| format!("sum of the 22 queries, {what}, HT {side}, s");
        vec![of(&place("off"), off, 0), of(&place("on"), on, 0)]
    };
    let (elapsed, cpu) = (off_on("elapsed", 692.0, 559.0), off_on("CPU", 2253.0, 3374.0));
    let gain = || vec![of("gain of both logical processors of a core, %", 30.0, 0)];
    let share = |per_cent: f64| per_cent / 100.0;
    vec![
        RecomputedFigure::of((ROW, "how much faster with HT, %"), elapsed, about(24.0, 0), |v| {
            percent_faster(v[0], v[1])
        }),
        RecomputedFigure::of((ROW, "how much more CPU with HT, %"), cpu, about(50.0, 0), |v| {
            percent_more(v[0], v[1])
        }),
        RecomputedFigure::of(
            (ROW, "speed of a doubled-up thread, % of one alone"),
            gain(),
            about(65.0, 0),
            |v| doubled_up_speed(share(v[0])) * 100.0,
        ),
        // "50% longer" is said of round figures, in passing.
        RecomputedFigure::of((ROW, "how much longer it takes, %"), gain(), about(50.0, -1), |v| {
            percent_more(1.0, doubled_up_time(share(v[0])))
        }),
        RecomputedFigure::of((ROW, "its time over that of one alone"), gain(), None, |v| {
            doubled_up_time(share(v[0]))
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::published::Agreement;

    #[test]
    fn figures_of_the_article() {
        // Sums over 22 queries, hyper-threading off at four threads, on at eight (E1.1, E1.2).
        assert_eq!(percent_faster(692.0, 559.0).round(), 24.0);
        assert_eq!(percent_more(2253.0, 3374.0).round(), 50.0);
        // The double-up model (S1.12).
        assert_eq!(doubled_up_speed(0.30), 0.65);
        assert!((doubled_up_time(0.30) - 1.54).abs() < 0.005);
        assert_eq!(doubled_up_time(1.0), 1.0, "siblings as good as cores cost nothing");
    }

    #[test]
    fn the_article_prints_what_its_figures_give() {
        let recomputed = recomputed();
        let rounded: Vec<f64> =
            recomputed.iter().map(|of| (of.ours * 100.0).round() / 100.0).collect();
        assert_eq!(rounded, [23.79, 49.76, 65.0, 53.85, 1.54]);
        let agree: Vec<Agreement> = recomputed.iter().map(|of| of.agreement).collect();
        let same = Agreement::Same;
        assert_eq!(agree, [same, same, same, same, Agreement::NothingPrinted]);
        assert!(recomputed.iter().all(|of| of.row == "A10"));
    }
}
