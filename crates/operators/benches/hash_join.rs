//! The paper's hash join under every technique, relative to one thread in turn.
use std::sync::Mutex;
use std::time::Instant;

use workahead_machine::pages::{PageBuffer, Pages};
use workahead_machine::{clock::Moment, pin};
use workahead_operators::chained::*;
use workahead_operators::hash::hash_u32;
use workahead_operators::isa::Portable;
use workahead_operators::memory::*;
use workahead_operators::record::*;
use workahead_operators::schedule::*;
use workahead_operators::threads::*;
use workahead_operators::work_ahead::{self, *};
use workahead_operators::{Row, Rows};

struct Rng(u64);
impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn table(n: usize, rng: &mut Rng, pages: Pages) -> PageBuffer<Record> {
    let mut t = PageBuffer::<Record>::zeroed(n, pages).unwrap();
    for (i, r) in t.iter_mut().enumerate() {
        r.key = (rng.next() % n as u64) as u32 + 1;
        r.row = i as u32;
    }
    t
}

#[inline(never)]
fn by_hand(
    chains: Lists<'_>,
    build: &[Record],
    probes: &[Record],
    rids: &[u32],
    out: &mut [Joined],
) -> usize {
    let mut n = 0;
    for &rid in rids {
        let probe = &probes[rid as usize];
        let hash = hash_u32(probe.key);
        let mut at = *chains.head(hash);
        while let Some(cell) = chains.cell(at) {
            if cell.hash == hash {
                let b = &build[cell.row as usize];
                if b.key == probe.key {
                    if let Some(o) = out.get_mut(n) {
                        o.probe = *probe;
                        o.build = *b;
                    }
                    n += 1;
                }
            }
            at = cell.next;
        }
    }
    n
}

#[allow(clippy::too_many_lines)]
fn main() {
    // Cargo names `--bench` when it measures; under `cargo test` this runs small.
    let measured = std::env::args().any(|word| word == "--bench");
    let (n, reps): (usize, usize) = if measured { (2_000_000, 5) } else { (20_000, 1) };
    let mut rng = Rng(88172645463325252);
    let pages = Pages::Huge;
    let build = table(n, &mut rng, pages);
    let probe = table(n, &mut rng, pages);
    let chains = Chains::build(build.iter().map(|r| r.key), pages).unwrap();
    let mut rids: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        rids.swap(i, (rng.next() % (i as u64 + 1)) as usize);
    }
    let rids = PageBuffer::copied(&rids, pages).unwrap();
    let mut out = PageBuffer::<Joined>::zeroed(n + n / 8, pages).unwrap();
    let mut out2 = PageBuffer::<Joined>::zeroed(n + n / 8, pages).unwrap();
    out.fill(bytemuck::Zeroable::zeroed());
    out2.fill(bytemuck::Zeroable::zeroed());
    let allowed = pin::affinity().unwrap();
    let _p = pin::to(0, &allowed).unwrap();
    let probes = Unclustered { records: &probe, rids: &rids };
    let walk = HashJoin::new(&chains, &build, probes);
    let iters = (4_000_000 / n).max(1);
    let mut results: Vec<(String, Vec<f64>)> = vec![];
    let mut want = 0;
    for rep in 0..reps {
        let mut k = 0;
        let mut rec = |name: String, s: f64| {
            if rep == 0 {
                results.push((name, vec![]));
            }
            results[k].1.push(s);
            k += 1;
        };
        let t = Moment::now();
        for _ in 0..iters {
            want = by_hand(Lists::of(&chains), &build, &probe, &rids, &mut out);
        }
        rec("by hand".into(), t.elapsed().cpu_s);
        macro_rules! one {
            ($name:expr, $sched:expr, $mem:expr) => {{
                let t = Moment::now();
                for _ in 0..iters {
                    let mut w = walk;
                    let mut sink = Materialise::new(&mut out);
                    let mut rows = Rows::range(0..n as Row);
                    assert_eq!(
                        $sched.drive(&mut w, &mut rows, &mut $mem, &mut sink),
                        Pause::Drained
                    );
                    assert_eq!(sink.written(), want);
                }
                rec($name.into(), t.elapsed().cpu_s);
            }};
        }
        one!("in turn", InTurn::new(), Direct);
        one!("staged 128", Lanes::new(128), Direct);
        one!("rounds 1024 direct", Rounds::new(1024), Direct);
        one!("rounds 1024 pf", Rounds::new(1024), Prefetching::<ToL1>::default());
        one!("group 64", Groups::new(64), Prefetching::<ToL1>::default());
        for w in [8, 16, 24, 32, 48, 64] {
            one!(format!("amac {w}"), Lanes::new(w), Prefetching::<ToL1>::default());
        }
        for w in [16, 32, 64] {
            one!(format!("amac {w} l2"), Lanes::new(w), Prefetching::<ToL2>::default());
        }
        one!("distance 32", Distance::new(32), Prefetching::<ToL1>::default());
        // bi
        for (name, split) in [
            ("bi amac32 strided", Split::Strided),
            ("bi amac32 morsels", Split::Morsels { rows: 16384 }),
        ] {
            let outs = [Mutex::new(&mut out[..]), Mutex::new(&mut out2[..])];
            let t = Instant::now();
            let mut cpu = 0f64;
            for _ in 0..iters {
                let shares = Shares::new(split, n as Row, 2);
                let ran = together(&[0, 1], &allowed, |i| {
                    let mut own = outs[i].lock().unwrap();
                    let mut w = walk;
                    let mut sink = Materialise::new(&mut own);
                    for mut rows in shares.of(i as u32) {
                        Lanes::new(32).drive(
                            &mut w,
                            &mut rows,
                            &mut Prefetching::<ToL1>::default(),
                            &mut sink,
                        );
                    }
                    sink.written()
                })
                .unwrap();
                assert_eq!(ran.iter().map(|r| r.result).sum::<usize>(), want);
                cpu += ran.iter().map(|r| r.elapsed.cpu_s).fold(0.0, f64::max);
            }
            let _ = t;
            rec(name.into(), cpu);
        }
        for size in [32, 128, 256, 512] {
            for (d, dn) in [(Direction::Forward, "fwd"), (Direction::Backward, "bwd")] {
                for (w, wn) in [(Wait::None, ""), (Wait::Spin { pauses: 4 }, "+spin")] {
                    let options = Options {
                        size,
                        guard: Guard::None,
                        deduplicate: Deduplicate::Nothing,
                        helper: Some(Helper { direction: d, wait: w, skip: Skip::Nothing }),
                    };
                    let t = Moment::now();
                    for _ in 0..iters {
                        let mut wk = walk;
                        let mut sink = Materialise::new(&mut out);
                        let mut rows = Rows::range(0..n as Row);
                        work_ahead::run(
                            Portable,
                            &mut wk,
                            &mut rows,
                            options,
                            Placement { helper_cpu: 1, allowed: &allowed },
                            &mut sink,
                        )
                        .unwrap();
                        assert_eq!(sink.written(), want);
                    }
                    rec(format!("was {size} {dn}{wn}"), t.elapsed().cpu_s);
                }
            }
        }
        let options = Options {
            size: 128,
            guard: Guard::None,
            deduplicate: Deduplicate::Nothing,
            helper: None,
        };
        let t = Moment::now();
        for _ in 0..iters {
            let mut wk = walk;
            let mut sink = Materialise::new(&mut out);
            work_ahead::run(
                Portable,
                &mut wk,
                &mut Rows::range(0..n as Row),
                options,
                Placement { helper_cpu: 1, allowed: &allowed },
                &mut sink,
            )
            .unwrap();
        }
        rec("was 128 no helper".into(), t.elapsed().cpu_s);
    }
    let med = |v: &[f64]| {
        let mut v = v.to_vec();
        v.sort_by(f64::total_cmp);
        v[v.len() / 2]
    };
    let base = med(&results[1].1);
    for (name, v) in &results {
        println!("{name:24} {:8.2} Mt/s  x{:.2}", (n * iters) as f64 / med(v) / 1e6, base / med(v));
    }
}
