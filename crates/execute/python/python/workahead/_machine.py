"""The machine and its measured limits, as plain Python."""

from __future__ import annotations

import json
from typing import Any

from . import _workahead


def machine() -> dict[str, Any]:
    """Description of this computer, as ``workahead machine --json`` prints it.

    Processor, topology, siblings, caches (bytes), TLBs, pages, memory (bytes), counters and the
    evidence tier. Unknown values are ``None``.
    """
    facts: dict[str, Any] = json.loads(_workahead.machine())
    return facts


def limits(*, measure: bool = False, quick: bool = False) -> dict[str, Any] | None:
    """Measured limits of this machine's memory, as ``workahead limits --json`` prints them.

    Latency (``ns``) by footprint (``bytes``), independent random cache lines per second by
    threads, sequential bytes per second, measured sizes of the caches.

    Parameters
    ----------
    measure
        Measure again and keep the result: about 30 seconds, at most a quarter of the memory. By
        default the kept result is returned, or ``None`` if there is none.
    quick
        A rough estimate in 3 seconds, which is not kept.
    """
    known = _workahead.measured_limits(quick) if measure or quick else _workahead.kept_limits()
    facts: dict[str, Any] | None = None if known is None else json.loads(known)
    return facts
