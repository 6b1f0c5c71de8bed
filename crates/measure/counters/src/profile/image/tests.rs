//! This program's own file and the kernel's page of code.

use super::*;

/// A `.eh_frame_hdr` at 0x1000 with functions at these addresses.
fn header(functions: &[u64]) -> Vec<u8> {
    let mut bytes = vec![1, 0x1b, 0x03, 0x3b, 0, 0, 0, 0];
    bytes.extend((functions.len() as u32).to_le_bytes());
    for function in functions {
        bytes.extend((*function as i64 - 0x1000).to_le_bytes()[..4].iter());
        bytes.extend([0; 4]);
    }
    bytes
}

#[test]
fn a_function_is_known_by_its_begin() {
    let bytes = header(&[0x800, 0x2000, 0x2040]);
    let at = |address| starts(&bytes, 0x1000, address);
    assert_eq!(at(0x7ff), None);
    assert_eq!(at(0x800), Some(0x800));
    assert_eq!(at(0x203f), Some(0x2000));
    assert_eq!(at(0x9999), Some(0x2040));
    assert_eq!(starts(&bytes[..20], 0x1000, 0x9999), Some(0x800));
    assert_eq!(starts(&bytes[..11], 0x1000, 0x9999), None);
    assert_eq!(starts(&[2; 40], 0x1000, 0x9999), None);
}

#[test]
fn every_function_of_this_program_is_found_from_its_inside() {
    let path = std::env::current_exe().expect("its own path");
    let image = Image::of_file(&path).expect("an ELF file");
    let bytes = std::fs::read(&path).expect("its own file");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let text = elf
        .symbols()
        .filter(|symbol| symbol.kind() == object::SymbolKind::Text && symbol.size() > 16);
    let ours = text.filter(|symbol| symbol.name().is_ok_and(|name| name.contains("counters")));
    let mut checked = 0;
    for symbol in ours {
        let inside = symbol.address() + symbol.size() / 2;
        assert_eq!(image.function_start(inside), Some(symbol.address()));
        checked += 1;
    }
    assert!(checked > 100);
}

#[test]
fn an_address_of_a_process_is_one_of_the_file() {
    let segments = vec![(0..0x1000, 0), (0x1234..0x5000, 0x2234)];
    let image = Image { segments, ..Image::default() };
    assert_eq!(image.bias(0x7000_0000, 0), Some(0x7000_0000));
    // The loader maps whole pages: from 0x1000 on, which is in the second segment's page.
    assert_eq!(image.bias(0x7000_2000, 0x1000), Some(0x7000_0000));
    assert_eq!(image.bias(0x7000_0000, 0x9000), None);
}

#[test]
fn the_kernels_page_has_names() {
    let Some(vdso) = Image::of_vdso() else {
        println!("not tested here: the kernel gives programs no page of code");
        return;
    };
    let names: Vec<&str> = vdso.symbols.iter().map(|(_, name)| name.as_str()).collect();
    assert!(names.iter().any(|name| name.contains("clock_gettime")), "{names:?}");
    let (range, name) = &vdso.symbols[0];
    assert!(vdso.symbol(range.start).is_some(), "{name}");
}

/// A file of five gigabytes that takes no disk, whose table is four of them.
#[test]
fn a_table_that_is_too_large_is_as_if_absent() {
    let path = std::env::current_exe().expect("its own path");
    let mut bytes = std::fs::read(path).expect("its own file");
    let elf = object::File::parse(&*bytes).expect("an ELF file");
    let number = elf.section_by_name(".eh_frame").expect("its table").index().0;
    let headers = u64::from_le_bytes(bytes[40..48].try_into().expect("eight")) as usize;
    let size = headers + 64 * number + 32;
    bytes[size..size + 8].copy_from_slice(&(4_u64 << 30).to_le_bytes());
    let folder = tempfile::tempdir().expect("a folder");
    let large = folder.path().join("large");
    std::fs::write(&large, bytes).expect("written");
    let file = File::options().write(true).open(&large).expect("opened");
    file.set_len(5 << 30).expect("a sparse file");
    let image = Image::of_file(&large).expect("an ELF file");
    assert!(image.eh_frame.is_none());
    assert!(image.eh_frame_hdr.is_some() && image.text.is_some() && !image.segments.is_empty());
    assert!(image.table_bytes() > 0 && image.without_tables().table_bytes() == 0);
}

#[test]
fn a_file_that_is_not_a_program_gives_nothing() {
    assert!(Image::of_file(Path::new("/proc/self/maps")).is_none());
    assert!(Image::of_file(Path::new("/nowhere")).is_none());
}
