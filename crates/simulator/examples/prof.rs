#![allow(dead_code)]
#[path = "../benches/accesses/join.rs"]
mod join;
use workahead_simulator::preset::Preset;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let n: u32 = a[1].parse().unwrap();
    let threads: usize = a[2].parse().unwrap();
    let p = Preset::named(&a[3]).unwrap();
    let j = join::Join::new(n);
    let t = std::time::Instant::now();
    let c0 = workahead_machine::clock::thread_cpu_s();
    let w = j.modelled(&p, threads);
    let cpu = workahead_machine::clock::thread_cpu_s() - c0;
    let acc: u64 = w.ran.cpus.iter().map(|c| c.loads + c.stores).sum();
    println!(
        "{acc} accesses, {:.1} ns each, {:.1} M/s, wall {:.2}, {:?}",
        cpu * 1e9 / acc as f64,
        acc as f64 / cpu / 1e6,
        t.elapsed().as_secs_f64(),
        w.ran.ticks
    );
    for c in &w.ran.cpus {
        println!("{c:?}");
    }
    for c in &w.found {
        println!("{c:?}");
    }
}
