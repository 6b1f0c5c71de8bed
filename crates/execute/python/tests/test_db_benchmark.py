"""The folder for the public db-benchmark: its script runs, and its answers are its peers'."""

from __future__ import annotations

import pathlib
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parents[4] / "bench/db-benchmark"


def test_all_solutions_agree_on_small_tables():
    command = [sys.executable, "-B", FOLDER / "compare.py", "--rows", "1e4", "--rounds", "1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    heading, _, *questions, _, memory = done.stdout.splitlines()
    assert all(solution in heading for solution in ("workahead", "duckdb", "polars"))
    assert len(questions) == 5 and "workahead" in memory
