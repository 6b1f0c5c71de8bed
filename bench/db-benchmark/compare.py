"""The join task by Workahead, and by DuckDB and Polars where they are installed.

    python compare.py --rows 1e7 --rounds 3 --threads 2

Each round runs each solution once, as a process of its own, in an order that turns. Answers (rows,
columns, sums) have to be equal. Prints medians in seconds as a table.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

import generate

HERE = pathlib.Path(__file__).parent.resolve()
PEERS = ("duckdb", "polars")


def prepared(folder, rows):
    """A folder like a checkout of the public benchmark."""
    (folder / "_helpers").mkdir(exist_ok=True)
    shutil.copy(HERE / "helpers.py", folder / "_helpers")
    if not (folder / "data" / f"{generate.names(rows)[0]}.csv").exists():
        generate.generate(rows, folder / "data")


def run(solution, folder, rows, threads):
    log = folder / "log"
    log.unlink(missing_ok=True)
    environment = {**os.environ, "SRC_DATANAME": generate.names(rows)[0], "LOG": str(log)}
    environment["POLARS_MAX_THREADS"] = str(threads)
    script = ["workahead/join-workahead.py"] if solution == "workahead" else ["peers.py", solution]
    command = [sys.executable, "-B", str(HERE / script[0]), *script[1:]]
    # Whose threads are as many as the CPUs that they are allowed.
    allowed = sorted(os.sched_getaffinity(0))[:threads]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, allowed),
    )
    if done.returncode:
        sys.exit(f"{solution}: {done.stderr}")
    return [json.loads(line) for line in log.read_text().splitlines()]


def compare(folder, rows, rounds, threads):
    solutions = ["workahead", *(name for name in PEERS if importlib.util.find_spec(name))]
    prepared(folder, rows)
    answers, seconds, memory = {}, {}, {}
    for round_ in range(rounds):
        turn = round_ % len(solutions)
        for solution in solutions[turn:] + solutions[:turn]:
            for line in run(solution, folder, rows, threads):
                question = line["question"]
                answer = (line["out_rows"], line["out_cols"], *map(float, line["chk"].split(";")))
                wanted = answers.setdefault(question, answer)
                if not equal(answer, wanted):
                    sys.exit(f"{question}: {solution} has {answer}, and not {wanted}")
                at = (question, solution, line["run"])
                seconds.setdefault(at, []).append(line["time_sec"])
                name = f"{solution} {line['version']}"
                memory[name] = max(memory.get(name, 0), line["mem_gb"])
    return solutions, answers, seconds, memory


def equal(answer, wanted):
    """Sums of floating-point numbers depend on their order."""
    return answer[:2] == wanted[:2] and all(
        abs(own - its) <= 1e-9 * abs(its) + 2e-3
        for own, its in zip(answer[2:], wanted[2:], strict=True)
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=pathlib.Path, help="keeps the tables for the next run")
    arguments = parser.parse_args()
    rows = int(arguments.rows)
    with tempfile.TemporaryDirectory() as temporary:
        folder = (arguments.folder or pathlib.Path(temporary)).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        solutions, answers, seconds, memory = compare(
            folder, rows, arguments.rounds, arguments.threads
        )
    print("| question, rows of the answer |", " | ".join(solutions), "|")
    print("|---|" + "---:|" * len(solutions))
    for question, answer in answers.items():
        cells = [
            " / ".join(f"{statistics.median(seconds[question, name, run]):.3f}" for run in (1, 2))
            for name in solutions
        ]
        print(f"| {question}, {answer[0]:,} | {' | '.join(cells)} |")
    print()
    print("Peak memory:", ", ".join(f"{name} {gb:.2f} GB" for name, gb in memory.items()))


if __name__ == "__main__":
    main()
