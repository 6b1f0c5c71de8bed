//! From each degree of parallelism to the next: how much faster, at how much more CPU time.
//!
//! Chang's charts of steps (2013): elapsed(d) / elapsed(2d) and CPU(2d) / CPU(d), query by query,
//! with the class that each query falls into.

use workahead_study::classes::{self, ScalingCurve, Step};
use workahead_study::method::Chart;

use super::{CELLS_MAX, Draw, Figure, Panel, not_drawn};
use crate::chart::Screen;
use crate::chart::heat::{Heat, Hues, Row, Square};
use crate::number;
use crate::view::View;
use crate::words;

pub(super) fn figure(view: &View<'_>, chart: &Chart) -> Option<Figure> {
    let axis = chart.x.as_deref().or(chart.by.as_deref()).or_else(|| degrees(view))?;
    let found = classes::scaling_curves(view.results, axis);
    let found: Vec<&ScalingCurve> = found
        .iter()
        .filter(|one| one.cells.iter().any(|cell| view.cells()[*cell].has(&chart.only)))
        .collect();
    let steps = steps(&found);
    if steps.is_empty() {
        return None;
    }
    let title = chart.title.as_deref().map_or_else(
        || format!("From one degree to the next: {}", words::axis(axis)),
        words::label,
    );
    let squares = found.len().saturating_mul(steps.len());
    if squares > CELLS_MAX {
        return Some(not_drawn(title, &format!("{squares} steps are more than {CELLS_MAX}")));
    }
    let of_step = |(from, to): &(u32, u32)| format!("{from} → {to}");
    let named =
        |what: &'static str| steps.iter().map(move |step| format!("{what} {}", of_step(step)));
    let columns: Vec<String> = named("elapsed").chain(named("CPU")).collect();
    let heat = Heat {
        description: title.clone(),
        along: "elapsed before over after; CPU after over before".to_owned(),
        columns,
        rows: found.iter().map(|one| row(one, &steps)).collect(),
        hues: Hues::AroundOne,
    };
    let panel = Panel {
        title: String::new(),
        wide: Some(Draw::draw(&heat, Screen::Wide)),
        narrow: Draw::draw(&heat, Screen::Narrow),
    };
    Some(Figure {
        title,
        keys: Vec::new(),
        panels: vec![panel],
        caption: "Elapsed: how many times as fast a step is (2 is ideal for a doubling). CPU: how \
                  many times the CPU time it takes (1 is ideal). In bold where the 95 % interval \
                  leaves out 1. Classes after Chang (2013)."
            .to_owned(),
    })
}

/// The axis of degrees, where the study has one of several whole numbers.
pub(crate) fn degrees<'a>(view: &'a View<'_>) -> Option<&'a str> {
    let known = ["parallel", "cpus", "threads"];
    let axes = view.results.run_plan.axes.iter().map(String::as_str);
    let mut degrees = axes.filter(|axis| known.contains(axis) && view.varies(axis));
    degrees.find(|axis| {
        view.cells()
            .iter()
            .filter_map(|cell| cell.place.get(*axis))
            .all(|value| value.as_integer().is_some())
    })
}

/// The different steps, by degree.
fn steps(found: &[&ScalingCurve]) -> Vec<(u32, u32)> {
    let of_one =
        |one: &&ScalingCurve| one.scaling.steps.iter().map(|step| (step.from, step.to)).collect();
    let mut steps: Vec<(u32, u32)> = found.iter().flat_map::<Vec<_>, _>(of_one).collect();
    steps.sort_unstable();
    steps.dedup();
    steps
}

fn row(one: &ScalingCurve, steps: &[(u32, u32)]) -> Row {
    let step = |at: &(u32, u32)| one.scaling.steps.iter().find(|step| (step.from, step.to) == *at);
    let elapsed = steps.iter().map(|at| step(at).map_or_else(absent, elapsed));
    let cpu = steps.iter().map(|at| step(at).and_then(cpu).unwrap_or_else(absent));
    let class = one.scaling.class.text();
    Row {
        name: one.label.clone(),
        note: format!("{class}: {}", one.scaling.reason),
        squares: elapsed.chain(cpu).collect(),
    }
}

fn absent() -> Square {
    Square::Missing("not measured".to_owned())
}

fn elapsed(step: &Step) -> Square {
    let ends = step.interval.map(|ends| number::ratio_interval((ends.low, ends.high)));
    let ends = ends.map_or_else(|| "one sample".to_owned(), |ends| format!("95 % interval {ends}"));
    let plan = if step.plan_changes { "; another plan" } else { "" };
    let words = number::ratio(step.speedup);
    Square::Value {
        value: step.speedup,
        title: format!("{words}, ideal {} ({ends}){plan}", number::plain(step.ideal)),
        words,
        is_sure: step.interval.is_some_and(|ends| !ends.includes(1.0)),
    }
}

/// More CPU time is coloured like slower: by the inverse of the ratio.
fn cpu(step: &Step) -> Option<Square> {
    let cpu = step.cpu?;
    let words = number::ratio(cpu);
    let title = format!("{words} the CPU time");
    Some(Square::Value { value: 1.0 / cpu, words, is_sure: step.cpu_falls, title })
}
