"""Facts of the machine and of studies."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import workahead as wa

# The command, if the environment names it.
COMMAND = os.environ.get("WORKAHEAD_COMMAND") or shutil.which("workahead")


def test_the_machine_is_a_plain_dict():
    machine = wa.machine()
    assert machine["architecture"] and machine["cpus"]["online"]
    json.dumps(machine)


def test_limits_are_kept_ones_or_none(tmp_path):
    script = "import workahead as wa; print(wa.limits())"
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True
    )
    assert done.stdout.strip() == "None"
    assert list(tmp_path.iterdir()) == []


def test_quick_limits():
    limits = wa.limits(quick=True)
    assert limits["quick"] is True
    assert all(point["ns"] > 0 for point in limits["latency"])


def test_a_directory_without_results_is_an_error(tmp_path):
    with pytest.raises(wa.WorkaheadError) as raised:
        wa.study(tmp_path)
    assert str(tmp_path) in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.skipif(COMMAND is None, reason="WORKAHEAD_COMMAND names no command")
def test_the_command_describes_the_same_machine():
    said = subprocess.run([COMMAND, "machine", "--json"], capture_output=True, check=True)
    said, ours = json.loads(said.stdout), wa.machine()
    # The available memory changes from one moment to the next.
    for machine in (said, ours):
        assert machine.pop("memory")["total_bytes"] > 0
    assert said == ours


STUDY = """
title = "Tiny"
question = "Does it come as Arrow?"
engine = "native"
workload = { operator = "hash_join", probe_rows = 1000, rows = 1000 }
[[cases]]
name = "in turn"
[[cases]]
name = "interleaved"
technique = "amac:width=8"
[method]
repetitions = 3
baseline = { case = "in turn" }
"""


@pytest.mark.skipif(COMMAND is None, reason="WORKAHEAD_COMMAND names no command")
def test_a_study_comes_as_arrow(tmp_path: pathlib.Path):
    (tmp_path / "tiny.toml").write_text(STUDY)
    out = tmp_path / "result"
    command = [COMMAND, "study", "run", "tiny.toml", "--no-limits", "--out", str(out)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    study = wa.study(out)
    assert study.is_complete
    assert "tiny" in repr(study)
    observations = pa.record_batch(study.observations())
    assert observations.num_rows == 2 * 3
    kept = pd.read_parquet(out / "observations.parquet")
    assert list(kept.columns) == observations.schema.names
    frame = pl.DataFrame(study.observations())
    assert frame["wall_s"].to_list() == kept["wall_s"].tolist()
    assert frame["setting.case"].unique().sort().to_list() == ["in turn", "interleaved"]
    findings = study.findings()
    assert [finding["is_baseline"] for finding in findings].count(True) == 1
