use super::*;
#[test]
fn show() {
    for d in derived() {
        println!(
            "{:?} {:?} {} | {} [{}..{}] vs {:?}",
            d.agreement,
            d.nature,
            d.row,
            d.says,
            d.range.0,
            d.range.1,
            (d.ours, d.printed.map(|p| p.to_string()))
        );
    }
    println!("=====");
    for c in contradictions() {
        println!("{c:?}");
    }
}
