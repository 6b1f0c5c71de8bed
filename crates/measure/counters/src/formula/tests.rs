//! Formulas against a naive oracle, against scaling, and against garbage.

use proptest::prelude::*;

use super::*;

fn formula(text: &str) -> Formula {
    Formula::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Every event counted as often as its name is long: A is 1, BB is 2.
fn by_length(name: &str) -> Option<f64> {
    f64::from(u8::try_from(name.len()).ok()?).into()
}

fn eval(text: &str) -> Value {
    formula(text).eval(&by_length)
}

#[test]
fn precedence_is_that_of_arithmetic() {
    for (text, expected) in [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("8 - 4 - 2", 2.0),
        ("8 / 4 / 2", 1.0),
        ("8 - 4 / 2 + 1", 7.0),
        ("min(3, 1 + 1) + max(0, 2 - 5)", 2.0),
        ("  0.5*  BB ", 1.0),
        ("1000 * A / BB", 500.0),
        ("max ( A , BB )", 2.0),
    ] {
        assert_eq!(eval(text), Ok(expected), "{text}");
    }
}

#[test]
fn names_are_those_of_the_vendors() {
    let text = "MEM_LOAD_RETIRED.L2_MISS / UOPS_RETIRED.SLOTS:c2 + EXE_ACTIVITY.1_PORTS_UTIL / \
                ls_dmnd_fills_from_sys.local_l2 - min_latency / maximum";
    let names: Vec<String> = formula(text).names().into_iter().map(str::to_owned).collect();
    assert_eq!(
        names,
        [
            "EXE_ACTIVITY.1_PORTS_UTIL",
            "MEM_LOAD_RETIRED.L2_MISS",
            "UOPS_RETIRED.SLOTS:c2",
            "ls_dmnd_fills_from_sys.local_l2",
            "maximum",
            "min_latency",
        ]
    );
    assert!(formula("1 + 2").names().is_empty());
}

#[test]
fn an_error_says_where_and_what() {
    for (text, says) in [
        (
            "A +",
            "at character 4 of the formula: expected a number, an event, `min(`, `max(` or \
                 `(`, found the end",
        ),
        ("(A + B", "at character 7 of the formula: expected an operator or `)`, found the end"),
        ("A B", "at character 3 of the formula: expected an operator or the end, found `B`"),
        ("1_PORTS", "at character 2 of the formula: expected an operator or the end, found `_`"),
        ("min(A)", "at character 6 of the formula: expected `,` and the other operand, found `)`"),
        ("min", "at character 4 of the formula: expected `(`, found the end"),
        (
            "é",
            "at character 1 of the formula: expected a number, an event, `min(`, `max(` or \
               `(`, found `é`",
        ),
        (
            "1.2.3",
            "at character 1 of the formula: expected a number with at most one point, \
                   found `1`",
        ),
    ] {
        let error = Formula::parse(text).unwrap_err();
        assert_eq!(error.to_string(), says, "{text}");
    }
}

#[test]
fn unavailable_values_give_the_reason() {
    let none = |_: &str| None;
    let unavailable = formula("A / B").eval(&none).unwrap_err();
    assert_eq!(unavailable.to_string(), "A is missing: it was not counted");
    // Also where the other operand would win: its value is unknown.
    assert!(formula("max(0, A)").eval(&none).is_err());
    let zero = |name: &str| Some(if name == "Z" { 0.0 } else { 3.0 });
    let unavailable = formula("A / (Z + Z)").eval(&zero).unwrap_err();
    assert_eq!(
        unavailable.to_string(),
        "Z + Z is zero, so nothing is relative to it: count for longer"
    );
    assert_eq!(formula("Z / A").eval(&zero), Ok(0.0));
    let broken = |_: &str| Some(f64::NAN);
    assert_eq!(
        formula("A").eval(&broken).unwrap_err().to_string(),
        "A can't be NaN: count it again"
    );
    let huge = |_: &str| Some(1e300);
    assert_eq!(
        formula("A * A").eval(&huge).unwrap_err().to_string(),
        "A * A can't be inf: count it again"
    );
}

#[test]
fn the_degree_tells_ratios_from_counts() {
    for ratio in [
        "A / B",
        "1 - A / B",
        "max(0, A - B) / C",
        "A * B / (C * C)",
        "2",
        "0 * A",
        "min(A / B, 1)",
        "(A + B) / 4 / C",
        "max(A - B, 0) / C",
    ] {
        assert!(formula(ratio).is_ratio(), "{ratio}");
    }
    for other in [
        "A",
        "A * B",
        "1 / A",
        "A + 1",
        "A / B + C",
        "max(1, A) / B",
        "A / 0",
        "A / B / C",
        "A / (0 * B)",
    ] {
        assert!(!formula(other).is_ratio(), "{other}");
    }
}

#[test]
fn limits_hold() {
    let deep = |depth: usize| format!("{}A{}", "(".repeat(depth), ")".repeat(depth));
    assert!(Formula::parse(&deep(64)).is_ok());
    assert!(matches!(Formula::parse(&deep(65)), Err(FormulaError::TooDeep { at: 66, .. })));
    let long = vec!["A"; 1024].join(" + ");
    assert_eq!(formula(&long).eval(&|_| Some(1.0)), Ok(1024.0));
    let longer = format!("{long} + A");
    assert!(matches!(Formula::parse(&longer), Err(FormulaError::TooLong { .. })));
}

fn trees() -> impl Strategy<Value = Node> {
    let quarter = (0u16..400).prop_map(|quarters| Node::Number(f64::from(quarters) / 4.0));
    let event = prop::sample::select(vec!["A", "B.C_1", "d:c2", "_e"])
        .prop_map(|name| Node::Event(name.to_owned()));
    prop_oneof![quarter, event].prop_recursive(6, 40, 2, |inner| {
        let operations = vec![
            Operation::Add,
            Operation::Subtract,
            Operation::Multiply,
            Operation::Divide,
            Operation::Min,
            Operation::Max,
        ];
        (prop::sample::select(operations), inner.clone(), inner)
            .prop_map(|(operation, left, right)| Node::of(operation, left, right))
    })
}

impl Node {
    fn of(operation: Operation, left: Node, right: Node) -> Self {
        Self::Of(operation, Box::new(left), Box::new(right))
    }
}

/// Only ratios: quotients of sums, and what may be added to a quotient.
fn ratios() -> impl Strategy<Value = Node> {
    let event = |names: Vec<&'static str>| {
        prop::sample::select(names).prop_map(|name| Node::Event(name.to_owned()))
    };
    let sum = (event(vec!["A", "B"]), event(vec!["C", "d"]))
        .prop_map(|(left, right)| Node::of(Operation::Add, left, right));
    let quotient =
        (sum.clone(), sum).prop_map(|(above, below)| Node::of(Operation::Divide, above, below));
    let number = (1u8..9).prop_map(|number| Node::Number(f64::from(number)));
    prop_oneof![quotient, number].prop_recursive(4, 16, 2, |inner| {
        let operations = vec![Operation::Add, Operation::Multiply, Operation::Max, Operation::Min];
        (prop::sample::select(operations), inner.clone(), inner)
            .prop_map(|(operation, left, right)| Node::of(operation, left, right))
    })
}

/// The oracle: IEEE arithmetic without any checks.
fn naive(node: &Node, counts: &[f64; 4]) -> f64 {
    match node {
        Node::Number(number) => *number,
        Node::Event(name) => counts[name.len() % 4],
        Node::Of(operation, left, right) => {
            let (left, right) = (naive(left, counts), naive(right, counts));
            match operation {
                Operation::Add => left + right,
                Operation::Subtract => left - right,
                Operation::Multiply => left * right,
                Operation::Divide => left / right,
                Operation::Min if left < right => left,
                Operation::Max if left > right => left,
                Operation::Min | Operation::Max => right,
            }
        }
    }
}

/// Whether the oracle divides by zero or leaves the finite numbers on its way.
fn unfit(node: &Node, counts: &[f64; 4]) -> bool {
    let inside = match node {
        Node::Of(_, left, right) => unfit(left, counts) || unfit(right, counts),
        Node::Number(_) | Node::Event(_) => false,
    };
    inside || !naive(node, counts).is_finite()
}

proptest! {
    #[test]
    fn printed_and_parsed_trees_are_the_same_and_worth_the_same(
        tree in trees(),
        counts in prop::array::uniform4((0u16..50).prop_map(f64::from)),
    ) {
        let parsed = formula(&tree.to_string());
        prop_assert_eq!(&parsed.tree, &tree);
        let count = |name: &str| Some(counts[name.len() % 4]);
        match parsed.eval(&count) {
            Ok(value) => {
                prop_assert!(!unfit(&tree, &counts));
                prop_assert_eq!(value, naive(&tree, &counts));
            }
            Err(unavailable) => prop_assert!(unfit(&tree, &counts), "{}: {}", tree, unavailable),
        }
    }

    #[test]
    fn scaling_all_counts_leaves_a_ratio_as_it_is(
        tree in ratios(),
        counts in prop::array::uniform4((1u16..50).prop_map(f64::from)),
        power in 0i32..12,
    ) {
        let ratio = formula(&tree.to_string());
        prop_assert!(ratio.is_ratio());
        // Powers of two, so that scaling rounds nothing.
        let scale = 2f64.powi(power);
        let once = ratio.eval(&|name| Some(counts[name.len() % 4]));
        let scaled = ratio.eval(&|name| Some(scale * counts[name.len() % 4]));
        prop_assert_eq!(once, scaled);
    }

    /// The other way round: what the walk calls a ratio behaves as one, whatever its shape. One
    /// tree in twenty-five is one.
    #[test]
    fn no_tree_is_called_a_ratio_wrongly(
        trees in prop::collection::vec(trees(), 25),
        counts in prop::array::uniform4((1u16..50).prop_map(f64::from)),
    ) {
        let formulas = trees.iter().map(|tree| formula(&tree.to_string()));
        for ratio in formulas.filter(Formula::is_ratio) {
            let once = ratio.eval(&|name| Some(counts[name.len() % 4]));
            let scaled = ratio.eval(&|name| Some(4.0 * counts[name.len() % 4]));
            prop_assert_eq!(once, scaled, "{}", ratio);
        }
    }

    #[test]
    fn garbage_is_refused_without_a_panic(text in "[-+*/(),. 0-9A-Zmaxin_:é]{0,60}") {
        if let Ok(formula) = Formula::parse(&text) {
            let _ = formula.eval(&by_length);
            let _ = formula.is_ratio();
        }
    }

    #[test]
    fn any_text_is_refused_without_a_panic(text in any::<String>()) {
        if let Err(error) = Formula::parse(&text) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
