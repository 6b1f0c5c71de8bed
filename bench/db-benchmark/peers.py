"""The same questions, answered by DuckDB or Polars, each in the way of its own script of the public
benchmark: tables in memory, factors as enumerations, answers as tables in memory.

    python peers.py duckdb          # in a folder with `data` and `_helpers`, as `compare.py` makes it
"""

import gc
import os
import sys
import timeit

exec(open("./_helpers/helpers.py").read())

QUESTIONS = [
    ("small inner on int", "small", "id1", "inner"),
    ("medium inner on int", "medium", "id2", "inner"),
    ("medium outer on int", "medium", "id2", "left"),
    ("medium inner on factor", "medium", "id5", "inner"),
    ("big inner on int", "big", "id3", "inner"),
]
# As the script for DuckDB has it: enumerations of millions of values do not pay.
ENUMS = ("id4", "id5")
TEXTS = ("id4", "id5", "id6")


class DuckDB:
    def __init__(self, names):
        import duckdb

        self.version, self.connection = duckdb.__version__, duckdb.connect()
        self.names = {}
        run = self.connection.sql
        for name, file in zip(("x", "small", "medium", "big"), names, strict=True):
            run(f"create table {name}_texts as from 'data/{file}.csv'")
            self.names[name] = run(f"from {name}_texts").columns
        for factor in ENUMS:
            values = " union ".join(
                f"select {factor} from {name}_texts" for name, own in self.names.items()
                if factor in own
            )
            run(f"create type {factor}_type as enum (select * from ({values}) order by 1)")
        for name, own in self.names.items():
            columns = [self.typed(column) for column in own]
            run(f"create table {name} as select {', '.join(columns)} from {name}_texts")
            run(f"drop table {name}_texts")

    @staticmethod
    def typed(column):
        if column in TEXTS:
            return f"{column}::{column}_type as {column}" if column in ENUMS else column
        kind = "int" if column.startswith("id") else "double"
        return f"{column}::{kind} as {column}"

    def ask(self, y, key, how):
        others = [f"y.{name} as y_{name}" for name in self.names[y] if name not in (key, "v2")]
        columns = ", ".join(["x.*", *others, "v2"])
        self.connection.sql(
            f"create table ans as select {columns} from x {how} join {y} y using ({key})"
        )

    def forget(self):
        self.connection.sql("drop table if exists ans")

    def shape(self):
        ans = self.connection.sql("from ans")
        return ans.shape

    def sums(self):
        return self.connection.sql("select sum(v1), sum(v2) from ans").fetchall()[0]


class Polars:
    def __init__(self, names):
        import polars

        self.version, self.tables, self.answer = polars.__version__, {}, None
        kinds = {name: polars.Categorical for name in TEXTS}
        kinds |= {name: polars.Int32 for name in ("id1", "id2", "id3")}
        kinds |= {name: polars.Float64 for name in ("v1", "v2")}
        for name, file in zip(("x", "small", "medium", "big"), names, strict=True):
            path = f"data/{file}.csv"
            own = polars.scan_csv(path).collect_schema().names()
            self.tables[name] = polars.read_csv(
                path, schema_overrides={column: kinds[column] for column in own}
            ).rechunk()

    def ask(self, y, key, how):
        self.answer = self.tables["x"].lazy().join(self.tables[y].lazy(), on=key, how=how).collect()

    def forget(self):
        self.answer = None

    def shape(self):
        return self.answer.shape

    def sums(self):
        return self.answer["v1"].sum(), self.answer["v2"].sum()


def main():
    data_name = os.environ["SRC_DATANAME"]
    solution = {"duckdb": DuckDB, "polars": Polars}[sys.argv[1]]
    engine = solution([data_name, *join_to_tbls(data_name)])
    for question, y, key, how in QUESTIONS:
        for run in (1, 2):
            engine.forget()
            gc.collect()
            start = timeit.default_timer()
            engine.ask(y, key, how)
            seconds = timeit.default_timer() - start
            rows, columns = engine.shape()
            write_log(
                question=question, solution=sys.argv[1], version=engine.version, run=run,
                out_rows=rows, out_cols=columns, time_sec=seconds, mem_gb=memory_usage(),
                chk=make_chk(engine.sums()),
            )


main()
