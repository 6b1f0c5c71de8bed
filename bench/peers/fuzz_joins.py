"""Random joins by `workahead join` and by DuckDB: the same rows, or the case is shown.

    fuzz_joins.py --workahead PROGRAM --seconds N --seed S [--case N]

Each case draws two inputs (key types, nulls, duplicates, skew), a type of join, perhaps a filter,
and then several ways of doing the very same join: either build side, layouts, threads, memory
limits that make it spill, formats of files. Every result must be DuckDB's, as a multiset of rows.
A case that fails is made smaller row by row, and printed with its seed.

In the manner of Velox's JoinFuzzer and of DataFusion's join_fuzz.rs. Where the engines mean
different things, ours is Arrow's, and the case is in LISTED with the answer that we want.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

import duckdb
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

TYPES = ["inner", "left", "right", "full", "left-semi", "right-semi", "left-anti", "right-anti",
         "left-mark", "right-mark"]
LAYOUTS = ["auto", "buckets", "dense", "bloom"]
LIMITS = ["9MB", "14MB", "20MB"]

WORDS = ["", "a", "b", "ab", "abc", "a b", "aB", "%", "_", "é", "a text longer than a view holds",
         "a text longer than a view keeps", "\u2028", "zz"]
DECIMAL = pa.decimal128(20, 3)

# Types that are compared with each other, and their values.
FAMILIES = [
    ([pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(),
      pa.uint64()], lambda r: r.choice([0, 1, 2, 3, 5, 7, 100, 127])),
    ([pa.int64()], lambda r: r.choice([-(1 << 63), -1, 0, 1, (1 << 63) - 1, r.getrandbits(62)])),
    ([pa.int32(), pa.int64(), pa.uint64()], lambda r: r.randrange(1 << 30)),
    ([pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())],
     lambda r: r.choice(WORDS)),
    ([pa.binary(), pa.large_binary()], lambda r: r.choice(WORDS).encode()),
    # -0.0 is not among them: see LISTED.
    ([pa.float64()], lambda r: r.choice([0.0, 1.5, -2.25, float("inf"), float("nan"), 1e300])),
    ([pa.float32()], lambda r: r.choice([0.0, 1.5, -2.25, float("-inf"), float("nan")])),
    ([pa.bool_()], lambda r: r.random() < 0.5),
    ([pa.date32()], lambda r: r.randrange(20)),
    ([pa.timestamp("us")], lambda r: r.randrange(-5, 5) * 1_000_001),
    ([DECIMAL], lambda r: r.randrange(-4, 4)),
]

# Filters as both understand them; `left.` and `right.` become DuckDB's aliases.
FILTERS = [
    "left.v < right.v",
    "left.v + right.v > 10 AND left.v <> 3",
    "(left.v + right.id) % 3 = 1",
    "left.v BETWEEN 2 AND right.v OR right.v IS NULL",
    "left.t LIKE 'a%' OR NOT right.t LIKE '%b%'",
    "left.t < right.t",
    "left.v IN (1, 2, 3, right.v)",
    "left.v IS NOT DISTINCT FROM right.v",
    "NOT (left.v = right.v) AND left.id IS NOT NULL",
    "CAST(left.v AS VARCHAR) = '5' OR -right.v > -4",
    "left.id < 5",
    "right.v * 2 >= left.v - 1 AND (left.t IS NULL OR right.id % 2 = 0)",
    "false",
    "NULL",
    "left.v * 1.5 > right.v",
]


class Case:
    """Two inputs and a join of them."""

    def __init__(self, seed, number):
        r = self.random = random.Random(f"{seed}-{number}")
        self.families = [r.choice(FAMILIES) for _ in range(r.choice([1, 1, 1, 2, 2, 3]))]
        self.types = [[r.choice(family[0]) for family in self.families] for _ in range(2)]
        self.join = r.choice(TYPES)
        self.null_equal = r.random() < 0.3
        self.filter = r.choice(FILTERS) if r.random() < 0.4 else None
        self.large = r.random() < 0.15
        self.rows = [self.draw(side) for side in range(2)]

    def draw(self, side):
        r = self.random
        count = r.choice([15000, 40000]) if self.large else r.choice([0, 1, 3, 20, 60, 200])
        nulls = r.choice([0, 0, 0.1, 0.5])
        hot = r.choice([0, 0, 0.3]) if not self.large else 0
        # Large inputs meet each other seldom, or the result would not end.
        pool = [tuple(family[1](r) for family in self.families)
                for _ in range(r.choice([3, 30, 300]))]
        rows = []
        for row in range(count):
            if self.large:
                key = tuple(self.spread(family, row) for family in self.families)
            elif r.random() < hot:
                key = pool[0]
            elif r.random() < 0.5:
                key = r.choice(pool)
            else:
                key = tuple(family[1](r) for family in self.families)
            key = tuple(None if r.random() < nulls else value for value in key)
            value = None if r.random() < 0.1 else r.randrange(20)
            text = None if r.random() < 0.1 else r.choice(WORDS) * (40 if self.large else 1)
            rows.append((*key, value, text, row))
        return rows

    def spread(self, family, _row):
        """Of the types with many values, many; of the others what they have."""
        r, kinds = self.random, family[0]
        if pa.int8() in kinds or pa.bool_() in kinds or pa.date32() in kinds:
            return family[1](r)
        if pa.string() in kinds:
            return "key " + str(r.randrange(9000))
        if pa.binary() in kinds:
            return b"key %d" % r.randrange(9000)
        if pa.int64() in kinds:
            return r.randrange(9000)
        if pa.float64() in kinds or pa.float32() in kinds:
            return float(r.randrange(9000))
        return r.randrange(9000)

    def pairs(self):
        """About how many pairs there are, by keys without filter."""
        counts = [{}, {}]
        for side in range(2):
            for row in self.rows[side]:
                key = repr(row[:len(self.families)])
                counts[side][key] = counts[side].get(key, 0) + 1
        return sum(count * counts[1].get(key, 0) for key, count in counts[0].items())

    def table(self, side):
        columns, names = [], []
        for at, kind in enumerate(self.types[side]):
            values = [row[at] for row in self.rows[side]]
            if kind == DECIMAL:
                values = pa.array(values, pa.int64()).cast(pa.decimal128(19, 0)).cast(kind)
            elif pa.types.is_dictionary(kind):
                values = pa.array(values, pa.string()).dictionary_encode()
            elif pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
                width = pa.int32() if pa.types.is_date32(kind) else pa.int64()
                values = pa.array(values, width).cast(kind)
            else:
                values = pa.array(values, kind)
            columns.append(values)
            names.append(f"k{at}")
        base = len(self.families)
        for name, at, kind in (("v", 0, pa.int32()), ("t", 1, pa.string()), ("id", 2, pa.int64())):
            columns.append(pa.array([row[base + at] for row in self.rows[side]], kind))
            names.append(name)
        return pa.table(columns, names=names)

    def oracle(self, connection, tables):
        connection.register("l", tables[0])
        connection.register("r", tables[1])
        equal = "IS NOT DISTINCT FROM" if self.null_equal else "="
        on = " AND ".join(f"l.k{at} {equal} r.k{at}" for at in range(len(self.families)))
        if self.filter:
            text = self.filter.replace("left.", "l.").replace("right.", "r.")
            on += f" AND ({text})"
        names = tables[0].column_names
        both = ", ".join([f"l.{n}" for n in names] + [f'r.{n} AS "{n}_right"' for n in names])
        nulls = ", ".join(["NULL"] * len(names))
        alone = f"SELECT {nulls}, r.* FROM r WHERE NOT EXISTS (SELECT 1 FROM l WHERE {on})"
        left = f"SELECT {both} FROM l LEFT JOIN r ON {on}"
        side, _, kind = self.join.partition("-")
        own, other = ("l", "r") if side == "left" else ("r", "l")
        exists = f"EXISTS (SELECT 1 FROM {other} WHERE {on})"
        return {
            "inner": f"SELECT {both} FROM l JOIN r ON {on}",
            "left": left,
            "right": f"SELECT {both} FROM l RIGHT JOIN r ON {on}",
            "full": f"{left} UNION ALL {alone}",
        }.get(self.join) or {
            "semi": f"SELECT {own}.* FROM {own} WHERE {exists}",
            "anti": f"SELECT {own}.* FROM {own} WHERE NOT {exists}",
            "mark": f"SELECT {own}.*, {exists} AS mark FROM {own}",
        }[kind]

    def ways(self):
        """Several ways of doing this join."""
        r = self.random
        for way in range(4):
            words = ["--build-side", ["left", "right"][way % 2],
                     "--layout", r.choice(LAYOUTS), "--threads", str(r.randrange(1, 4))]
            if r.random() < (0.8 if self.large else 0.1):
                words += ["--memory-limit", r.choice(LIMITS)]
            yield words, [r.choice(["parquet", "parquet", "arrow", "arrows"]) for _ in range(3)]


def write(table, path, kind, rows):
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=rows)
        return
    # A file has one dictionary a column.
    table = table.unify_dictionaries()
    make = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
    with pa.OSFile(path, "wb") as file, make(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)


def read(path, kind):
    if kind == "parquet":
        # As one file: a folder's name would be taken for a partition.
        return pq.ParquetFile(path).read()
    opened = pa.ipc.open_file if kind == "arrow" else pa.ipc.open_stream
    with pa.OSFile(path, "rb") as file:
        return opened(file).read_all()


class Fuzzer:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.connection = duckdb.connect()
        self.connection.execute("SET threads = 1")
        self.counts = {"cases": 0, "joins": 0, "spilled": 0, "limit too small": 0}

    def number(self, query):
        return self.connection.execute(query).fetchall()[0][0]

    def ours(self, case, tables, way):
        """The command's result; a text if it failed."""
        words, kinds = way
        paths = [os.path.join(self.folder, name) + "." + kind
                 for name, kind in zip(("left", "right", "out"), kinds)]
        rows = case.random.choice([7, 64, 5000]) if not case.large else 1000
        for table, path, kind in zip(tables, paths, kinds):
            write(table, path, kind, rows)
        command = [self.program, "join", "--json", "--type", case.join,
                   "--left", paths[0], "--right", paths[1], "--out", paths[2], *words]
        for at in range(len(case.families)):
            command += ["--on", f"k{at}"]
        if case.null_equal:
            command += ["--null-equal"]
        if case.filter:
            command += ["--filter", case.filter]
        if "--memory-limit" in words:
            command += ["--spill-dir", self.folder]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        left_over = [name for name in os.listdir(self.folder) if name.endswith("-tmp")]
        if left_over:
            return f"left behind: {left_over}"
        if done.returncode != 0:
            if done.returncode == 1 and "memory" in done.stderr and "limit" in done.stderr:
                self.counts["limit too small"] += 1
                return None
            return f"status {done.returncode}: {done.stderr.strip()}"
        facts = json.loads(done.stdout)
        self.counts["joins"] += 1
        self.counts["spilled"] += facts["spilled_files"] > 0
        result = read(paths[2], kinds[2])
        if facts["rows"] != result.num_rows:
            return f"{facts['rows']} rows were announced, {result.num_rows} written"
        return result

    def wrong(self, case, way):
        """The fault of one way of a case; None if there is none."""
        tables = [case.table(side) for side in range(2)]
        result = self.ours(case, tables, way)
        if result is None or isinstance(result, str):
            return result
        query = case.oracle(self.connection, tables)
        self.connection.register("ours", result)
        count = self.number(f"SELECT count(*) FROM ({query})")
        if count != result.num_rows:
            return f"{result.num_rows} rows, DuckDB has {count}"
        extra = self.connection.execute(
            f"SELECT * FROM ours EXCEPT ALL ({query}) LIMIT 3").fetchall()
        # As many, and none too many: the same.
        return f"rows that DuckDB has not: {extra}" if extra else None

    def smaller(self, case, way, seconds):
        """Takes rows out as long as it stays wrong."""
        deadline = time.monotonic() + seconds
        for side in (0, 1):
            step = max(1, len(case.rows[side]) // 2)
            while step and time.monotonic() < deadline:
                at, before = 0, len(case.rows[side])
                while at < len(case.rows[side]) and time.monotonic() < deadline:
                    kept = case.rows[side]
                    case.rows[side] = kept[:at] + kept[at + step:]
                    if not self.wrong(case, way):
                        case.rows[side] = kept
                        at += step
                if len(case.rows[side]) == before or step > 1:
                    step //= 2

    def run(self, seed, number):
        case = Case(seed, number)
        if case.pairs() > 300_000:
            return True
        self.counts["cases"] += 1
        for way in case.ways():
            why = self.wrong(case, way)
            if why:
                print(f"seed {seed}, case {number}: {why}", flush=True)
                self.smaller(case, way, 60)
                why = self.wrong(case, way) or "not always"
                print(f"  made smaller: {why}\n  {case.join}, null equal {case.null_equal}, "
                      f"filter {case.filter}, {way}\n  types {case.types}")
                for side in ("left", "right"):
                    print(f"  {side}: {case.rows[side == 'right'][:40]}")
                print(f"again: cargo xtask fuzz joins --seed {seed} --case {number}", flush=True)
                return False
        return True


# Where Arrow and SQL mean different things: keys, rows of ours, what SQL says. A float key is its
# bits in Arrow's total order; DuckDB has 0.0 = -0.0, and one NaN.
ZEROS = pa.array([0.0, -0.0, 1.0], pa.float64())
QUIET = pa.array([0x7FF8000000000000, 0x7FF8000000000001], pa.uint64()).view(pa.float64())
LISTED = [
    ("0.0 is not -0.0", ZEROS, ZEROS, 3, 5),
    ("NaNs of different bits are different", QUIET, QUIET, 2, 4),
]


def listed(fuzzer):
    for name, left, right, ours, theirs in LISTED:
        tables = [pa.table({"k0": keys}) for keys in (left, right)]
        paths = [os.path.join(fuzzer.folder, side + ".parquet") for side in ("left", "right")]
        for table, path in zip(tables, paths):
            pq.write_table(table, path)
        done = subprocess.run(
            [fuzzer.program, "join", "--json", "--left", paths[0], "--right", paths[1],
             "--on", "k0"], capture_output=True, text=True, check=True)
        fuzzer.connection.register("l", tables[0])
        fuzzer.connection.register("r", tables[1])
        said = fuzzer.number("SELECT count(*) FROM l JOIN r USING (k0)")
        found = (json.loads(done.stdout)["rows"], said)
        if found != (ours, theirs):
            sys.exit(f"{name}: ours has {found[0]} rows, DuckDB {found[1]}, not {(ours, theirs)}")
        print(f"listed: {name}: {ours} rows, in DuckDB {theirs}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workahead", required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--case", type=int)
    arguments = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="fuzz-joins-")
    try:
        fuzzer = Fuzzer(arguments.workahead, folder)
        listed(fuzzer)
        if arguments.case is not None:
            right = fuzzer.run(arguments.seed, arguments.case)
        else:
            right, number, failures = True, 0, 0
            deadline = time.monotonic() + arguments.seconds
            while time.monotonic() < deadline and failures < 5:
                if not fuzzer.run(arguments.seed, number):
                    right, failures = False, failures + 1
                number += 1
        counts = ", ".join(f"{count} {name}" for name, count in fuzzer.counts.items() if count)
        print(f"seed {arguments.seed}: {counts}")
        sys.exit(0 if right else 1)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
