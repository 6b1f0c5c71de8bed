"""Exceptions. Each message is one line that names the remedy."""


class WorkaheadError(Exception):
    """Base class of this package's exceptions."""


class WrongUseError(WorkaheadError, ValueError):
    """The arguments are wrong: an unknown column or name, or types that do not fit."""


class MemoryLimitError(WorkaheadError, MemoryError):
    """The work does not fit into the memory limit, even with spilling."""


class SpillError(WorkaheadError, OSError):
    """Spilled data could not be written or read back."""


class InputError(WorkaheadError, RuntimeError):
    """An input could not be read: its producer failed."""
