//! Mappings over mappings, against a byte-by-byte map.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[test]
fn only_code_is_taken_from_a_line() {
    let mut modules = Modules::default();
    let line = "55d0-55f0 r-xp 00002000 08:01 1234                       /no/such file";
    let found = mapping(line, &mut modules).expect("code");
    assert_eq!((found.start, found.end, found.offset), (0x55d0, 0x55f0, 0x2000));
    assert_eq!(modules.get(found.module).name, "such file");
    assert!(modules.get(found.module).path.is_none());
    let anonymous = mapping("1000-2000 rwxp 00000000 00:00 0 ", &mut modules).expect("code");
    assert_eq!(modules.get(anonymous.module).name, "[anonymous]");
    assert!(mapping("1000-2000 rw-p 00000000 00:00 0", &mut modules).is_none());
    assert!(mapping("nonsense", &mut modules).is_none());
}

#[test]
fn this_process_knows_where_its_functions_are() {
    let mut modules = Modules::default();
    let space = Space::of_process(std::process::id(), &mut modules);
    let known: Vec<&str> =
        space.mappings.values().map(|m| modules.get(m.module).name.as_str()).collect();
    let own = std::env::current_exe().expect("its own path");
    let own = own.file_name().and_then(|name| name.to_str()).expect("a plain name");
    assert!(known.contains(&own), "{known:?}");
    assert!(known.iter().any(|name| name.starts_with("libc")), "{known:?}");
}

proptest! {
    #[test]
    fn the_last_mapping_of_a_byte_holds(
        maps in proptest::collection::vec((0u64..60, 1u64..20, 0usize..3), 1..12),
    ) {
        let mut modules = Modules::default();
        let files = ["[one]", "[two]", "[three]"].map(|name| modules.of(name, None));
        let mut space = Space::default();
        let mut bytes: HashMap<u64, (ModuleId, u64)> = HashMap::new();
        for (at, (start, length, file)) in maps.into_iter().enumerate() {
            let offset = 1000 * at as u64;
            let module = files[file];
            space.map(Mapping { start, end: start + length, offset, module }, &modules);
            for byte in 0..length {
                bytes.insert(start + byte, (module, offset.wrapping_add(byte)));
            }
        }
        for address in 0..90 {
            prop_assert_eq!(space.find(address, &modules), bytes.get(&address).copied());
        }
    }
}
