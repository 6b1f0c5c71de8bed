"""The machine and its measured limits, as plain Python."""

from __future__ import annotations

import json
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
