//! Invariants of any tasks.

use proptest::prelude::*;

use super::*;

/// A generated task.
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

/// All disciplines.
fn choosings() -> Vec<Discipline> {
    let assignment = |role| RoleAssignment { role, channel: 0 };
    let mut roles = vec![assignment(Role::Slave); 4];
    roles[0] = assignment(Role::Master);
    let tunables = Tunables { bonus_ns: 100, limit: 5, ..Tunables::default() };
    vec![
        Discipline::Fair,
        Discipline::Deadline,
        tas(100, 5),
        tas(1 << 40, u32::MAX),
        Discipline::Aggregating { tunables, roles },
        Discipline::Gang { slot_ns: 60 },
        Discipline::Fitting { reach_ns: 100 },
    ]
}

/// The longest slice of a thread, times the number of threads of a CPU.
const AT_ONCE: u64 = 40 * 12;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Bonus 0 equals fair queueing, dispatch for dispatch.
    #[test]
    fn no_bonus_is_fair_queueing(shapes in shapes(), limit in 0_u32..4) {
        let (fair, figures) = ran(tasks(&shapes), &by(Discipline::Fair));
        let (same, of_tas) = ran(tasks(&shapes), &by(tas(0, limit)));
        prop_assert_eq!(fair, same);
        prop_assert_eq!(figures.dispatches, of_tas.dispatches);
        prop_assert_eq!(figures.tasks, of_tas.tasks);
    }

    /// Threads that never stop get their weights' shares of the time, to within a slice each.
    #[test]
    fn shares_go_by_weight(weights in prop::collection::vec(1_u32..5, 1..7)) {
        for discipline in [Discipline::Fair, Discipline::Deadline] {
            let one = |weight: &u32| {
                Task { weight: weight * WEIGHT, ..task(0, cycle(1, None, FOREVER)) }
            };
            let tasks = weights.iter().map(one).chain([clock(4000)]).collect();
            let (_, figures) = ran(tasks, &by(discipline.clone()));
            let load: u32 = weights.iter().sum();
            for (weight, task) in weights.iter().zip(&figures.tasks) {
                let due = 4000 * u64::from(*weight) / u64::from(load);
                let slice = 70;
                let excess = (task.ran / CYCLE).abs_diff(due);
                prop_assert!(excess <= slice, "{discipline:?} {figures:?}");
            }
        }
    }

    /// In every discipline, no thread waits longer than the bound plus one turn of each.
    #[test]
    fn no_thread_starves(shapes in shapes(), most in 50_u64..400) {
        for discipline in choosings() {
            let promised = Scheduler { delay_max_ns: Some(most), ..by(discipline.clone()) };
            let (_, figures) = ran(tasks(&shapes), &promised);
            let waited = figures.tasks.iter().map(|task| task.waited_max).max().unwrap();
            prop_assert!(waited / CYCLE <= most + AT_ONCE, "{discipline:?} {}", waited / CYCLE);
        }
    }

    /// A CPU's time is a thread's or idle: running times add up, and runs repeat.
    #[test]
    fn time_adds_up(shapes in shapes()) {
        for discipline in choosings() {
            let (first, figures) = ran(tasks(&shapes), &by(discipline.clone()));
            let again = ran(tasks(&shapes), &by(discipline.clone()));
            prop_assert_eq!(&(first, figures.clone()), &again, "{:?}", discipline);
            for cpu in 0..2 {
                let of_cpu = shapes.iter().zip(&figures.tasks).filter(|(shape, _)| shape.0 == cpu);
                let sum: u64 = of_cpu.map(|(_, task)| task.ran / CYCLE).sum();
                prop_assert!(sum <= 3000 + 1, "{discipline:?} {sum}");
            }
            prop_assert!(figures.taken <= figures.chances && figures.co_run <= figures.grouped);
        }
    }
}
