//! The command `workahead`.
fn main() {}
