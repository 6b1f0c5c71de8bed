//! The end of a process that drops nothing. Alone in its process: its effects are process-wide.

mod fixture;

use fixture::Fixture;
use workahead_machine::control::{self, Controls};

const MACHINES: &str = "sys/devices/system/cpu/smt/control = on\n\
    sys/kernel/mm/transparent_hugepage/enabled = always [madvise] never\n";

#[test]
fn everything_is_put_back_before_an_exit_and_nothing_changed_afterwards() {
    let machines = [Fixture::from_text(MACHINES), Fixture::from_text(MACHINES)];
    let [mut one, mut other] =
        machines.each_ref().map(|machine| Controls::take(&machine.root()).unwrap().0);
    one.smt_off().unwrap();
    other.transparent_huge_pages("never").unwrap();
    let restored = control::restore_all();
    let troubles: Vec<_> = restored.iter().filter(|one| one.trouble.is_some()).collect();
    assert_eq!((restored.len(), troubles.len()), (2, 0), "{restored:?}");
    let text = |machine: &Fixture, path: &str| {
        std::fs::read_to_string(machine.directory.path().join(path)).unwrap()
    };
    assert_eq!(text(&machines[0], "sys/devices/system/cpu/smt/control"), "on");
    assert_eq!(text(&machines[1], "sys/kernel/mm/transparent_hugepage/enabled"), "madvise");
    let refused = one.smt_off().unwrap_err();
    assert!(refused.0.contains("ending"), "{refused}");
    assert!(control::restore_all().is_empty());
}
