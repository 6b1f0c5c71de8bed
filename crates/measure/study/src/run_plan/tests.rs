//! The product, its blocks and its order.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use proptest::prelude::*;

use super::*;
use crate::setting::one_line;

/// A study with axes of these lengths, as many cases, and the axes of `blocks` outermost.
fn spec(axes: &[usize], cases: usize, blocks: &BTreeSet<usize>, repetitions: u32) -> Spec {
    let mut text = String::from("title = 't'\nquestion = 'q'\nengine = 'mock'\n[axes]\n");
    for (index, length) in axes.iter().enumerate() {
        let values: Vec<usize> = (0..*length).collect();
        writeln!(text, "axis{index} = {values:?}").unwrap();
    }
    let blocks: Vec<String> = blocks.iter().map(|index| format!("axis{index}")).collect();
    writeln!(text, "[method]\nrepetitions = {repetitions}\nblocks = {blocks:?}").unwrap();
    for case in 0..cases {
        writeln!(text, "[[cases]]\nname = 'case{case}'\ntechnique = 't{case}'").unwrap();
    }
    Spec::parse("generated", &text).unwrap()
}

proptest! {
    #[test]
    fn the_product_is_covered_exactly_once(
        axes in prop::collection::vec(1usize..4, 0..4),
        cases in 0usize..4,
        chosen in prop::collection::btree_set(0usize..4, 0..4),
        repetitions in 1u32..5,
    ) {
        let blocks: BTreeSet<usize> = chosen.into_iter().filter(|i| *i < axes.len()).collect();
        let run_plan = RunPlan::new(&spec(&axes, cases, &blocks, repetitions));
        let product: usize = axes.iter().product::<usize>() * cases.max(1);
        prop_assert_eq!(run_plan.cells.len(), product);
        let places: BTreeSet<String> =
            run_plan.cells.iter().map(|cell| one_line(&cell.place)).collect();
        prop_assert_eq!(places.len(), product);

        // Blocks: as many as their axes' product, each of one kind of data, none split.
        prop_assert_eq!(run_plan.blocks, blocks.iter().map(|i| axes[*i]).product::<usize>());
        let mut data: BTreeMap<usize, String> = BTreeMap::new();
        for cell in &run_plan.cells {
            let of: Vec<String> =
                blocks.iter().map(|i| cell.place[&format!("axis{i}")].to_string()).collect();
            prop_assert_eq!(data.entry(cell.block).or_insert(of.join(",")).clone(), of.join(","));
        }
        let kinds: BTreeSet<&String> = data.values().collect();
        prop_assert_eq!(kinds.len(), run_plan.blocks);
        let blocks: Vec<usize> = run_plan.cells.iter().map(|cell| cell.block).collect();
        prop_assert!(blocks.is_sorted());

        // Visits: every cell once per repetition, even ones forward, odd ones backward.
        let mut visits = BTreeSet::new();
        for block in 0..run_plan.blocks {
            for repetition in 0..repetitions {
                let round = run_plan.visits(block, repetition);
                let cells: Vec<usize> = round.iter().map(|visit| visit.cell).collect();
                let backward = cells.iter().rev().is_sorted();
                prop_assert!([cells.is_sorted(), backward][repetition as usize % 2]);
                visits.extend(round.iter().map(|visit| (visit.cell, visit.repetition)));
                prop_assert!(round.iter().enumerate().all(|(slot, visit)| visit.slot == slot));
            }
        }
        prop_assert_eq!(visits.len(), run_plan.samples());
    }
}

#[test]
fn later_settings_win() {
    let spec = Spec::parse(
        "demo",
        "title = 't'\nquestion = 'q'\nengine = 'mock'\nworkload = { a = 1, b = 1, c = 1 }\n\
         [axes]\nb = [2]\nc = [2]\n[[cases]]\nname = 'x'\nc = 3\n",
    )
    .unwrap();
    let cell = &RunPlan::new(&spec).cells[0];
    let of = |key| cell.integer(key);
    assert_eq!((of("a"), of("b"), of("c")), (Some(1), Some(2), Some(3)));
    assert_eq!(cell.text("case"), Some("x"));
    assert_eq!(
        cell.place["c"],
        Setting::Integer(2),
        "the place is the coordinates, not the settings"
    );
}

#[test]
fn the_baseline_differs_by_the_named_axes_only() {
    let spec = spec(&[2, 2], 3, &BTreeSet::from([0]), 1);
    let run_plan = RunPlan::new(&spec);
    let baseline = Settings::from([("case".to_owned(), Setting::from("case0"))]);
    for cell in &run_plan.cells {
        let base = run_plan.baseline_of(cell, &baseline).unwrap();
        assert_eq!(base.case(), "case0");
        assert_eq!(base.place["axis0"], cell.place["axis0"]);
        assert_eq!(base.place["axis1"], cell.place["axis1"]);
        assert_eq!(base.block, cell.block);
    }
}

#[test]
fn a_sweep_varies_some_cells_only_beside_the_cell_it_varies() {
    let spec = Spec::parse(
        "swept",
        r#"
        title = "t"
        question = "q"
        engine = "native"
        workload = { rows = 10 }
        [axes]
        pages = ["huge", "small"]
        [[cases]]
        name = "plain"
        [[cases]]
        name = "set"
        width = 7
        [[sweeps]]
        axis = "width"
        values = [1, 2]
        where = { pages = "huge", case = "set" }
        [method]
        baseline = { case = "plain" }
        charts = [{ kind = "curves", x = "width" }]
        "#,
    )
    .unwrap();
    let run_plan = RunPlan::new(&spec);
    let labels: Vec<String> =
        run_plan.cells.iter().map(|cell| cell.label(&run_plan.axes)).collect();
    assert_eq!(
        labels,
        [
            "huge / plain",
            "huge / set",
            "huge / 1 / set",
            "huge / 2 / set",
            "small / plain",
            "small / set"
        ]
    );
    assert_eq!(
        run_plan.cells.iter().map(|cell| cell.index).collect::<Vec<_>>(),
        [0, 1, 2, 3, 4, 5]
    );
    assert_eq!(
        run_plan.cells.iter().map(|cell| cell.block).collect::<Vec<_>>(),
        [0, 0, 0, 0, 1, 1]
    );
    let widths = [None, Some(7), Some(1), Some(2), None, Some(7)];
    assert_eq!(run_plan.cells.iter().map(|cell| cell.integer("width")).collect::<Vec<_>>(), widths);
    let baseline = run_plan.baseline_of(&run_plan.cells[3], &spec.method.baseline).unwrap();
    assert_eq!(baseline.index, 0);
    assert_eq!(run_plan.axes, ["pages", "width", "case"]);
    let case = Settings::from([("case".to_owned(), Setting::from("set"))]);
    let meant: Vec<usize> = run_plan
        .cells
        .iter()
        .filter(|cell| run_plan.means(&case, cell))
        .map(|cell| cell.index)
        .collect();
    assert_eq!(meant, [1, 5], "the sweep's cells have the case too, and are not included");
}

/// A block of reads is compared with reads, not with the writes that all other cells do.
#[test]
fn a_baseline_that_is_swept_too_is_the_one_with_the_same_value() {
    let text = "title = 't'\nquestion = 'q'\nengine = 'native'\n\
        [axes]\nscheduler = ['cfs', 'itas']\nblock = [1, 2]\n\
        [[sweeps]]\naxis = 'oper'\nvalues = ['read']\nwhere = { block = 2 }\n\
        [method]\nbaseline = { scheduler = 'cfs' }\n";
    let spec = Spec::parse("swept", text).unwrap();
    let run_plan = RunPlan::new(&spec);
    let at = |label: &str| {
        run_plan.cells.iter().find(|cell| cell.label(&run_plan.axes) == label).unwrap()
    };
    let base = |label: &str| run_plan.baseline_of(at(label), &spec.method.baseline).unwrap();
    assert_eq!(base("itas / 2 / read").label(&run_plan.axes), "cfs / 2 / read");
    assert_eq!(base("itas / 2").label(&run_plan.axes), "cfs / 2");
    let read = Settings::from([("oper".to_owned(), Setting::from("read"))]);
    let of_reads = run_plan.baseline_of(at("itas / 2"), &read).unwrap();
    assert_eq!(of_reads.label(&run_plan.axes), "itas / 2 / read");
    assert!(run_plan.baseline_of(at("itas / 1"), &read).is_none());
}

#[test]
fn a_random_order_is_complete_seeded_and_new_in_every_repetition() {
    let text = |seed: u32| {
        format!(
            "title = 't'\nquestion = 'q'\nengine = 'mock'\nseed = {seed}\n[axes]\n\
             block = [1, 2]\nquery = [1, 2, 3, 4, 5, 6, 7, 8]\n\
             [method]\norder = 'random'\nblocks = ['block']\nrepetitions = 6\n"
        )
    };
    let run_plan = |seed| RunPlan::new(&Spec::parse("demo", &text(seed)).unwrap());
    let (run_plan, other) = (run_plan(7), run_plan(8));
    let order = |run_plan: &RunPlan, block, repetition| -> Vec<usize> {
        run_plan.visits(block, repetition).iter().map(|visit| visit.cell).collect()
    };
    let mut orders = BTreeSet::new();
    for block in 0..2 {
        for repetition in 0..6 {
            let found = order(&run_plan, block, repetition);
            assert_eq!(found, order(&run_plan, block, repetition), "the same the second time");
            let cells: BTreeSet<usize> = found.iter().copied().collect();
            assert_eq!(cells, (block * 8..block * 8 + 8).collect(), "complete blocks");
            orders.insert(found.iter().map(|cell| cell % 8).collect::<Vec<_>>());
        }
    }
    assert_eq!(orders.len(), 12, "a shuffle of 8 repeats itself once in 40320 times");
    assert_ne!(order(&run_plan, 0, 0), order(&other, 0, 0), "another seed, another order");
}

#[test]
fn default_methods_keep_their_fingerprints() {
    let run_plan = RunPlan::new(&spec(&[2], 2, &BTreeSet::new(), 2));
    let json = serde_json::to_string(&run_plan).unwrap();
    assert!(!json.contains("order") && !json.contains("protocol"), "{json}");
    let read: RunPlan = serde_json::from_str(&json).unwrap();
    assert_eq!(read, run_plan);
}

#[test]
fn a_cell_has_a_protocol() {
    use crate::protocol::Before;
    let run_plan = |axes: &str, method: &str| {
        let text = format!(
            "title = 't'\nquestion = 'q'\nengine = 'mock'\n[axes]\n{axes}\n[method]\n{method}\n"
        );
        Spec::parse("demo", &text).map(|spec| RunPlan::new(&spec))
    };
    let cold = run_plan("x = [1]", "protocol = 'cold'\nrestart = 'always'").unwrap();
    let expected =
        Protocol { start: Start::Cold, restart: Before::Always, restore: Before::WhenNeeded };
    assert_eq!(cold.cells[0].protocol, expected);
    // As an axis it overrides the method, and it is not a setting of the engine.
    let both = run_plan("protocol = ['warm', 'cold']", "protocol = 'cold'").unwrap();
    let starts: Vec<Start> = both.cells.iter().map(|cell| cell.protocol.start).collect();
    assert_eq!(starts, [Start::Warm, Start::Cold]);
    assert!(both.cells.iter().all(|cell| cell.get("protocol").is_none()));
    assert_eq!(both.cells[1].label(&both.axes), "cold");
    let refused = run_plan("protocol = ['warm', 'cool']", "").unwrap_err().to_string();
    assert!(refused.contains("`cool`") && refused.contains("cold"), "{refused}");
    let refused = run_plan("x = [1]", "restart = 'sometimes'").unwrap_err().to_string();
    assert!(refused.contains("sometimes"), "{refused}");
}
