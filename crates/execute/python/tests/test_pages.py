"""The examples of the pages are run."""

from __future__ import annotations

import pathlib
import re

import pyarrow as pa
import pytest

ROOT = pathlib.Path(__file__).parents[4]
# Names that the short examples assume.
GIVEN = {
    "orders": pa.table({"order_id": [1, 2]}),
    "lines": pa.table({"order_id": [2, 3]}),
}


@pytest.mark.parametrize("page", ["docs/python.md", "README.md", "crates/execute/python/README.md"])
def test_examples_run(page):
    blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    assert blocks
    names = dict(GIVEN)
    for block in blocks:
        exec(compile(block, page, "exec"), names)
