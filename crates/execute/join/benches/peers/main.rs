//! Our join as one engine among its peers: `cargo xtask bench peers` drives it over a pipe.
//!
//! The requests and replies are those of `bench/peers/worker.py`; a reply of ours also has
//! `phases`, seconds by the name of the phase, summed over the threads. Started without
//! `--worker` it joins small inputs of every kind and checks the answers.

mod check;
mod data;
mod join;
mod worker;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().position(|argument| argument == "--worker") {
        None => check::run(),
        Some(at) => {
            let threads = arguments.get(at + 1).and_then(|threads| threads.parse().ok());
            worker::serve(threads.expect("--worker THREADS"));
        }
    }
}
