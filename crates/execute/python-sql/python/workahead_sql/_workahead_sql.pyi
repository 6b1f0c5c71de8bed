"""The native module. Use :func:`workahead.sql`."""

from typing import Any

from workahead._workahead import Batch, ResultStream

__version__: str

def sql(query: str, tables: list[tuple[str, object, bool]], options: dict[str, Any]) -> ResultStream: ...
