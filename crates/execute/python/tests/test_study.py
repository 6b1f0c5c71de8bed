"""The results of a study, from files that are written here."""

from __future__ import annotations

import json
import os
import pathlib

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import workahead as wa


@pytest.fixture
def result(tmp_path: pathlib.Path) -> pathlib.Path:
    (tmp_path / "run.json").write_text('{"study": "a/b"}')
    findings = {"complete": False, "findings": [{"is_baseline": True}]}
    (tmp_path / "findings.json").write_text(json.dumps(findings))
    return tmp_path


def test_findings_are_read(result: pathlib.Path):
    study = wa.study(str(result))
    assert (study.id, study.is_complete) == ("a/b", False)
    assert study.findings() == [{"is_baseline": True}]


@pytest.mark.parametrize("rows", [0, 3])
def test_observations_are_a_batch(result: pathlib.Path, rows: int):
    table = pa.table({"wall_s": pa.array([1.5] * rows, pa.float64())})
    pq.write_table(table, result / "observations.parquet")
    observations = wa.study(result).observations()
    assert pl.DataFrame(observations)["wall_s"].to_list() == [1.5] * rows


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("run.json", None, "workahead study run"),
        ("findings.json", None, "workahead study report"),
        ("findings.json", "{", "can't read"),
        ("findings.json", "[]", "damaged"),
    ],
)
def test_a_damaged_result_is_an_error(result: pathlib.Path, name: str, text: str, words: str):
    path = result / name
    path.write_text(text) if text is not None else path.unlink()
    with pytest.raises(wa.WorkaheadError) as raised:
        wa.study(result)
    message = str(raised.value)
    assert words in message and str(result) in message and "\n" not in message


def test_a_result_is_a_file_and_no_pipe(result: pathlib.Path):
    os.mkfifo(result / "observations.parquet")
    with pytest.raises(wa.WorkaheadError, match="not a regular file"):
        wa.study(result).observations()
    (result / "run.json").unlink()
    os.mkfifo(result / "run.json")
    with pytest.raises(wa.WorkaheadError, match="not a regular file"):
        wa.study(result)
    (result / "run.json").unlink()
    (result / "run.json").write_text("[" * 100_000)
    with pytest.raises(wa.WorkaheadError, match="can't read"):
        wa.study(result)
