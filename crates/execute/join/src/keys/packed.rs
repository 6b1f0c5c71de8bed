//! Packs the components of a key into one integer by their ranges in the build side.
//!
//! `((a − min a) · range of b + (b − min b)) · range of c + …` is exact, so hits need no
//! comparison, while the product of the ranges is at most 2⁶⁴: always for two keys of 32 bits,
//! mostly for two of 64. A probe value out of range equals no build value. (Normalised keys of
//! Velox; Boncz, Neumann, Erling, *TPC-H Analyzed*, TPCTC 2013, §2.1.)

/// Lowest and highest value of a component.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range {
    signed: bool,
    /// By the component's sign; empty while `highest` is below `lowest`.
    lowest: u64,
    highest: u64,
}

const SIGN: u64 = 1 << 63;

impl Range {
    /// The empty range.
    pub(crate) fn empty(signed: bool) -> Self {
        let flip = if signed { SIGN } else { 0 };
        Self { signed, lowest: u64::MAX ^ flip, highest: flip }
    }

    fn flip(&self) -> u64 {
        if self.signed { SIGN } else { 0 }
    }

    pub(crate) fn widen(&mut self, values: impl Iterator<Item = u64>) {
        let flip = self.flip();
        let (mut lowest, mut highest) = (self.lowest ^ flip, self.highest ^ flip);
        for value in values {
            lowest = lowest.min(value ^ flip);
            highest = highest.max(value ^ flip);
        }
        (self.lowest, self.highest) = (lowest ^ flip, highest ^ flip);
    }

    fn is_empty(&self) -> bool {
        self.lowest ^ self.flip() > self.highest ^ self.flip()
    }

    pub(crate) fn lowest(&self) -> u64 {
        self.lowest
    }

    /// Highest minus lowest.
    pub(crate) fn span(&self) -> u64 {
        if self.is_empty() { 0 } else { self.highest.wrapping_sub(self.lowest) }
    }
}

/// How components are packed.
#[derive(Debug, Clone)]
pub(crate) struct Packing {
    components: Box<[PackedComponent]>,
}

#[derive(Debug, Clone, Copy)]
struct PackedComponent {
    lowest: u64,
    span: u64,
    factor: u64,
}

impl Packing {
    /// `None` if the ranges are too wide.
    pub(crate) fn of(ranges: &[Range]) -> Option<Self> {
        let mut product = 1_u128;
        let mut components = Vec::with_capacity(ranges.len());
        for range in ranges {
            let (lowest, span) = (range.lowest, range.span());
            // A factor of 2⁶⁴ is only multiplied by zero.
            components.push(PackedComponent { lowest, span, factor: product as u64 });
            product = product.checked_mul(u128::from(span) + 1)?;
        }
        (product <= 1 << 64).then_some(Self { components: components.into() })
    }

    /// The highest packed key; the lowest is zero.
    pub(crate) fn highest(&self) -> u64 {
        let most = |packed: &PackedComponent| packed.span.wrapping_mul(packed.factor);
        self.components.iter().map(most).fold(0, u64::wrapping_add)
    }

    /// The value of a component that contributes nothing.
    pub(crate) fn neutral(&self, component: usize) -> u64 {
        self.components[component].lowest
    }

    /// Adds a component to the packed keys, and flags rows in which it is out of range.
    pub(crate) fn add(&self, component: usize, from: &[u64], to: &mut [u64], outside: &mut [bool]) {
        let PackedComponent { lowest, span, factor } = self.components[component];
        for ((value, to), outside) in from.iter().zip(to).zip(outside) {
            let above = value.wrapping_sub(lowest);
            *outside |= above > span;
            *to = to.wrapping_add(above.wrapping_mul(factor));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(signed: bool, values: &[i64]) -> Range {
        let mut range = Range::empty(signed);
        range.widen(values.iter().map(|value| *value as u64));
        range
    }

    fn pack(packing: &Packing, rows: &[[i64; 2]]) -> Vec<Option<u64>> {
        let (mut to, mut outside) = (vec![0; rows.len()], vec![false; rows.len()]);
        for component in 0..2 {
            let column: Vec<u64> = rows.iter().map(|row| row[component] as u64).collect();
            packing.add(component, &column, &mut to, &mut outside);
        }
        to.into_iter().zip(outside).map(|(key, out)| (!out).then_some(key)).collect()
    }

    #[test]
    fn pairs_in_range_differ_and_others_are_refused() {
        let packing = Packing::of(&[range(true, &[-2, 3]), range(false, &[10, 11])]).unwrap();
        let rows: Vec<[i64; 2]> = (-3..5).flat_map(|a| (9..13).map(move |b| [a, b])).collect();
        let packed = pack(&packing, &rows);
        for (row, key) in rows.iter().zip(&packed) {
            let inside = (-2..=3).contains(&row[0]) && (10..=11).contains(&row[1]);
            assert_eq!(key.is_some(), inside, "{row:?}");
        }
        let mut normalized: Vec<u64> = packed.into_iter().flatten().collect();
        normalized.sort_unstable();
        assert_eq!(normalized, (0..12).collect::<Vec<_>>());
    }

    #[test]
    fn ranges_beyond_64_bits_are_not_packed() {
        let whole = [range(true, &[i64::MIN, i64::MAX]), range(false, &[4, 4])];
        let packing = Packing::of(&whole).unwrap();
        let normalized = pack(&packing, &[[i64::MIN, 4], [i64::MAX, 4], [7, 5]]);
        assert_eq!(normalized, [Some(0), Some(u64::MAX), None]);
        assert!(Packing::of(&[whole[0], range(false, &[4, 5])]).is_none());
        assert!(Packing::of(&[range(false, &[4, 5]), whole[0]]).is_none());
        assert!(Packing::of(&[whole[0], whole[0], whole[0]]).is_none());
        assert!(Packing::of(&[Range::empty(true), Range::empty(false)]).is_some());
    }
}
