"""What is done in Rust. Use :func:`workahead.sql`."""

from typing import Any

from workahead._workahead import Batch, Joined

__version__: str

def sql(query: str, tables: list[tuple[str, object, bool]], options: dict[str, Any]) -> Joined: ...
