//! Recordings of machines that are not available here, through the whole path: played by the source
//! that plays recordings, rotated, reduced to rates, and made metrics by the machine's table.

#[path = "recordings/construct.rs"]
mod construct;
#[path = "recordings/events.rs"]
mod events;
#[path = "recordings/sides.rs"]
mod sides;

use std::collections::BTreeMap;

use construct::{MODELS, Model, USER_TIME};
use proptest::prelude::*;
use sides::Side;
use workahead_counters::cycles::mix_by_time;
use workahead_counters::event::Privilege;
use workahead_counters::metric::{self, Unit};
use workahead_counters::metrics::Metrics;
use workahead_counters::mock::Virtual;
use workahead_counters::rates::Rates;
use workahead_counters::replay::Replay;
use workahead_counters::rotation::Rotation;
use workahead_counters::stream::{Slot, Spoilt, Stream};
use workahead_counters::table::{Definition, Table};
use workahead_counters::target;

/// The error of a mean over four CPUs and some slots with deviations of 2 to 4 %.
const NOISE: f64 = 0.05;

fn bytes(model: &Model) -> Vec<u8> {
    let folder = manifest_folder().join("recordings");
    std::fs::read(folder.join(format!("{}.jsonl", model.file))).expect("it is kept")
}

fn recorded(model: &Model) -> Stream {
    Stream::read(&mut bytes(model).as_slice()).expect("a recording")
}

/// Its events per instruction, without noise.
fn steady(model: &Model, kernel: bool) -> BTreeMap<String, f64> {
    let mut side = Side::steady(kernel);
    side.scale("cpi", model.slower);
    model.events(&side).into_iter().collect()
}

/// Plays a recording as if it were counted now.
fn played(model: &Model) -> Stream {
    let Stream { header, slots } = recorded(model);
    let rotation =
        Rotation { groups: header.groups.clone(), slot_s: header.slot_s, seed: model.seed };
    let window_s = header.slot_s * slots.len() as f64;
    let mut source = Replay::new(Stream { header: header.clone(), slots });
    let mut targets = target::Machine { cpus: model.cpus() };
    let mut again: Vec<Slot> = Vec::new();
    let mut keep = |slot| again.push(slot);
    let mut clock = Virtual::until(window_s);
    let ended = rotation.run(0, &mut source, &mut targets, &mut clock, &mut keep);
    assert_eq!(ended, None);
    Stream { header, slots: again }
}

#[test]
fn they_are_what_is_constructed() {
    for model in &MODELS {
        let (kept, built) = (bytes(model), model.bytes());
        assert!(kept == built, "{}: run the example `construct`", model.file);
        assert!(kept.len() < 200 << 10, "{}: {} bytes", model.file, kept.len());
        let header = recorded(model).header;
        assert!(header.constructed.unwrap().contains("no such machine was counted"));
        assert_eq!(header.cores, model.cores);
    }
}

#[test]
fn they_are_played_as_they_were_recorded() {
    for model in &MODELS {
        let (kept, again) = (recorded(model), played(model));
        assert_eq!(kept, again, "{}", model.file);
        let spoilt: Vec<&Slot> = again.slots.iter().filter(|slot| slot.spoilt.is_some()).collect();
        assert_eq!(again.spoilt(), spoilt.len());
        assert!((3..12).contains(&spoilt.len()), "{} thrown away", spoilt.len());
        assert!(spoilt.iter().all(|slot| slot.spoilt == Some(Spoilt::Multiplexed)));
        assert!(again.visits().iter().all(|visits| *visits >= 4), "{:?}", again.visits());
    }
}

#[test]
fn rates_are_those_they_were_constructed_of() {
    for model in &MODELS {
        let stream = played(model);
        let table = Table::named(model.table).unwrap();
        let rates = Rates::of(&stream, &table.work);
        let mut noisy: Vec<String> = Vec::new();
        for privilege in [Privilege::User, Privilege::Kernel] {
            let steady = steady(model, privilege == Privilege::Kernel);
            for event in stream.header.groups.iter().flat_map(|group| &group.events) {
                let Some(expected) = steady.get(&event.name) else { continue };
                let rate = &rates.rate(&event.name, privilege, None).unwrap().per_unit;
                let off = rate.mean / expected - 1.0;
                match rate.noisy {
                    Some(true) => noisy.push(event.name.clone()),
                    _ => assert!(off.abs() < NOISE, "{}: off by {off:.3}", event.name),
                }
            }
        }
        noisy.dedup();
        let expected = match model.table {
            "amd/zen4" => "resyncs_or_nc_redirects",
            _ => "MACHINE_CLEARS.MEMORY_ORDERING",
        };
        assert!(noisy.iter().all(|name| name == expected), "{}: {noisy:?}", model.file);
        assert!(!noisy.is_empty());
    }
}

#[test]
fn every_metric_has_a_value_or_the_tables_reason() {
    for model in &MODELS {
        let stream = played(model);
        let table = Table::named(model.table).unwrap();
        let metrics = Metrics::of(&stream);
        let left_out: Vec<&str> =
            stream.header.left_out.iter().map(|left| left.event.as_str()).collect();
        assert_eq!(left_out.is_empty(), model.table == "intel/sapphire-rapids");
        for metric in metric::catalogue() {
            let of = |privilege| metrics.get(&metric.name, privilege, None);
            let both = of(Privilege::Both).unwrap_or_else(|| panic!("{} is missing", metric.name));
            match table.metric(&metric.name).expect("of the catalogue") {
                Definition::Unavailable { why, .. } => {
                    assert_eq!((both.value, both.why.as_ref()), (None, Some(why)));
                }
                Definition::Formula(formula) => {
                    let left = formula.names().into_iter().find(|name| left_out.contains(name));
                    if let Some(left) = left {
                        assert_eq!(both.value, None, "{}", metric.name);
                        assert!(both.why.as_ref().unwrap().starts_with(left), "{both:?}");
                        continue;
                    }
                    let places = std::iter::once(None).chain(model.cpus().into_iter().map(Some));
                    for place in places {
                        let at = metrics.get(&metric.name, Privilege::Both, place).unwrap();
                        let value = at.value.unwrap_or_else(|| panic!("{at:?}"));
                        let most = match metric.unit {
                            Unit::Share => 1.0,
                            Unit::CyclesPerInstruction | Unit::CyclesPerUop => 10.0,
                            _ => 1e5,
                        };
                        assert!((0.0..=most).contains(&value), "{}: {value}", metric.name);
                        assert!(at.slots >= 4, "{}: {} slots", metric.name, at.slots);
                    }
                }
            }
        }
    }
}

#[test]
fn parts_add_up_to_their_whole() {
    for model in &MODELS {
        let metrics = Metrics::of(&played(model));
        for privilege in [Privilege::User, Privilege::Kernel, Privilege::Both] {
            let sum = |names: &[&str]| -> f64 {
                let of = |name: &&str| metrics.get(name, privilege, None).unwrap().value.unwrap();
                names.iter().map(of).sum()
            };
            let near = |names: &[&str], whole: f64| {
                let parts = sum(names);
                assert!((parts / whole - 1.0).abs() < NOISE, "{names:?}: {parts}, not {whole}");
            };
            let widths: Vec<String> = (0..=8).map(|width| format!("retire_{width}")).collect();
            let widths: Vec<&str> = widths.iter().map(String::as_str).collect();
            assert!((sum(&widths) - 1.0).abs() < 1e-9);
            near(
                &["from_l2_share", "from_l3_share", "from_other_cache_share", "from_memory_share"],
                1.0,
            );
            assert!(sum(&["l2_mpki"]) < sum(&["l1i_mpki", "l1d_mpki"]) * 1.5);
            assert!(sum(&["resource_stall_cpi", "computation_cpi"]) < sum(&["cpi"]));
            match model.table {
                "intel/sapphire-rapids" => {
                    near(&["frontend_bound", "bad_speculation", "retiring", "backend_bound"], 1.0);
                    near(&["memory_bound", "core_bound"], sum(&["backend_bound"]));
                    near(&["fetch_latency", "fetch_bandwidth"], sum(&["frontend_bound"]));
                }
                "amd/zen4" => near(
                    &[
                        "frontend_bound",
                        "bad_speculation",
                        "retiring",
                        "backend_bound",
                        "smt_contention",
                    ],
                    1.0,
                ),
                _ => {
                    near(&["l1_bound", "l2_bound", "l3_bound", "dram_bound"], sum(&["load_bound"]))
                }
            }
            if model.table != "amd/zen4" {
                near(&["load_share", "store_share", "branch_share", "other_share"], 1.0);
                near(&["l2_code_mpki", "l2_data_mpki"], sum(&["l2_mpki"]));
            }
        }
    }
}

#[test]
fn the_system_does_worse_and_both_mix_by_time() {
    for model in &MODELS {
        let metrics = Metrics::of(&played(model));
        let of = |privilege| metrics.get("cpi", privilege, None).unwrap().value.unwrap();
        let (user, kernel) = (of(Privilege::User), of(Privilege::Kernel));
        assert!(user < kernel);
        let mixed = mix_by_time(&Ok(USER_TIME), &Ok(user), &Ok(kernel)).unwrap();
        let both = of(Privilege::Both);
        assert!((both / mixed - 1.0).abs() < 0.02, "{both} is not {mixed}");
    }
}

/// Every metric of a stream is a number or has a reason.
fn says_something(stream: &Stream) {
    let metrics = Metrics::of(stream);
    for valued in metrics.values() {
        match valued.value {
            Some(value) => assert!(value.is_finite() && valued.why.is_none(), "{valued:?}"),
            None => assert!(valued.why.is_some(), "{valued:?}"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Bytes of a recording replaced: it is refused in one line, or read and said something of.
    #[test]
    fn damaged_recordings_are_refused_or_read(
        model in 0..MODELS.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        digits in any::<bool>(),
    ) {
        let whole = bytes(&MODELS[model]);
        let lines = whole.split_inclusive(|byte| *byte == b'\n').take(40);
        let mut text: Vec<u8> = lines.flatten().copied().collect();
        // Digits for digits keep it a recording, of other counts.
        let places: Vec<usize> = (0..text.len())
            .filter(|place| !digits || text[*place].is_ascii_digit())
            .collect();
        for (index, byte) in damage {
            let byte = if digits { b'0' + byte % 10 } else { byte };
            text[places[index.index(places.len())]] = byte;
        }
        match Stream::read(&mut text.as_slice()) {
            Ok(stream) => says_something(&stream),
            Err(error) => prop_assert_eq!(error.to_string().lines().count(), 1),
        }
    }
}

#[test]
fn cores_of_more_cpus_than_there_may_be_are_refused() {
    let mut stream = recorded(&MODELS[0]);
    stream.slots.truncate(1);
    let mut refused = |cores: Vec<Vec<u32>>| {
        stream.header.cores = cores;
        let mut text = Vec::new();
        stream.write(&mut text).unwrap();
        let read = Stream::read(&mut text.as_slice()).err().map(|error| error.to_string());
        let checked = stream.check().err();
        assert_eq!(read, checked.map(|why| format!("line 1 is not a recording's: {why}")));
        read.unwrap_or_default()
    };
    let cores = |number: u32, cpus: u32| -> Vec<Vec<u32>> {
        (0..number).map(|core| (core * cpus..(core + 1) * cpus).collect()).collect()
    };
    assert_eq!(refused(cores(128, 64)), "");
    let why = refused(cores(1, 65));
    assert!(why.ends_with(": a core has more than 64 CPUs"), "{why}");
    let why = refused(cores(8193, 1));
    assert!(why.ends_with(": its cores have more than 8192 CPUs"), "{why}");
}

#[test]
fn recordings_of_earlier_versions_are_read() {
    let mut recording = include_bytes!("recordings/earlier-version.jsonl").as_slice();
    let header = Stream::read(&mut recording).unwrap().header;
    assert_eq!(header.target, "the command and what it starts");
}

/// This package's folder, as Cargo names it to a running test: a target folder may be shared.
fn manifest_folder() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests").into()
}
