"""What is known of this machine and of studies, as plain Python and Arrow."""

from __future__ import annotations

import json
import os
from typing import Any

from . import _workahead


def machine() -> dict[str, Any]:
    """What this computer is, as ``workahead machine --json`` prints it.

    Processor, topology, siblings, caches (bytes), TLBs, pages, memory (bytes), counters and the
    evidence tier. What the system does not say is ``None``.
    """
    facts: dict[str, Any] = json.loads(_workahead.machine())
    return facts


def limits(*, measure: bool = False, quick: bool = False) -> dict[str, Any] | None:
    """What this machine's memory can do, as ``workahead limits --json`` prints it.

    Latency (``ns``) by footprint (``bytes``), independent random cache lines per second by
    threads, sequential bytes per second, sizes of the caches as they behave.

    Parameters
    ----------
    measure
        Measure anew and keep it: about 30 seconds, at most a quarter of the memory. By default
        what was measured before is returned, or ``None`` if nothing was.
    quick
        A rough look in 3 seconds; it is not kept.
    """
    known = _workahead.measured_limits(quick) if measure or quick else _workahead.kept_limits()
    facts: dict[str, Any] | None = None if known is None else json.loads(known)
    return facts


def study(directory: str | os.PathLike[str]) -> Study:
    """The results in a directory that ``workahead study run`` has written. Nothing is run.

    Raises
    ------
    WorkaheadError
        There is no result in the directory, or it is damaged.
    """
    return Study(_workahead.StudyResults(os.fspath(directory)))


class Study:
    """The results of a study."""

    __slots__ = ("_results",)

    def __init__(self, results: _workahead.StudyResults) -> None:
        self._results = results

    def __repr__(self) -> str:
        return f"<workahead.Study: {self.id}>"

    @property
    def id(self) -> str:
        """The study's id: ``zhou/hash_join``."""
        return self._results.id()

    @property
    def is_complete(self) -> bool:
        """Whether every cell has all its samples, or the reason why not."""
        return self._results.is_complete()

    def observations(self) -> _workahead.Batch:
        """One row for each sample or failure, as Arrow: the columns of ``observations.parquet``.

        ``study, engine, machine, tier, seed, cell, block, repetition, slot, …``;
        ``setting.NAME`` as words; ``wall_s, cpu_s`` in seconds, ``tuples``, ``mtuples_per_s``;
        ``measure.NAME``; ``failure``. Ready for ``polars.DataFrame(…)``,
        ``pyarrow.record_batch(…).to_pandas()`` and charts.
        """
        return self._results.observations()

    def findings(self) -> list[dict[str, Any]]:
        """What was found in every cell: ratios to the baseline with their intervals."""
        findings: list[dict[str, Any]] = json.loads(self._results.findings())
        return findings
