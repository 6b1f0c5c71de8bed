//! Mutants of whole files: half of them changed anywhere, half in one field, with what is computed
//! from it made right again. None may crash the command, hang, or take more memory than it may.
//!
//! `WORKAHEAD_MUTANTS` is their number for each kind of file.

mod fields;
#[path = "../hostile/mod.rs"]
mod hostile;
mod mutation;
#[path = "../process/mod.rs"]
mod process;
mod thrift_fields;

use std::fs;
use std::path::Path;

use arrow_ipc::CompressionType;
use fields::Field;
use hostile::{arrow_file, arrow_stream, csv, ends_well, join, place, table};
use mutation::{anywhere, in_field};
use process::{Place, Random};

const NUMBER: usize = 120;
/// Two of this number of mutants are tried whether they get past the header.
const LOOKED_AT: usize = 8;

fn number() -> usize {
    let wanted = std::env::var("WORKAHEAD_MUTANTS").ok();
    wanted.map_or(NUMBER, |text| text.parse().expect("WORKAHEAD_MUTANTS is a number"))
}

/// A kind of file.
struct Kind<'a> {
    name: &'a str,
    whole: Vec<u8>,
    fields: Vec<Field>,
    /// The command that reads it all.
    reads: Vec<&'a str>,
    /// The command that reads only the metadata, if there is one.
    looks: Vec<&'a str>,
}

impl Kind<'_> {
    fn try_all(&self, place: &Place) {
        let number = number();
        let path = place.path(self.name);
        fs::write(&path, &self.whole).unwrap();
        let whole = place.run(&self.reads);
        assert!(whole.status.success(), "{}", process::text(&whole.stderr));
        let mut random = Random::new(self.name);
        let (mut read, mut looked, mut past) = (0, 0, 0);
        for index in 0..number {
            let mutant = match index % 2 {
                0 => anywhere(&self.whole, &mut random),
                _ => in_field(&self.whole, &self.fields, &mut random),
            };
            fs::write(&path, &mutant).unwrap();
            let what = format!("{} {index}", self.name);
            read += usize::from(self.reads(place, &mutant, &what, &self.reads));
            if !self.looks.is_empty() && index % LOOKED_AT < 2 {
                looked += 1;
                past += usize::from(self.reads(place, &mutant, &what, &self.looks));
            }
        }
        assert!(read < number, "no mutant was damaged");
        assert!(2 * past >= looked, "{past} of {looked} got past the header");
        let name = self.name;
        // Not what the harness captures: a long run is followed.
        let says =
            format!("{name}: {number} mutants, {read} read, {past} of {looked} past the header\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), says.as_bytes());
    }

    /// Whether a run succeeds; a mutant that it does not survive is kept.
    fn reads(&self, place: &Place, mutant: &[u8], what: &str, arguments: &[&str]) -> bool {
        let ended = std::panic::catch_unwind(|| ends_well(place, arguments, what));
        ended.unwrap_or_else(|panic| {
            let kept = std::env::temp_dir().join(format!("mutant-{}", self.name));
            let _ = fs::write(&kept, mutant);
            eprintln!("kept as {}", kept.display());
            std::panic::resume_unwind(panic)
        }) == Some(0)
    }
}

fn of_a_join(name: &str, make: impl FnOnce(&Path), fields: fn(&[u8]) -> Vec<Field>) {
    let place = place();
    make(&place.path(name));
    let whole = fs::read(place.path(name)).unwrap();
    let fields = fields(&whole);
    let reads = join(name, &["--out", "out.arrow"]);
    let looks = join(name, &["--explain"]);
    Kind { name, whole, fields, reads, looks }.try_all(&place);
}

#[test]
fn of_parquet() {
    of_a_join("left.parquet", fields::write_parquet, thrift_fields::of_parquet);
}

#[test]
fn of_parquet_with_other_encodings() {
    of_a_join("other.parquet", fields::write_other_parquet, thrift_fields::of_parquet);
}

#[test]
fn of_arrow_files() {
    let codec = Some(CompressionType::LZ4_FRAME);
    of_a_join("left.arrow", |path| arrow_file(path, &table(300), codec), fields::of_arrow);
}

#[test]
fn of_arrow_streams() {
    let codec = Some(CompressionType::ZSTD);
    of_a_join("left.arrows", |path| arrow_stream(path, &table(300), codec), fields::of_arrow);
}

#[test]
fn of_csv() {
    of_a_join("left.csv", |path| csv(path, 300), fields::of_text);
}

fn of_text(name: &str, whole: &str, reads: &[&str]) {
    let whole = whole.as_bytes().to_vec();
    let fields = fields::of_text(&whole);
    let (reads, looks) = (reads.to_vec(), Vec::new());
    Kind { name, whole, fields, reads, looks }.try_all(&Place::new());
}

#[test]
fn of_studies() {
    let quick = process::text(&Place::new().run(&["study", "show", "quick"]).stdout);
    of_text("study.toml", &quick, &["study", "plan", "study.toml"]);
}

#[test]
fn of_modelled_machines() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests");
    let folder = Path::new(&manifest).join("../papers/simulator/machines");
    let machine = fs::read_to_string(folder.join("p4-ht-512k.toml")).unwrap();
    let reads = ["simulate", "--machine", "./machine.toml", "--describe"];
    of_text("machine.toml", &machine, &reads);
}

#[test]
fn of_recordings() {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for tests");
    let folder = Path::new(&manifest).join("../measure/counters/recordings");
    let whole = fs::read_to_string(folder.join("amd-zen4.jsonl")).unwrap();
    // Some slots are as good as all.
    let some: Vec<&str> = whole.lines().take(60).collect();
    of_text("minute.jsonl", &some.join("\n"), &["counters", "stat", "--recorded", "minute.jsonl"]);
}
