//! Footers and page indexes that hold other than they say.

use super::*;
use crate::pages::Codec;

/// A list of elements with these numbers of children, as the footer's second field.
fn footer(children: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x29, 0xfc];
    let mut elements = children.len();
    while elements > 127 {
        bytes.push(elements as u8 | 128);
        elements >>= 7;
    }
    bytes.push(elements as u8);
    for children in children {
        bytes.extend([0x55, children << 1, 0]);
    }
    bytes.push(0);
    bytes
}

#[test]
fn a_deep_schema_is_refused() {
    check(&footer(&[2, 1, 0, 1, 1, 0])).unwrap();
    let schema = Schema::read(&mut Reader::new(&footer(&[2, 1, 0, 1, 1, 0])[1..])).unwrap();
    assert_eq!((schema.levels, schema.columns), (3, 2));
    check(&footer(&[[1; 128].as_slice(), &[0]].concat())).unwrap();
    let says = check(&footer(&[1; 8000])).unwrap_err().to_string();
    assert_eq!(says, "its columns are nested 8000 levels deep, and 128 are the most");
}

#[test]
fn lists_are_counted_as_they_are_decoded() {
    // Row groups of two columns, and pairs of texts: all of them empty.
    for field in [4, 5] {
        let lists = |elements: usize| {
            let mut bytes = footer(&[2, 0, 0]);
            bytes.pop();
            let [low, middle] = [elements, elements >> 7].map(|bits| bits as u8 | 128);
            let header = [(field - 2) << 4 | kind::LIST, 0xfc, low, middle];
            bytes.extend([&header[..], &[(elements >> 14) as u8], &vec![0; elements + 1]].concat());
            check(&bytes).unwrap()
        };
        assert_eq!((lists(16_000) - lists(15_000)) / 1_000, ELEMENT_BYTES);
    }
}

/// A file of these bytes and this footer.
fn whole(bytes: &[u8], footer: &[u8]) -> Vec<u8> {
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1", bytes, footer, &length, b"PAR1"].concat()
}

fn file(bytes: &[u8]) -> Result<usize, FooterError> {
    let file = tempfile::tempfile().unwrap();
    file.write_all_at(bytes, 0).unwrap();
    check_file(&file).map(|metadata| metadata.bytes)
}

#[test]
fn a_file_is_checked_by_its_end() {
    file(&whole(b"", &footer(&[2, 0, 0]))).unwrap();
    let mut wrong = whole(b"", &footer(&[1; 8000]));
    assert!(matches!(file(&wrong), Err(FooterError::Nesting(8000))));
    // Decoders don't look at its beginning.
    wrong[0] = b'p';
    assert!(matches!(file(&wrong), Err(FooterError::Nesting(8000))));
    // A footer longer than the file, an empty file, and others.
    for other in [b"\xff\xff\xff\xffPAR1".as_slice(), b"", b"PAR1", b"a,b\n1,2\n", b"a\nbc,PAR1"] {
        file(other).unwrap();
    }
}

#[test]
fn a_footer_is_read_within_a_bound() {
    let file = tempfile::tempfile().unwrap();
    file.set_len(METADATA_BYTES_MAX + 9).unwrap();
    let end = |length: u64| {
        let end = [(length as u32).to_le_bytes(), *MAGIC].concat();
        file.write_all_at(&end, METADATA_BYTES_MAX + 1).unwrap();
        check_file(&file).unwrap_err().to_string()
    };
    let says = end(METADATA_BYTES_MAX + 1);
    assert!(says.contains("134217729 bytes of Parquet's metadata at once, and"), "{says}");
    // Of text, four of the smallest bytes.
    assert!(u64::from(u32::from_le_bytes(*b"\t\t\t\t")) > METADATA_BYTES_MAX);
}

/// Signed numbers as varints.
fn numbers<const N: usize>(numbers: [i64; N]) -> [Vec<u8>; N] {
    numbers.map(|number| {
        let (mut bytes, mut zigzag) = (Vec::new(), (number << 1) ^ (number >> 63));
        while !(0..128).contains(&zigzag) {
            bytes.push(zigzag as u8 | 128);
            zigzag = ((zigzag as u64) >> 7) as i64;
        }
        [bytes, vec![zigzag as u8]].concat()
    })
}

/// A footer with a row group of one column, of which these are fields.
fn of_column(fields: &[u8]) -> Vec<u8> {
    let schema = footer(&[1, 0]);
    let group = [&[0x29, 0x1c, 0x19, 0x1c], fields, &[0, 0, 0]].concat();
    [&schema[..schema.len() - 1], &group].concat()
}

/// A file with the page indexes of a column at these places.
fn indexed(bytes: &[u8], [offsets, columns]: [(i64, usize); 2]) -> Result<usize, FooterError> {
    let places = [offsets.0, offsets.1 as i64, columns.0, columns.1 as i64];
    let [a, b, c, d] = numbers(places);
    let fields = [&[0x46], &a[..], &[0x15], &b, &[0x16], &c, &[0x15], &d].concat();
    file(&whole(bytes, &of_column(&fields)))
}

#[test]
fn page_indexes_hold_what_they_say() {
    // A page at 4 of 80 bytes and row 0, and a number; two pages of nulls or not, their least
    // and greatest values, an order, and numbers.
    let offsets: &[u8] = &[0x19, 0x1c, 0x16, 8, 0x15, 0xa0, 1, 0x16, 0, 0, 0x19, 0x16, 2, 0];
    let columns: &[u8] =
        &[0x19, 0x21, 1, 2, 0x19, 0x28, 0, 1, 7, 0x19, 0x28, 0, 1, 9, 0x15, 2, 0x19, 0x26, 2, 0, 0];
    let both = |offsets: &[u8], columns: &[u8]| {
        let [a, b] = [offsets, columns].map(<[u8]>::len);
        indexed(&[offsets, columns].concat(), [(4, a), (4 + a as i64, b)])
    };
    // A place and two numbers, four bounds, their bytes, and a chunk of one column.
    let none = indexed(&[], [(-1, 0), (-1, 0)]).unwrap();
    let taken = both(offsets, columns).unwrap() - none;
    assert_eq!(taken, 24 + 8 + 4 * 32 + 2 * 8 + offsets.len() + columns.len());
    let long = [0xff, 0xff, 0xff, 0xff, 0x07];
    let wrong_offsets = [
        // Of 2^31 - 1 pages none is there.
        [&[0x19, 0xfc][..], &long, &[0; 9]].concat(),
        // A place that is a text, which a decoder would read into.
        vec![0x19, 0x1c, 0x18, 8, 0x15, 2, 0x16, 0, 0, 0x89, 0x11, 0x11, 0, 0],
        offsets[..offsets.len() - 1].to_vec(),
    ];
    for wrong in wrong_offsets {
        assert!(matches!(both(&wrong, columns), Err(FooterError::Malformed)), "{wrong:?}");
    }
    let wrong_columns = [
        // A list of lists of truth values that take no byte.
        [&[0x89, 0x49][..], &[[0xf1].as_slice(), &long].concat().repeat(4), &[0; 9]].concat(),
        [&[0x19, 0xf1][..], &long, &[1; 9], &[0]].concat(),
        // Pages that are numbers.
        [&[0x19, 0x25], &columns[2..]].concat(),
    ];
    for wrong in wrong_columns {
        assert!(matches!(both(offsets, &wrong), Err(FooterError::Malformed)), "{wrong:?}");
    }
}

#[test]
fn pages_are_where_the_footer_and_the_index_say() {
    // 60 bytes of gzip: a page at 30, and a dictionary at 10.
    let column = [0x3c, 0x45, 4, 0x36, 120, 0x26, 60, 0x26, 20, 0];
    // Pages of 20 bytes at 30 and at 50.
    let index = [0x19, 0x2c, 0x16, 60, 0x15, 40, 0x16, 0, 0, 0x16, 100, 0x15, 40, 0x16, 0, 0, 0];
    let place = [0x16, 8, 0x15, 2 * index.len() as u8];
    let found = |fields: &[u8]| {
        let file = tempfile::tempfile().unwrap();
        file.write_all_at(&whole(&index, &of_column(fields)), 0).unwrap();
        check_file(&file).map(|metadata| metadata.pages)
    };
    let range = |start, end, is_page| PageRange { start, end, codec: Codec::Gzip, is_page };
    let all = range(10, 70, false);
    assert_eq!(found(&column).unwrap(), [all]);
    let pages = [range(10, 30, true), range(30, 50, true), range(50, 70, true)];
    let both = found(&[&column[..], &place].concat()).unwrap();
    assert_eq!(both, [&[all][..], &pages].concat());
    // Of two descriptions, a decoder would make one.
    let twice = found(&[&column[..], &[0x0c, 6], &column[1..]].concat());
    assert!(matches!(twice, Err(FooterError::Malformed)), "{twice:?}");
}

#[test]
fn page_indexes_are_in_the_file() {
    let none = (-1, 0);
    let empty = (4, 1);
    indexed(&[0; 40], [empty, (43, 1)]).unwrap();
    // None at all, and one of no bytes.
    indexed(&[0; 40], [none, none]).unwrap();
    indexed(&[0; 40], [none, (4, 0)]).unwrap();
    let long = METADATA_BYTES_MAX as usize;
    for place in [(1 << 40, 1), (1 << 40, 0), (i64::MAX, i32::MAX as usize), (4, long)] {
        for places in [[place, empty], [empty, place]] {
            let found = indexed(&[0; 40], places);
            assert!(matches!(found, Err(FooterError::Place)), "{places:?} {found:?}");
        }
    }
    // Together, more than the file has.
    assert!(matches!(indexed(&[0; 400], [(4, 400), (4, 400)]), Err(FooterError::Place)));
}

#[test]
fn a_column_has_its_kinds() {
    // Metadata of 8 bytes and a byte of statistics; the bytes as a text would hide what is in
    // it, and so would a flag that is a text.
    let column = |bytes: &[u8]| check(&of_column(&[&[0x3c], bytes, &[0]].concat()));
    column(&[0x76, 16, 0x5c, 0x18, 1, 0, 0x61, 0, 0]).unwrap();
    assert!(column(&[0x78, 1, 0x5c, 0x18, 1, 0, 0x61, 0, 0]).is_err());
    assert!(column(&[0x76, 16, 0x5c, 0x18, 1, 0, 0x68, 0, 0, 0]).is_err());
}

#[test]
fn the_first_of_two_schemas_counts() {
    // A chain of groups, the last of which lacks its child: it has no column.
    let chain = footer(&[1; 8000]);
    let both = [&chain[..chain.len() - 1], &[0x09, 0x04], &footer(&[1, 0])[1..]].concat();
    assert!(check(&both).is_err());
    let says = check(&chain).unwrap_err().to_string();
    assert!(says.contains("nested 8000 levels"), "{says}");
}

#[test]
fn numbers_in_lists_are_counted_as_they_are_decoded() {
    // A row group with a field of its own: a list of zeros, a byte each.
    let bytes = |zeros: u8| {
        let group = [&[0x19 + 0x70, 0xf6, zeros][..], &vec![0; zeros.into()], &[0]].concat();
        let head = &footer(&[1, 0])[..footer(&[1, 0]).len() - 1];
        check(&[head, &[0x29, 0x1c], &group, &[0]].concat()).unwrap()
    };
    assert_eq!(bytes(100) - bytes(50), 400);
}

#[test]
fn a_field_has_its_kind() {
    let whole = footer(&[2, 0, 0]);
    check(&whole).unwrap();
    // The schema as a set, and a number of children of 64 bits.
    for (at, byte) in [(0, 0x2a), (3, 0x56)] {
        let mut other = whole.clone();
        other[at] = byte;
        assert!(check(&other).is_err(), "{at}");
    }
}

#[test]
fn lengths_beyond_the_end_are_refused() {
    let whole = footer(&[2, 0, 0]);
    for end in 0..whole.len() {
        assert!(check(&whole[..end]).is_err(), "{end}");
    }
    assert!(check(&footer(&[60, 0, 0])).is_err(), "more children than elements");
    // A list of 2^28 elements, and a text of 2^28 bytes, of which nothing is there.
    for beginning in [[0x29, 0xfc].as_slice(), &[0x28]] {
        let lie = [beginning, &[0x80, 0x80, 0x80, 0x80, 0x01, 0]].concat();
        assert!(check(&lie).is_err());
    }
}
