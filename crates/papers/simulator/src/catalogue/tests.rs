//! The embedded machines, and errors of unknown ones.

use super::*;
use crate::core::Processor;
use crate::preset::Sharing;

fn machine(reference: &str) -> Preset {
    Preset::named(reference).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(reference: &str) -> String {
    Preset::named(reference).unwrap_err().to_string()
}

fn overridden(reference: &str, change: &str) -> String {
    machine(reference).with_override(change).unwrap_err().to_string()
}

/// A42: each loads, each figure has an origin, and each variant is a valid machine.
#[test]
fn every_machine_and_variant_can_be_run() {
    let of_papers = ["core2quad", "e3-1240", "p4-ht-2m", "p4-ht-512k", "ppro-quad"];
    assert!(of_papers.iter().all(|known| names().any(|name| name == *known)));
    for EmbeddedFile { name, .. } in all() {
        let preset = machine(name);
        assert_eq!(preset.name, *name);
        for variant in preset.variant.keys() {
            let changed = machine(&format!("{name}/{variant}"));
            assert_eq!(changed.name, format!("{name}/{variant}"));
            Processor::new(&changed).unwrap();
        }
        assert!(preset.threads == 1 || preset.variant.contains_key("ht-off"), "{name}");
    }
}

/// Every origin belongs to a figure: a misspelt one would leave its figure to a vaguer one.
#[test]
fn every_origin_is_some_figures() {
    for EmbeddedFile { name, .. } in all() {
        let preset = machine(name);
        let figures = preset.described();
        for (path, origin) in &preset.origin {
            let used = figures.iter().any(|figure| {
                figure.origin == *origin
                    && figure
                        .path
                        .strip_prefix(path.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            });
            assert!(used, "{name}: {path}");
        }
    }
}

/// A4: without its sibling a thread has all of each split structure.
#[test]
fn ht_off_is_the_machine_without_siblings() {
    for EmbeddedFile { name, .. } in all() {
        let preset = machine(name);
        if preset.threads == 1 {
            continue;
        }
        let off = machine(&format!("{name}/ht-off"));
        let mut expected = preset.without_siblings();
        (expected.name, expected.origin) = (off.name.clone(), off.origin.clone());
        assert_eq!(off, expected);
        assert_eq!(off.core.window_sharing, Sharing::Split);
        assert_eq!(off.core.window_sharing.parts(off.threads), 1);
    }
}

#[test]
fn variants_change_what_they_name() {
    let bytes = |reference: &str| {
        let preset = machine(reference);
        let size = |level: &crate::preset::CacheLevel| (level.name.clone(), level.bytes >> 10);
        (preset.cores, preset.cache.iter().map(size).collect::<Vec<_>>())
    };
    let sizes = |l1, l2| vec![("L1D".to_owned(), l1), ("L1I".to_owned(), 8), ("L2".to_owned(), l2)];
    assert_eq!(bytes("ppro-quad"), (4, sizes(8, 1024)));
    assert_eq!(bytes("ppro-quad/4p-512k"), (4, sizes(8, 512)));
    assert_eq!(bytes("ppro-quad/1p-256k+outstanding-1"), (1, sizes(8, 256)));
    assert_eq!(machine("ppro-quad/1p-256k+outstanding-1").memory.outstanding, 1);
    assert_eq!(machine("p4-ht-2m").cache[0].bytes, 64 << 10);
    assert_eq!(machine("p4-ht-2m/l1d-16k").cache[0].bytes, 16 << 10);
    assert_eq!(machine("core2quad").cache[2].cores, 2);
    assert_eq!(machine("core2quad/one-4m").cache[2].cores, 4);
}

#[test]
fn changed_figures_name_their_origin() {
    let origin = |preset: &Preset, path: &str| {
        let figures = preset.described();
        let figure = figures.iter().find(|figure| figure.path == path).unwrap();
        (figure.value.clone(), figure.origin.clone())
    };
    let preset = machine("ppro-quad/1p-256k");
    let (value, said) = origin(&preset, "cache.L2.bytes");
    assert_eq!(value, "262144");
    assert!(said.starts_with("variant 1p-256k, instead of 1048576: Keeton"), "{said}");
    let changed = preset.with_override("cache.L2.bytes=8388608").unwrap();
    let (value, said) = origin(&changed, "cache.L2.bytes");
    assert_eq!(value, "8388608");
    assert!(said.starts_with("override, instead of 262144: variant 1p-256k"), "{said}");
    // A variant's own origin takes precedence.
    let (_, said) = origin(&machine("p4-ht-2m/l1d-16k"), "cache.L1D.bytes");
    assert!(said.starts_with("default: 16 KB"), "{said}");
    // Absent parts are listed too.
    assert_eq!(origin(&preset, "prefetcher").0, "not modelled");
}

#[test]
fn figures_are_overridden_by_path() {
    let preset = machine("p4-ht-512k");
    let changed = |change: &str| preset.with_override(change).unwrap();
    assert_eq!(changed("cache.L2.bytes=1048576").cache[2].bytes, 1 << 20);
    assert_eq!(changed("memory.latency = 300").memory.latency, 300.0);
    assert_eq!(changed("memory.protocol=msi").memory.protocol, crate::preset::Protocol::Msi);
    assert_eq!(changed("core.window-sharing=\"shared\"").core.window_sharing, Sharing::Shared);
    assert!(!changed("core.drops-hints=false").core.drops_hints);
    assert_eq!(changed("threads=1").threads, 1);
    // Only the changed figure differs.
    let mut same = changed("cache.L2.ways=16");
    same.cache[2].ways = 8;
    same.origin = preset.origin.clone();
    assert_eq!(same, preset);
}

#[test]
fn bad_overrides_get_one_line() {
    let cases = [
        ("core.windw=3", "did you mean window?"),
        ("core.windw=3", "p4-ht-512k has no figure core.windw: at core there are width, window,"),
        ("cache.L3.bytes=3", "at cache there are L1D, L1I, L2"),
        ("cache.L2=3", "at cache.L2 there are holds, bytes, ways, line"),
        ("cach.L2.bytes=3", "did you mean cache?"),
        ("ghz.x=3", "ghz is a figure itself"),
        ("name=other", "there are ghz, cores, threads"),
        ("cache.L2.bytes=big", "cache.L2.bytes can't be big: it takes a whole number"),
        ("cache.L2.bytes=1.5", "it takes a whole number"),
        ("cache.L2.bytes=-4", "cache.L2.bytes can't be -4: "),
        ("cache.L2.bytes=1000", "p4-ht-512k: L2: 1000 bytes in sets of 8 lines of 128 bytes"),
        ("memory.latency=nan", "memory.latency is NaN: it takes"),
        ("tlb.data.cost=-1", "tlb.data.cost is -1: it takes 0 to 100000"),
        ("core.drops-hints=1", "it takes true or false"),
        ("memory.protocol=moesi", "expected `mesi` or `msi`"),
        ("threads", "threads changes nothing: write a figure's path and its value"),
    ];
    for (change, expected) in cases {
        let said = overridden("p4-ht-512k", change);
        assert!(said.contains(expected), "{change}: {said}");
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn unknown_machines_get_one_line() {
    let cases = [
        ("ppro-qad", "no machine is called ppro-qad: there are core2quad, e3-1240,"),
        ("ppro-qad", "did you mean ppro-quad?"),
        ("cray", "zen-4; a file's name ends in .toml"),
        ("ppro-quad/5p", "ppro-quad has no variant 5p: there are 1p-1m, "),
        ("ppro-quad/1p-256k+ht-off", "ppro-quad/1p-256k has no variant ht-off"),
        ("/nowhere/x.toml/ht-off", "/nowhere/x.toml: cannot be read: "),
    ];
    for (reference, expected) in cases {
        let said = refused(reference);
        assert!(said.contains(expected), "{reference}: {said}");
        assert!(!said.contains('\n'), "{said}");
    }
}

#[test]
fn files_are_machines_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.toml");
    let said = |text: &str, variant: &str| {
        std::fs::write(&path, text).unwrap();
        match Preset::named(&format!("{}{variant}", path.display())) {
            Ok(preset) => preset.name,
            Err(error) => error.to_string(),
        }
    };
    let good = all().iter().find(|machine| machine.name == "p4-ht-512k").unwrap().text;
    assert_eq!(said(good, "/ht-off"), "p4-ht-512k/ht-off");
    let without = good.replace("\"core.window\" =", "\"core.windows\" =");
    let expected = "p4-ht-512k: nothing says where core.window comes from: add it under [origin]";
    assert_eq!(said(&without, ""), expected);
    let unknown = said(&good.replace("stores = 24", "strores = 24"), "");
    assert!(unknown.contains("line 13: unknown field `strores`"), "{unknown}");
    assert!(!unknown.contains('\n'), "{unknown}");
    let twice = said(&good.replace("name = \"L1I\"", "name = \"L1D\""), "");
    assert!(twice.contains("the number of caches called L1D is 2"), "{twice}");
}

/// Comparing these would take minutes.
#[test]
fn long_texts_are_listed_and_not_compared() {
    let (long, other) = ("a".repeat(500_000), "b".repeat(500_000));
    assert_eq!(one_of(&long, &[&other, &long]), format!("there are {other}, {long}"));
    assert_eq!(one_of("L1", &["L1D", &long]), format!("there are L1D, {long}; did you mean L1D?"));
}

#[test]
fn an_unknown_cache_of_a_variant_gets_one_line() {
    let good = all().iter().find(|machine| machine.name == "p4-ht-512k").unwrap().text;
    let text = format!("{good}\n[variant.wrong.cache.L9]\nbytes = 1024\n");
    let said = Preset::parse("mine", &text).unwrap().with_variant("wrong").unwrap_err();
    assert_eq!(said.to_string(), "p4-ht-512k, variant wrong: no L9: there are L1D, L1I, L2");
}
