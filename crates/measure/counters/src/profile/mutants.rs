//! Damaged program files: whatever a process mapped is unwound through and named, or not, without
//! harm.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use proptest::test_runner::{RngAlgorithm, TestRng};
use rand::RngExt;

use super::modules::Modules;
use super::names::Namer;
use super::space::{Mapping, Space};
use super::stacks::Address;
use super::unwind::{Cache, Registers, unwind};

const NUMBER: usize = 300;
const PROGRAM: &str = "
    #include <stdlib.h>
    static int inner(int a) { char on_stack[64]; on_stack[a & 63] = a; return on_stack[7] + a; }
    int outer(int a) { return inner(a) + atoi(\"7\"); }
    int main(int argc, char **argv) { return outer(argc); }
";

/// A small program of C with symbols, unwind tables and debug information.
fn compiled(text: &str) -> Option<Vec<u8>> {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    let mut compiler = Command::new("cc")
        .args(["-g", "-O1", "-x", "c", "-", "-o"])
        .arg(&program)
        .stdin(Stdio::piped())
        .spawn()
        .ok()?;
    compiler.stdin.take()?.write_all(text.as_bytes()).unwrap();
    compiler.wait().unwrap().success().then(|| std::fs::read(program).unwrap())
}

/// Where the file describes itself: its header, the headers of segments and sections, the tables.
fn fields(whole: &[u8]) -> Vec<std::ops::Range<usize>> {
    use object::{Object, ObjectSection};
    let elf = object::File::parse(whole).unwrap();
    let header = |at: usize, bytes: usize| {
        u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize
            & ((1 << (8 * bytes)) - 1)
    };
    // `e_phoff`, `e_shoff`, `e_phnum`, `e_shnum` of a header of 64 bits.
    let segments = header(32, 7)..header(32, 7) + 56 * header(56, 2);
    let sections = header(40, 7)..header(40, 7) + 64 * header(60, 2);
    let tables = [".eh_frame", ".eh_frame_hdr", ".symtab", ".dynsym", ".note.gnu.build-id"];
    let tables = tables.iter().filter_map(|name| elf.section_by_name(name)?.file_range());
    let tables = tables.map(|(start, bytes)| start as usize..(start + bytes) as usize);
    [0..64, segments, sections].into_iter().chain(tables).collect()
}

fn mutant(whole: &[u8], fields: &[std::ops::Range<usize>], random: &mut TestRng) -> Vec<u8> {
    const NUMBERS: [u64; 7] = [0, 1, 255, 65_535, u32::MAX as u64, 1 << 40, u64::MAX];
    let mut mutant = whole.to_vec();
    let in_field = random.random_range(0..2) == 0;
    let range = match in_field {
        true => fields[random.random_range(0..fields.len())].clone(),
        false => 0..whole.len(),
    };
    let width = [1, 2, 4, 8][random.random_range(0..4)];
    let at = (range.start + random.random_range(0..range.len())) / width * width;
    let bytes = NUMBERS[random.random_range(0..NUMBERS.len())].to_le_bytes();
    let end = (at + width).min(mutant.len());
    match random.random_range(0..5) {
        0 => mutant[at] ^= 1 << random.random_range(0..8),
        1 if !in_field => mutant.truncate(at),
        2 => mutant[at] = random.random_range(0..=255),
        _ => mutant[at..end].copy_from_slice(&bytes[..end - at]),
    }
    mutant
}

/// Unwinds a stack of addresses through the file, and names them.
fn profile(path: &str, random: &mut TestRng) -> usize {
    const START: u64 = 0x5555_5555_4000;
    const SP: u64 = 0x7fff_0000_0000;
    let mut modules = Modules::default();
    let module = modules.of(path, None);
    let mut space = Space::default();
    let mapping = Mapping { start: START, end: START + 0x5000, offset: 0, module };
    space.map(mapping, &modules);
    let words = (0..400).map(|_| match random.random_range(0..3) {
        0 => SP + random.random_range(0..3200),
        _ => START + 0x1000 + random.random_range(0..0x200),
    });
    let stack: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let mut named = 0;
    for _ in 0..8 {
        let pc = START + 0x1000 + random.random_range(0..0x200);
        let registers = Registers::from_sample(&[SP + 16, SP, pc]).unwrap();
        let is_code = |address| space.find(address, &modules).is_some();
        let calls = unwind(&space.unwinder, &mut Cache::new(), &registers, &stack, is_code);
        let namer = Namer::new(&modules);
        for address in calls.addresses {
            let found = space.find(address, &modules);
            let code = found
                .map_or(Address::Unmapped, |(module, address)| Address::Code { module, address });
            named += usize::from(!namer.frame(code).name.starts_with('['));
        }
    }
    named
}

#[test]
fn damaged_programs_do_no_harm() {
    let Some(whole) = compiled(PROGRAM) else {
        // Nothing else makes a small program, and Rust's linker is such a compiler.
        return;
    };
    let number = std::env::var("WORKAHEAD_MUTANTS").map_or(NUMBER, |text| text.parse().unwrap());
    let fields = fields(&whole);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    let text = path.to_str().unwrap();
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    std::fs::write(&path, &whole).unwrap();
    let named = profile(text, &mut random);
    assert!(named > 2, "{named} names of the whole file");
    let mut named = 0;
    for index in 0..number {
        let mutant = mutant(&whole, &fields, &mut random);
        std::fs::write(&path, &mutant).unwrap();
        let start = Instant::now();
        let mut own = random.clone();
        let ended = catch_unwind(AssertUnwindSafe(|| profile(text, &mut own)));
        named += usize::from(ended.unwrap_or_else(|_| panic!("mutant {index}")) > 0);
        assert!(start.elapsed() < Duration::from_secs(10), "mutant {index}");
    }
    assert!(named > number / 2, "{named} of {number} were read");
    let held = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = held.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 1 << 20, "{peak} KiB resident");
}

#[test]
fn a_long_name_is_cut() {
    use object::{Object, ObjectSymbol};
    // One of C's, and one of C++'s that is as long in its readable form.
    let long = "x".repeat(100_000);
    let labels = [long.clone(), format!("_Z100000{long}v")];
    let [c, cpp] = &labels;
    let program = format!(
        "int one(int a) __asm__(\"{c}\");\nint other(int a) __asm__(\"{cpp}\");\n\
         int one(int a) {{ return a + 1; }}\nint other(int a) {{ return a + 2; }}\n\
         int main(int argc, char **argv) {{ return one(argc) + other(argc); }}\n"
    );
    let Some(whole) = compiled(&program) else { return };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    std::fs::write(&path, &whole).unwrap();
    let mut modules = Modules::default();
    let module = modules.of(path.to_str().unwrap(), None);
    let namer = Namer::new(&modules);
    let elf = object::File::parse(&*whole).unwrap();
    for label in &labels {
        let is_it = |name: &str| name == label;
        let symbol = elf.symbols().find(|symbol| symbol.name().is_ok_and(is_it)).unwrap();
        let name = namer.frame(Address::Code { module, address: symbol.address() }).name;
        assert_eq!(name.len(), 64 << 10);
        assert!(label.starts_with(&name));
    }
}
