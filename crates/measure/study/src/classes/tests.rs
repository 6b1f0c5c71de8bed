//! The classes, with the article's own examples.

use super::*;

fn point(degree: u32, elapsed_s: f64, cpu_s: f64) -> Point {
    Point { degree, elapsed_s: vec![elapsed_s], cpu_s: vec![cpu_s], plan: None }
}

fn class(points: &[Point]) -> Class {
    Scaling::of(points).unwrap().class
}

#[test]
fn classes_of_the_article() {
    // Just under 2, then lower: Q10.
    let conventional = [point(1, 100.0, 100.0), point(2, 52.0, 103.0), point(4, 30.0, 110.0)];
    assert_eq!(class(&conventional), Class::Conventional);
    // Above 2 at both steps: Q2, Q11, Q13, Q18.
    let above = [point(1, 100.0, 100.0), point(2, 40.0, 79.0), point(4, 18.0, 71.0)];
    let scaling = Scaling::of(&above).unwrap();
    assert_eq!(scaling.class, Class::SuperScaling);
    assert!(scaling.reason.contains("2.50 times"), "{}", scaling.reason);
    assert!(scaling.steps.iter().all(|step| step.is_above_ideal && step.cpu_falls));
    // Only the CPU falls.
    let cheaper = [point(1, 100.0, 100.0), point(2, 55.0, 90.0)];
    assert_eq!(class(&cheaper), Class::SuperScaling);
    // A poor step with less CPU is not a cheaper plan.
    let idle = [point(1, 100.0, 100.0), point(2, 98.0, 90.0)];
    assert_eq!(class(&idle), Class::DoesNotScale);
    // Poor, then good: Q6 and Q15.
    let late = [point(1, 100.0, 100.0), point(2, 95.0, 180.0), point(4, 50.0, 190.0)];
    assert_eq!(class(&late), Class::InefficientThenScales);
    let flat = [point(1, 100.0, 100.0), point(2, 95.0, 180.0), point(4, 90.0, 350.0)];
    assert_eq!(class(&flat), Class::DoesNotScale);
    let odd = [point(1, 100.0, 100.0), point(2, 65.0, 120.0), point(4, 34.0, 125.0)];
    assert_eq!(class(&odd), Class::Irregular);
}

#[test]
fn a_plan_flip_excludes_other_classes() {
    let named = |degree, elapsed_s, plan: &str| Point {
        plan: Some(plan.to_owned()),
        ..point(degree, elapsed_s, 100.0)
    };
    let flips = [named(1, 100.0, "a"), named(2, 60.0, "a"), named(4, 10.0, "b")];
    let scaling = Scaling::of(&flips).unwrap();
    assert_eq!(scaling.class, Class::PlanFlip);
    assert!(scaling.steps[1].plan_changes && !scaling.steps[0].plan_changes);
    assert!(scaling.reason.contains("2 to 4"), "{}", scaling.reason);
    // From serial to parallel the plan may be another: that is what super-scaling comes from.
    let parallel = [named(1, 100.0, "a"), named(2, 40.0, "b"), named(4, 19.0, "b")];
    let scaling = Scaling::of(&parallel).unwrap();
    assert_eq!((scaling.class, scaling.steps[0].plan_changes), (Class::SuperScaling, true));
}

#[test]
fn noise_is_not_super_scaling() {
    // Means above 2, but the interval of the step includes it.
    let noisy = [
        Point { elapsed_s: vec![100.0, 120.0, 100.0], ..point(1, 0.0, 100.0) },
        Point { elapsed_s: vec![52.0, 48.0, 49.0], ..point(2, 0.0, 104.0) },
    ];
    let scaling = Scaling::of(&noisy).unwrap();
    let step = &scaling.steps[0];
    assert!(step.speedup > 2.0 && step.interval.unwrap().includes(2.0), "{step:?}");
    assert_eq!(scaling.class, Class::Conventional);
}

#[test]
fn degrees_between_powers_of_two() {
    // Six threads of four cores: the ideal is 1.5, not 2 (ledger L1.4).
    let points = [point(1, 120.0, 120.0), point(4, 33.0, 125.0), point(6, 24.0, 140.0)];
    let scaling = Scaling::of(&points).unwrap();
    assert_eq!((scaling.steps[0].ideal, scaling.steps[1].ideal), (4.0, 1.5));
    assert_eq!(scaling.class, Class::Conventional);
    assert_eq!(Scaling::of(&points[..1]), None);
    assert_eq!(Scaling::of(&[]), None);
    let zero = [point(1, 1.0, 1.0), point(2, 0.0, 1.0)];
    assert_eq!(Scaling::of(&zero), None, "zero is not a time");
}
