"""pandas' own tests of merge and join, with our join in pandas' place: `pandas_adapter.py`."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

SUITE = "pandas.tests.reshape.merge"
MODULES = ["test_merge", "test_join", "test_multi", "test_merge_antijoin", "test_merge_cross"]
MODULES += ["test_merge_index_as_string"]


def test_pandas_own_tests_pass_or_are_listed(tmp_path: pathlib.Path):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--maxfail=20", "-p", "pandas_adapter"]
    command += ["-p", "no:cacheprovider", "--pyargs", *(f"{SUITE}.{module}" for module in MODULES)]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={"PYTHONPATH": str(pathlib.Path(__file__).parent), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    said = done.stdout[-4000:]
    assert done.returncode == 0, said
    passed, xfailed = (
        int(match.group(1)) if (match := re.search(rf"(\d+) {word}", said)) else 0
        for word in ("passed", "xfailed")
    )
    joins = int(re.search(r"(\d+) joins by workahead", said).group(1))
    print(f"pandas: {passed} passed, {xfailed} listed, {joins} joins by workahead")
    # The suite is there, and really joins with us.
    assert passed > 500 and joins > 300
