//! On which pages memory really lies, as `/proc/self/smaps` tells (proc(5)).

/// Bytes of the range that lie on huge pages; `None` where the kernel does not say.
pub(super) fn huge_bytes(start: usize, bytes: usize) -> Option<usize> {
    counted(&std::fs::read_to_string("/proc/self/smaps").ok()?, start, bytes)
}

/// Adds up the areas inside the range. Areas are headed `7f00-8f00 rw-p …` and described by lines
/// such as `AnonHugePages:  2048 kB`.
fn counted(smaps: &str, start: usize, bytes: usize) -> Option<usize> {
    let mut inside = false;
    let mut huge = None;
    for line in smaps.lines() {
        if let Some((first, last)) = area(line) {
            inside = first >= start && last <= start + bytes;
        } else if let Some(rest) = line.strip_prefix("AnonHugePages:") {
            // The line's presence says that this kernel counts at all.
            let kib: usize = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
            *huge.get_or_insert(0) += if inside { kib << 10 } else { 0 };
        }
    }
    huge
}

fn area(line: &str) -> Option<(usize, usize)> {
    let (first, last) = line.split(' ').next()?.split_once('-')?;
    Some((usize::from_str_radix(first, 16).ok()?, usize::from_str_radix(last, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::counted;

    const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0
Size:               4096 kB
AnonHugePages:      2048 kB
7f0000400000-7f0000600000 rw-p 00000000 00:00 0
AnonHugePages:      2048 kB
VmFlags: rd wr mr mw me ac sd hg
7f0000600000-7f0000800000 r--p 00000000 fe:00 12   /lib/x-y.so
AnonHugePages:         0 kB
";

    #[test]
    fn only_areas_inside_the_range_count() {
        assert_eq!(counted(SMAPS, 0x7f00_0000_0000, 0x40_0000), Some(2 << 20));
        assert_eq!(counted(SMAPS, 0x7f00_0000_0000, 0x60_0000), Some(4 << 20));
        assert_eq!(counted(SMAPS, 0x7f00_0060_0000, 0x20_0000), Some(0));
        assert_eq!(counted(SMAPS, 0, 4096), Some(0));
    }

    #[test]
    fn a_kernel_that_does_not_count_is_unknown() {
        assert_eq!(counted("7f00-8f00 rw-p\nSize: 4 kB\n", 0x7f00, 0x1000), None);
    }
}
