"""Our join from Python beside the Rust one, Polars and DuckDB, on the same rows.

    target/python/venv/bin/python crates/python/benches/join.py --ours PATH [--threads 1]

The wheel is to be a release build (`maturin build --release`), and PATH the worker of
`cargo bench -p workahead-columns --bench peers --no-run`. All have read both sides into memory of
their own, as the Rust one does: one that maps the file has small pages, which cost 4 %. Keys and
payloads come out as Arrow batches, which are counted and dropped. Rounds are interleaved: each
engine once, in an order that turns; medians of wall and CPU seconds, and the median of the rounds'
ratios.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
PEERS = HERE.parents[2] / "bench/peers"
RUST, PYTHON = "Rust", "Python"


class Engine:
    """A process that joins when it is asked to."""

    def __init__(self, name, command):
        environment = {**os.environ, "PYTHONPATH": f"{HERE}:{PEERS}"}
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if "error" in reply:
            sys.exit(f"{self.name}: {reply['error']}")
        return reply


def engines(asked):
    pinned = [sys.executable, "-B", str(PEERS / "pinned.py"), str(asked.threads)]
    threads = str(asked.threads)
    worker = [*pinned, sys.executable, "-B", str(PEERS / "worker.py")]
    yield Engine(RUST, [*pinned, asked.ours, "--worker", threads])
    for name, engine in ((PYTHON, "workahead"), ("Polars", "polars"), ("DuckDB", "duckdb")):
        yield Engine(name, [*worker, engine, "--threads", threads])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--build", type=int, default=2_000_000)
    parser.add_argument("--probe", type=int, default=16_000_000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        generate = [sys.executable, "-B", str(PEERS / "generate.py"), "--out", data]
        generate += ["--build", str(asked.build), "--probe", str(asked.probe), "--keys", "int"]
        subprocess.run(generate, check=True)
        all_engines = list(engines(asked))
        answers = set()
        for engine in all_engines:
            engine.ask(do="load", data=data, own=True)
            reply = engine.ask(do="run", form="columns", check=True)
            answers.add((reply["count"], json.dumps(reply["sums"], sort_keys=True)))
        if len(answers) != 1:
            sys.exit(f"the engines disagree: {answers}")
        seen = {engine.name: [] for engine in all_engines}
        for round_ in range(asked.rounds):
            turn = round_ % len(all_engines)
            for engine in all_engines[turn:] + all_engines[:turn]:
                reply = engine.ask(do="run", form="columns", check=False)
                seen[engine.name].append((reply["wall_s"], reply["cpu_s"]))
    print(f"{asked.build:,} x {asked.probe:,} rows, {asked.threads} threads, {asked.rounds} rounds")
    for name, times in seen.items():
        wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        ratios = zip(times, seen[PYTHON], strict=True)
        ratio = statistics.median(their[1] / our[1] for their, our in ratios)
        print(f"{name:8} wall {wall:6.3f} s  CPU {cpu:6.3f} s  CPU over Python's {ratio:5.2f}")


if __name__ == "__main__":
    main()
