"""The floors of the house: a module imports only from floors below it."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path
import subprocess
import sys

import d2l_attention
import pytest

PACKAGE = Path(d2l_attention.__file__).parent
FLOORS = {
    "_atomic": 0,
    "_checks": 0,
    "_config": 0,
    "_extras": 0,
    "_html_page": 0,
    "_quiet": 0,
    "layers": 1,
    "models": 2,
    "translator": 3,
    "explorables": 3,
    "__main__": 4,
}
USERS = {"translator", "explorables"}  # put all of it to use
SIDE_ROOMS = {"datasets", "heatmaps", "notebook"}
LAZY = {  # heavy, and needed by some readers only
    "tensorflow": {"_quiet", "datasets", "heatmaps", "layers", "translator"},
    "matplotlib": {"heatmaps"},
    "sacrebleu": {"translator"},
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


def imported_names(path):
    """`package.module` of each `from package import module`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


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
        if FLOORS.get(imported) == 0:
            continue
        assert module not in SIDE_ROOMS, f"{module} imports {name}"
        if imported in SIDE_ROOMS:
            assert module in USERS, f"{module} imports {name}"
            continue
        assert FLOORS[imported] < FLOORS[module], f"{module}: {name}"


def dotted(path):
    """`d2l_attention.models.recurrent` for a module's path."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def test_no_imports_run_in_a_circle():
    modules = {dotted(path): path for path in FILES}
    graph = {
        name: modules.keys() & {*imports(path), *imported_names(path)}
        for name, path in modules.items()
        if name != "d2l_attention"
    }
    TopologicalSorter(graph).prepare()  # raises CycleError


def test_only_one_layer_module_knows_a_backend():
    named = [
        path.name
        for path in FILES
        if path.parent.name == "layers"
        and {"tensorflow", "jax", "torch"}
        & {name.split(".")[0] for name in imports(path)}
    ]
    assert named == ["compiled_loops.py"]


def test_the_transformer_needs_few_mechanisms():
    """Whoever reads it opens no file of an efficient kind but these two."""
    code = (
        "import sys, types; "
        "package = types.ModuleType('d2l_attention'); "
        f"package.__path__ = [{str(PACKAGE)!r}]; "
        "sys.modules['d2l_attention'] = package; "
        "import d2l_attention.models.transformer; "
        "print(sorted(m.split('.')[-1] for m in sys.modules "
        "if m.startswith('d2l_attention.layers.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )
    assert ast.literal_eval(done.stdout) == [
        "base",
        "blocks",
        "cache",
        "compiled_loops",
        "masking",
        "multi_head",
        "multi_query",
        "positional_encoding",
        "reshaping",
    ], done.stderr


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
