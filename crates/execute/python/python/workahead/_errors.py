"""What can go wrong. Each text is one line that names the remedy."""


class WorkaheadError(Exception):
    """Everything that this package raises on its own account."""


class WrongUseError(WorkaheadError, ValueError):
    """The call asks for something that can't be: a column that is not there, an unknown name."""


class MemoryLimitError(WorkaheadError, MemoryError):
    """The work does not fit into the memory limit, even with spilling."""


class SpillError(WorkaheadError, OSError):
    """What does not fit into memory could not be written, or read back."""


class InputError(WorkaheadError, RuntimeError):
    """An input could not be read: its producer failed."""
