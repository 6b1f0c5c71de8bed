"""The results of a study, from the files that ``workahead study run`` has written."""

from __future__ import annotations

import json
import os
import pathlib
import stat
from typing import TYPE_CHECKING, Any, BinaryIO

from ._errors import WorkaheadError

if TYPE_CHECKING:
    import pyarrow

# The largest file of a result that is read, as by the command.
_BYTES_MAX = 256 << 20


def study(directory: str | os.PathLike[str]) -> Study:
    """Read the results in a directory that ``workahead study run`` has written.

    Raises
    ------
    WorkaheadError
        There is no result in the directory, or it is damaged.
    """
    return Study(directory)


class Study:
    """The results of a study."""

    __slots__ = ("_directory", "_id", "_results")

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self._directory = pathlib.Path(directory)
        run, self._results = self._read("run.json"), self._read("findings.json")
        try:
            self._id: str = run["study"]
            # Refuses a file without these keys.
            self._results["complete"], self._results["findings"]
        except (KeyError, TypeError):
            raise WorkaheadError(f"the result in {directory} is damaged") from None

    def __repr__(self) -> str:
        return f"<workahead.Study: {self.id}>"

    @property
    def id(self) -> str:
        """The study's id: ``zhou/hash_join``."""
        return self._id

    @property
    def is_complete(self) -> bool:
        """Whether every cell has all its samples, or the reason why not."""
        complete: bool = self._results["complete"]
        return complete

    def observations(self) -> pyarrow.RecordBatch:
        """One row for each sample or failure: ``observations.parquet``, read by pyarrow.

        ``study, engine, machine, tier, seed, cell, block, repetition, slot, …``;
        ``setting.NAME`` as text; ``wall_s, cpu_s`` in seconds, ``tuples``, ``mtuples_per_s``;
        ``measure.NAME``; ``failure``. Ready for ``polars.DataFrame(…)``, ``….to_pandas()`` and
        charts.
        """
        import pyarrow
        import pyarrow.parquet

        path = self._directory / "observations.parquet"
        try:
            with _opened(path) as file:
                table = pyarrow.parquet.read_table(file).combine_chunks()
        except (OSError, pyarrow.ArrowException) as error:
            raise WorkaheadError(f"can't read {path}: {_line(error)}") from error
        columns = [
            column.chunk(0) if column.num_chunks else pyarrow.array([], column.type)
            for column in table.columns
        ]
        return pyarrow.record_batch(columns, schema=table.schema)

    def findings(self) -> list[dict[str, Any]]:
        """Findings of every cell: ratios to the baseline with their intervals."""
        findings: list[dict[str, Any]] = self._results["findings"]
        return findings

    def _read(self, name: str) -> Any:
        path = self._directory / name
        try:
            return json.loads(_text(path))
        except FileNotFoundError:
            remedy = f"`workahead study report {self._directory}` writes it"
            if name == "run.json":
                remedy = "give a directory that `workahead study run` has written"
            raise WorkaheadError(f"there is no {path}: {remedy}") from None
        except (OSError, ValueError, RecursionError) as error:
            raise WorkaheadError(f"can't read {path}: {_line(error)}") from error


def _opened(path: pathlib.Path) -> BinaryIO:
    # A pipe would be waited for, and a device read without end.
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK))
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError("it is not a regular file")


def _text(path: pathlib.Path) -> str:
    with _opened(path) as file:
        content = file.read(_BYTES_MAX + 1)
    if len(content) > _BYTES_MAX:
        raise OSError(f"it has more than {_BYTES_MAX >> 20} MiB")
    return content.decode("utf-8")


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
