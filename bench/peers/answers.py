"""DuckDB's answers to TPC-H's queries, a file each: `answers.py --data DIR --queries DIR --out DIR`.

The first line names the columns and DuckDB's types for them, `name:TYPE|name:TYPE`; the others are
the rows in the order of the answer. TPC-H's texts have no `|`.
"""

import argparse
import pathlib

import duckdb


def main():
    parser = argparse.ArgumentParser()
    for word in ["data", "queries", "out"]:
        parser.add_argument(f"--{word}", type=pathlib.Path, required=True)
    words = parser.parse_args()
    engine = duckdb.connect()
    for table in words.data.glob("*.parquet"):
        engine.execute(f"create view {table.stem} as from read_parquet('{table}')")
    words.out.mkdir(parents=True, exist_ok=True)
    for query in sorted(words.queries.glob("q*.sql")):
        answer = engine.execute(query.read_text())
        columns = "|".join(f"{name}:{kind}" for name, kind, *_ in answer.description)
        rows = ["|".join(map(text, row)) for row in answer.fetchall()]
        (words.out / f"{query.stem}.txt").write_text("\n".join([columns, *rows]) + "\n")
        print(f"{query.stem}: {len(rows)} rows")


def text(value):
    return "NULL" if value is None else str(value)


main()
