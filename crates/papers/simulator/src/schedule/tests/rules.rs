//! What must hold of any tasks.

use proptest::prelude::*;

use super::*;

/// A task as numbers: CPU, weight, group, cycles at once, what it then asks for.
type Shape = (usize, u32, u64, u32, u8);

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let weights = prop::sample::select(vec![512, 1024, 2048, 3072]);
    prop::collection::vec((0_usize..2, weights, 0_u64..4, 1_u32..40, 0_u8..4), 1..12)
}

fn tasks(shapes: &[Shape]) -> Vec<Task<'static>> {
    let one = |(at, shape): (usize, &Shape)| {
        let (cpu, weight, group, uops, asks) = *shape;
        let call = match asks {
            0 => None,
            1 => Some(Call::Sleep { cycles: 7 * uops + at as u32 }),
            _ => Some(Call::Yield),
        };
        let task = task(cpu, cycle(uops, call, FOREVER));
        of_group(group, Task { weight, ..task })
    };
    shapes.iter().enumerate().map(one).chain([clock(3000)]).collect()
}

/// Any order of preferences.
fn choosings() -> Vec<Choosing> {
    let seat = |role| Seat { role, channel: 0 };
    let mut seats = vec![seat(Role::Slave); 4];
    seats[0] = seat(Role::Master);
    let tunables = Tunables { bonus_ns: 100, limit: 5, ..Tunables::default() };
    vec![
        Choosing::Fair,
        Choosing::Deadline,
        tas(100, 5),
        tas(1 << 40, u32::MAX),
        Choosing::Aggregating { tunables, seats },
        Choosing::Gang { slot_ns: 60 },
        Choosing::Fitting { reach_ns: 100 },
    ]
}

/// The longest that anybody of a task's CPU runs at once, and how many they are.
const AT_ONCE: u64 = 40 * 12;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Bonus 0 is fair queueing, turn for turn.
    #[test]
    fn no_bonus_is_fair_queueing(shapes in shapes(), limit in 0_u32..4) {
        let (fair, figures) = ran(tasks(&shapes), &by(Choosing::Fair));
        let (same, of_tas) = ran(tasks(&shapes), &by(tas(0, limit)));
        prop_assert_eq!(fair, same);
        prop_assert_eq!(figures.turns, of_tas.turns);
        prop_assert_eq!(figures.tasks, of_tas.tasks);
    }

    /// Threads that never stop have their weights' parts of the time, to within a slice each.
    #[test]
    fn shares_go_by_weight(weights in prop::collection::vec(1_u32..5, 1..7)) {
        for choosing in [Choosing::Fair, Choosing::Deadline] {
            let one = |weight: &u32| {
                Task { weight: weight * WEIGHT, ..task(0, cycle(1, None, FOREVER)) }
            };
            let tasks = weights.iter().map(one).chain([clock(4000)]).collect();
            let (_, figures) = ran(tasks, &by(choosing.clone()));
            let load: u32 = weights.iter().sum();
            for (weight, task) in weights.iter().zip(&figures.tasks) {
                let due = 4000 * u64::from(*weight) / u64::from(load);
                let slice = 70;
                prop_assert!((task.ran / CYCLE).abs_diff(due) <= slice, "{choosing:?} {figures:?}");
            }
        }
    }

    /// Whatever is preferred, nobody waits longer than what is promised, and one turn of each.
    #[test]
    fn nobody_starves(shapes in shapes(), most in 50_u64..400) {
        for choosing in choosings() {
            let promised = Schedule { delay_max_ns: Some(most), ..by(choosing.clone()) };
            let (_, figures) = ran(tasks(&shapes), &promised);
            let waited = figures.tasks.iter().map(|task| task.waited_max).max().unwrap();
            prop_assert!(waited / CYCLE <= most + AT_ONCE, "{choosing:?} {}", waited / CYCLE);
        }
    }

    /// All time of a CPU is somebody's or nobody's: what ran adds up, and happens again.
    #[test]
    fn time_adds_up(shapes in shapes()) {
        for choosing in choosings() {
            let (first, figures) = ran(tasks(&shapes), &by(choosing.clone()));
            let again = ran(tasks(&shapes), &by(choosing.clone()));
            prop_assert_eq!(&(first, figures.clone()), &again, "{:?}", choosing);
            for cpu in 0..2 {
                let of_cpu = shapes.iter().zip(&figures.tasks).filter(|(shape, _)| shape.0 == cpu);
                let sum: u64 = of_cpu.map(|(_, task)| task.ran / CYCLE).sum();
                prop_assert!(sum <= 3000 + 1, "{choosing:?} {sum}");
            }
            prop_assert!(figures.taken <= figures.chances && figures.co_run <= figures.grouped);
        }
    }
}
