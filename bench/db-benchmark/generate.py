"""The join task's tables, as `J1_<rows>_NA_0_0` describes them: unsorted, without nulls.

    python generate.py --rows 1e7 --out data

    x       rows          id1 id2 id3 id4 id5 id6 v1
    small   rows / 1e6    id1         id4         v2      key id1, factor id4
    medium  rows / 1e3    id1 id2     id4 id5     v2      key id2, factor id5
    big     rows          id1 id2 id3 id4 id5 id6 v2      key id3, factor id6

The keys of a table are unique there. Nine of ten are also in `x`, where each occurs as often as the
others; a tenth of the keys of either side is only there. A factor is its number as a text. The
draws are numpy's, by a seed: the tables are like those of the public benchmark's generator, and not
the same.
"""

import argparse
import pathlib

import numpy
import pyarrow
import pyarrow.compute
import pyarrow.csv

SEED = 108


def power(rows):
    """`10000` as `1e4`, the way their files are named."""
    exponent = len(str(rows)) - 1
    return f"{rows // 10**exponent}e{exponent}"


def counts(rows):
    """Rows of the small, the medium and the big table."""
    return [max(rows // 1_000_000, 10), rows // 1_000, rows]


def names(rows):
    return [f"J1_{power(rows)}_{part}_0_0" for part in ("NA", *map(power, counts(rows)))]


def keys(random, count):
    """Keys of `x`, and of the other table: the first nine tenths are common."""
    drawn = random.permutation(count + count // 10 + 1) + 1
    common = count - count // 10
    return drawn[:count], numpy.concatenate([drawn[:common], drawn[count:]])[:count]


def each(random, values, rows):
    """Every value equally often, in any order."""
    return random.permutation(numpy.resize(values, rows))


def write(path, columns):
    table = {}
    for name, values in columns.items():
        table[name] = values if name.startswith("v") else values.astype("int32")
        if name.startswith("id"):
            texts = pyarrow.array(values).cast(pyarrow.string())
            factor = pyarrow.compute.binary_join_element_wise("id", texts, "")
            table[f"id{int(name[2:]) + 3}"] = factor
    ordered = sorted(table, key=lambda name: (name[0], int(name[1 + name.startswith("id"):])))
    options = pyarrow.csv.WriteOptions(quoting_style="none")
    table = pyarrow.table({name: table[name] for name in ordered})
    pyarrow.csv.write_csv(table, path, options)


def generate(rows, out):
    out.mkdir(parents=True, exist_ok=True)
    random = numpy.random.default_rng(SEED)
    lefts, rights = zip(*(keys(random, count) for count in counts(rows)), strict=True)
    paths = [out / f"{name}.csv" for name in names(rows)]
    v = lambda count: numpy.round(random.uniform(0, 100, count), 6)
    x = {f"id{at + 1}": each(random, left, rows) for at, left in enumerate(lefts)}
    write(paths[0], x | {"v1": v(rows)})
    for at, count in enumerate(counts(rows)):
        # Other tables' keys in no relation to their own.
        ids = {f"id{own + 1}": each(random, rights[own], count) for own in range(at)}
        ids[f"id{at + 1}"] = random.permutation(rights[at])
        write(paths[at + 1], ids | {"v2": v(count)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=float, default=1e7)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    generate(int(arguments.rows), arguments.out)
