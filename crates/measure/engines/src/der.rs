//! Elements of DER, as certificates and keys are made of (X.690). They may come from anybody.

pub(crate) const SEQUENCE: u8 = 0x30;

/// The content of the first element, which has to be of this tag, and what follows it.
pub(crate) fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    next(bytes).filter(|_| bytes.first() == Some(&tag))
}

/// The same of any tag.
pub(crate) fn next(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.get(1..)?.split_first()?;
    if length < 0x80 {
        return rest.split_at_checked(length.into());
    }
    // A certificate's lengths have at most three bytes: TLS allows no longer ones.
    let bytes = usize::from(length & 0x7f);
    let (length, rest) = rest.split_at_checked(bytes).filter(|_| (1..=3).contains(&bytes))?;
    let length = length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
    rest.split_at_checked(length)
}
