"""The package as other tools see it: types, docstrings, versions."""

from __future__ import annotations

import ast
import importlib.metadata
import inspect
import pathlib

import workahead as wa
from workahead import _workahead

FOLDER = pathlib.Path(wa.__file__).parent


def test_types_are_shipped():
    assert (FOLDER / "py.typed").is_file()
    tree = ast.parse((FOLDER / "_workahead.pyi").read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    public = {name for name in dir(_workahead) if not name.startswith("_")}
    assert functions | set(classes) == public
    for name, node in classes.items():
        stubbed = {member.name for member in node.body if isinstance(member, ast.FunctionDef)}
        kind = getattr(_workahead, name)
        assert all(hasattr(kind, member) for member in stubbed)
        assert {member for member in vars(kind) if not member.startswith("_")} <= stubbed


def test_everything_public_has_a_docstring():
    for name in wa.__all__:
        if name != "__version__":
            thing = getattr(wa, name)
            assert inspect.getdoc(thing), name
    for name, member in vars(wa.Reader).items():
        if not name.startswith("_"):
            assert inspect.getdoc(member), name


def test_every_option_is_documented():
    words = inspect.getdoc(wa.join)
    for option in inspect.signature(wa.join).parameters:
        assert f"\n{option}\n" in words or option in ("left", "right", "left_on", "right_on")


def test_one_version_everywhere():
    assert importlib.metadata.version("workahead") == wa.__version__
