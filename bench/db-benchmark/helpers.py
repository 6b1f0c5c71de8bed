"""Stands in for the public benchmark's `_helpers/helpers.py`, which its scripts read: the same four
names, and a log of one JSON object a line, in the file that `LOG` names."""

import json
import os
import resource


def join_to_tbls(data_name):
    task, rows, _, nulls, is_sorted = data_name.split("_")
    digit, exponent = rows.split("e")
    small, medium = max(int(exponent) - 6, 1), int(exponent) - 3
    parts = (f"{digit}e{small}", f"{digit}e{medium}", rows)
    return ["_".join((task, rows, part, nulls, is_sorted)) for part in parts]


def memory_usage():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def make_chk(values):
    return ";".join(f"{value:.3f}" for value in values)


def write_log(**values):
    with open(os.environ["LOG"], "a") as log:
        log.write(json.dumps(values) + "\n")
