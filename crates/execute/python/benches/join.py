"""Our join from Python compared with the Rust one, Polars and DuckDB, on the same rows.

    cargo xtask bench python

That installs a release wheel, and builds the Rust worker that `--ours` names: the bench `peers` of
`workahead-join`. All have read both sides into memory of their own, as the Rust one does: one that maps the file has
small pages, which cost 4 %. Keys and payloads come out as batches that are counted and dropped.
Rounds are interleaved: each engine once, in an order that turns; medians of wall and CPU seconds,
and the median of the rounds' ratios.
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
PEERS = HERE.parents[3] / "bench/peers"
RUST = "Rust"
MODULES = {
    "Python": "workahead",
    "Python, read by pyarrow": "workahead_stream",
    "Polars": "polars",
    "DuckDB": "duckdb",
}
NOTES = [
    "Each row of the larger side has one match, all columns are 64-bit integers, and every "
    "engine's count and sums were equal.",
    "`Python` reads the batches of `wa.join` one by one; read by pyarrow, they come through "
    "Arrow's C stream and each becomes a `pyarrow.RecordBatch`.",
    "Medians of interleaved rounds; `cpu_of_rust` is the median of the rounds' ratios.",
]


class Engine:
    """A process that joins on request."""

    def __init__(self, name, command):
        environment = {**os.environ, "PYTHONPATH": f"{HERE}:{PEERS}"}
        self.name = name
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )

    def request(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        reply = json.loads(self.process.stdout.readline())
        if "error" in reply:
            sys.exit(f"{self.name}: {reply['error']}")
        return reply


def engines(arguments):
    pinned = [sys.executable, "-B", str(PEERS / "pinned.py"), str(arguments.threads)]
    threads = str(arguments.threads)
    worker = [*pinned, sys.executable, "-B", str(PEERS / "worker.py")]
    yield Engine(RUST, [*pinned, arguments.ours, "--worker", threads])
    for name, module in MODULES.items():
        yield Engine(name, [*worker, module, "--threads", threads])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--build", type=int, default=2_000_000)
    parser.add_argument("--probe", type=int, default=16_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        generate = [sys.executable, "-B", str(PEERS / "generate.py"), "--out", data]
        generate += ["--build", str(arguments.build), "--probe", str(arguments.probe), "--keys", "int"]
        subprocess.run(generate, check=True)
        all_engines = list(engines(arguments))
        answers = set()
        for engine in all_engines:
            engine.request(do="load", data=data, own=True)
            reply = engine.request(do="run", form="columns", check=True)
            answers.add((reply["count"], json.dumps(reply["sums"], sort_keys=True)))
        if len(answers) != 1:
            sys.exit(f"the engines disagree: {answers}")
        seen = {engine.name: [] for engine in all_engines}
        for round_ in range(arguments.rounds):
            turn = round_ % len(all_engines)
            for engine in all_engines[turn:] + all_engines[:turn]:
                reply = engine.request(do="run", form="columns", check=False)
                seen[engine.name].append((reply["wall_s"], reply["cpu_s"]))
    rows = [row(name, times, seen[RUST]) for name, times in seen.items()]
    sizes = f"{arguments.build:,} × {arguments.probe:,} rows, threads {arguments.threads}"
    title = f"Our join from Python beside the Rust one, Polars and DuckDB: {sizes}"
    if arguments.json:
        print(json.dumps({"title": title, "rows": rows, "notes": NOTES}))
        return
    print(title)
    for values in rows:
        print("  ".join(f"{name} {value}" for name, value in values.items()))


def row(name, times, rust):
    wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(own[1] / its[1] for own, its in zip(times, rust, strict=True))
    return {
        "engine": name,
        "wall_ms": round(wall * 1e3, 1),
        "cpu_ms": round(cpu * 1e3, 1),
        "cpu_of_rust": round(ratio, 3),
    }


if __name__ == "__main__":
    main()
