"""Two inputs of a join as Arrow files, and the answer, which is known from the draws.

Entry i of the build side has the key of i: sparse by default, a bijection that scatters the
numbers over the key's whole type, or with --dense the number itself, for which some engines have
tables without hashing. Entries are shuffled, and a probe row draws an entry: uniformly, by
Zipf's law, or with --hit-rate also one that the build side lacks. Payloads are 8 bytes.
"""

import argparse
import json
import os

import numpy as np
import pyarrow as pa

CHUNK_ROWS = 1 << 20
BATCH_ROWS = 1 << 16


def scattered(numbers, bits=64):
    """A bijection of `bits`-bit numbers: odd factors and shifted exclusive ors."""
    mask = np.uint64((1 << bits) - 1)
    x = numbers.astype(np.uint64) & mask
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        x ^= x >> np.uint64(bits // 2)
        x = (x * np.uint64(factor)) & mask
    return x ^ (x >> np.uint64(bits // 2))


def one_int(entries, dense):
    keys = entries if dense else scattered(entries)
    return {"k": pa.array(keys.astype(np.int64))}


def two_ints(entries, dense):
    """As an order's number and its line's: neither alone is a key."""
    first, second = entries >> np.uint64(3), entries & np.uint64(7)
    if not dense:
        first, second = scattered(first, 32), scattered(second, 20)
    return {"k1": pa.array(first.astype(np.int64)), "k2": pa.array(second.astype(np.int64))}


def text(entries, dense):
    """Twelve hexadecimal digits."""
    numbers = entries if dense else scattered(entries, 48)
    shifts = np.arange(44, -4, -4, dtype=np.uint64)
    digits = (numbers[:, None] >> shifts) & np.uint64(15)
    letters = np.frombuffer(b"0123456789abcdef", np.uint8)[digits.astype(np.uint8)]
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * 12
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(letters))]
    return {"k": pa.Array.from_buffers(pa.string(), len(numbers), buffers)}


KEYS = {"int": one_int, "two": two_ints, "text": text}


def column_sum(array):
    """Wrapping sum of an integer column; of text, the sum of its bytes."""
    if pa.types.is_integer(array.type):
        return int(array.to_numpy(zero_copy_only=False).astype(np.int64).sum())
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset:][: len(array) + 1]
    return int(np.frombuffer(array.buffers()[2], np.uint8)[offsets[0]:offsets[-1]].sum())


def wrapped(number):
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)


def write(path, chunks):
    with pa.OSFile(path + ".tmp", "wb") as file:
        writer = None
        for columns in chunks:
            table = pa.table(columns)
            writer = writer or pa.ipc.new_file(file, table.schema)
            writer.write_table(table, max_chunksize=BATCH_ROWS)
        writer.close()
    os.rename(path + ".tmp", path)


class Draws:
    """The entries that probe rows ask for; those from `distinct` on have no build row."""

    def __init__(self, rng, distinct, arguments):
        self.rng, self.distinct, self.arguments = rng, distinct, arguments
        self.shares = None
        if arguments.zipf:
            self.shares = np.cumsum(1.0 / np.arange(1, distinct + 1))
            self.shares /= self.shares[-1]

    def next(self, rows):
        if self.shares is not None:
            # Ranks are entries: entries lie in no order in the build side.
            return np.searchsorted(self.shares, self.rng.random(rows)).astype(np.uint64)
        return self.rng.integers(0, round(self.distinct / self.arguments.hit_rate), rows, np.uint64)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", required=True)
    parser.add_argument("--build", type=int, required=True)
    parser.add_argument("--probe", type=int, required=True)
    parser.add_argument("--keys", choices=KEYS, required=True)
    parser.add_argument("--duplicates", type=int, default=1)
    parser.add_argument("--hit-rate", type=float, default=1.0)
    parser.add_argument("--zipf", action="store_true")
    parser.add_argument("--dense", action="store_true")
    arguments = parser.parse_args()
    os.makedirs(arguments.out, exist_ok=True)

    rng = np.random.default_rng(20240607)
    distinct = arguments.build // arguments.duplicates
    keys = KEYS[arguments.keys]
    entries = rng.permutation(np.repeat(np.arange(distinct, dtype=np.uint64), arguments.duplicates))
    payload = rng.integers(0, 1 << 31, arguments.build, np.int64)
    # By entry, what its build rows add up to.
    value_of = np.zeros(distinct, np.int64)
    np.add.at(value_of, entries.astype(np.int64), payload)

    def build():
        for start in range(0, arguments.build, CHUNK_ROWS):
            part = slice(start, start + CHUNK_ROWS)
            yield keys(entries[part], arguments.dense) | {"bv": pa.array(payload[part])}

    write(os.path.join(arguments.out, "build.arrow"), build())
    draws = Draws(rng, distinct, arguments)
    answer = {"count": 0}

    def probe():
        for start in range(0, arguments.probe, CHUNK_ROWS):
            drawn = draws.next(min(CHUNK_ROWS, arguments.probe - start))
            columns = keys(drawn, arguments.dense)
            values = rng.integers(0, 1 << 31, len(drawn), np.int64)
            found = drawn < distinct
            rows = int(found.sum()) * arguments.duplicates
            answer["count"] += rows
            sums = {name: column_sum(column.filter(pa.array(found))) * arguments.duplicates
                    for name, column in columns.items()}
            sums["pv"] = int(values[found].sum()) * arguments.duplicates
            sums["bv"] = int(value_of[drawn[found].astype(np.int64)].sum())
            for name, value in sums.items():
                answer[name] = wrapped(answer.get(name, 0) + value)
            yield columns | {"pv": pa.array(values)}

    write(os.path.join(arguments.out, "probe.arrow"), probe())
    # Last: where it exists, so do the others.
    path = os.path.join(arguments.out, "answer.json")
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump(answer, file)
    os.rename(path + ".tmp", path)


if __name__ == "__main__":
    main()
