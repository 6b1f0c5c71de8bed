"""A memory limit is kept, and changes no row."""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import textwrap

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import workahead as wa
from oracle import HOWS

ROWS = 60_000


def sides() -> tuple[pa.Table, pa.Table]:
    chosen = random.Random(11)
    key = lambda: None if chosen.random() < 0.02 else chosen.randrange(ROWS)  # noqa: E731
    left = {"k": [key() for _ in range(ROWS)], "l": [f"left row {i}" for i in range(ROWS)]}
    right = {"k": [key() for _ in range(ROWS)], "r": [f"right row {i}" for i in range(ROWS)]}
    return pa.table(left), pa.table(right)


def sorted_rows(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


@pytest.mark.parametrize("how", HOWS)
def test_spilling_changes_no_row(how, tmp_path):
    left, right = sides()
    expected = sorted_rows(wa.join(left, right, on="k", how=how).to_pyarrow())
    reader = wa.join(
        left, right, on="k", how=how, memory_limit="2MB", spill_dir=tmp_path, threads=2
    )
    assert sorted_rows(reader.to_pyarrow()).equals(expected)
    facts = reader.facts
    assert facts["spilled_bytes"] > 0 and facts["peak_memory_bytes"] <= 2_000_000
    assert facts["rows"] == expected.num_rows
    assert os.listdir(tmp_path) == [], "spilled files have no name"


def test_nothing_is_spilled_within_the_limit():
    left, right = sides()
    reader = wa.join(left, right, on="k", memory_limit="1GiB")
    reader.to_pyarrow()
    assert reader.facts["spilled_bytes"] == 0


def test_a_limit_that_is_too_small_is_an_error():
    left, right = sides()
    with pytest.raises(wa.MemoryLimitError, match="raise the limit") as raised:
        wa.join(left, right, on="k", memory_limit=1000).to_pyarrow()
    assert isinstance(raised.value, MemoryError)
    assert "\n" not in str(raised.value)


def test_a_missing_spill_directory_is_refused_at_once():
    left, right = sides()
    with pytest.raises(wa.SpillError, match="no-such-directory"):
        wa.join(left, right, on="k", memory_limit="1MB", spill_dir="/no-such-directory")


def test_an_order_excludes_spilling():
    left, right = sides()
    with pytest.raises(wa.WrongUseError, match="maintain_order"):
        wa.join(left, right, on="k", memory_limit="2MB", maintain_order="left").to_pyarrow()


STREAMED = textwrap.dedent("""
    import resource, sys
    import pyarrow as pa, pyarrow.compute as pc
    import workahead as wa

    def batches(rows, multiplier):
        for start in range(0, rows, 1 << 16):
            ids = pa.array(range(start, start + (1 << 16)), pa.int64())
            keys = pc.bit_wise_and(pc.multiply(ids, multiplier), rows - 1)
            pad = pa.repeat(pa.scalar("x" * 100), 1 << 16)
            yield pa.record_batch({"k": keys, "pad": pad})

    def reader(rows, multiplier):
        made = batches(rows, multiplier)
        schema = next(batches(1 << 16, 1)).schema
        return pa.RecordBatchReader.from_batches(schema, made)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    joined = wa.join(reader(1 << 20, 7), reader(1 << 21, 5), on="k", memory_limit="64MB")
    rows = sum(len(batch) for batch in joined)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(rows, (peak - before) * 1024, joined.facts["spilled_bytes"])
""")


def test_both_sides_are_streamed_within_the_limit():
    """120 MB are joined with 240 MB in 64 MB: the whole process does not get larger."""
    done = subprocess.run([sys.executable, "-c", STREAMED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows, grown, spilled = map(int, done.stdout.split())
    # Numbers times an odd one, in as many bits: each key once. The left side has half of them.
    assert rows == 1 << 20
    assert spilled > 0
    assert grown < 128 << 20


def test_memory_is_released():
    left, right = sides()
    reader = wa.join(left, right, on="k")
    before = pa.total_allocated_bytes()
    table = reader.to_pyarrow()
    total = pc.count(table["k"]).as_py()
    assert total > 0
    del table, reader
    gc.collect()
    assert pa.total_allocated_bytes() <= before
