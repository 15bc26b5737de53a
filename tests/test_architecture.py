"""The floors of the house: a module imports only from floors below it."""

import ast
from pathlib import Path
import subprocess
import sys

import d2l_attention
import pytest

PACKAGE = Path(d2l_attention.__file__).parent
FLOORS = {
    "_checks": 0,
    "_quiet": 0,
    "masking": 1,
    "positional_encoding": 1,
    "attention_layer": 2,
    "recurrence": 2,
    "kernel_regression": 3,
    "multi_head": 3,
    "scoring": 3,
    "blocks": 5,
    "efficient": 4,
    "variants": 4,
    "seq2seq": 5,
    "bahdanau": 6,
    "language_model": 6,
    "models": 6,
    "rnnsearch": 6,
    "transformer": 6,
    "decoding": 7,
    "train": 8,
    "translate": 9,
}
COMMANDS = {"train", "translate"}  # put all of it to use
SIDE_ROOMS = {"datasets", "metrics", "heatmaps", "source"}
LAZY = {  # heavy, and needed by some readers only
    "tensorflow": {"datasets", "efficient", "recurrence", "train"},
    "matplotlib": {"heatmaps"},
    "sacrebleu": {"metrics"},
    "pooch": {"datasets"},
    "requests": {"datasets"},
}
FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path):
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize(
    "path", FILES, ids=lambda p: str(p.relative_to(PACKAGE))
)
def test_imports_go_down_and_stay_public(path):
    module = module_of(path)
    for name in imports(path):
        assert not name.startswith("keras.src"), "private Keras"
        top, *rest = name.split(".")
        if top in LAZY:
            assert module in LAZY[top], f"{module} imports {name}"
        if top != "d2l_attention" or module == "__init__":
            continue
        imported = rest[0]
        if imported == module:
            continue  # a folder is one floor
        assert module not in SIDE_ROOMS, f"{module} imports {name}"
        if imported in SIDE_ROOMS:
            assert module in COMMANDS, f"{module} imports {name}"
            continue
        assert FLOORS[imported] < FLOORS[module], f"{module}: {name}"


def test_every_module_has_its_place():
    modules = {module_of(path) for path in FILES} - {"__init__"}
    assert modules == FLOORS.keys() | SIDE_ROOMS


# Keras imports matplotlib by itself, so that one is not asked for.
def test_importing_the_package_loads_no_side_room():
    code = (
        "import sys, d2l_attention; "
        "print([m for m in ('sacrebleu', 'pooch', "
        "'d2l_attention.heatmaps', 'd2l_attention.datasets') "
        "if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]", done.stderr


def test_all_names_are_there_and_sorted():
    assert d2l_attention.__all__ == sorted(d2l_attention.__all__)
    assert all(hasattr(d2l_attention, x) for x in d2l_attention.__all__)
