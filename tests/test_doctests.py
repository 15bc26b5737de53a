"""The examples of the docstrings run, and every public name has one."""

from contextlib import nullcontext
import doctest
import importlib
from importlib.util import find_spec
import inspect
import pkgutil
import re

import d2l_attention
import keras
import pytest

PUBLIC = {name: getattr(d2l_attention, name) for name in d2l_attention.__all__}
CLASSES = [name for name, found in PUBLIC.items() if inspect.isclass(found)]
ENTRY = re.compile(r"    ((?:\w+, )*\w+): ")  # `    width, height: Float …`


def examples():
    """Every docstring of the package that has an example."""
    modules = pkgutil.walk_packages(
        d2l_attention.__path__, "d2l_attention.", onerror=lambda name: None
    )
    names = [x.name for x in modules if not x.name.endswith("__main__")]
    if not (find_spec("tensorflow") and find_spec("regex")):  # [translator]
        rooms = "d2l_attention.datasets", "d2l_attention.translator"
        names = [x for x in names if not x.startswith(rooms)]
    for name in ["d2l_attention", *names]:
        module = importlib.import_module(name)
        for found in doctest.DocTestFinder().find(module, name):
            if found.examples:
                yield found


def section(documentation, title):
    """The indented lines below `title:`."""
    _, _, behind = documentation.partition(f"\n{title}:\n")
    return re.split(r"\n(?=\S)", behind)[0]


def without_gradients():
    """torch makes no NumPy array of a tensor that has a gradient."""
    if keras.backend.backend() != "torch":
        return nullcontext()
    import torch

    return torch.no_grad()


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "example", examples(), ids=lambda x: x.name.removeprefix("d2l_attention.")
)
@pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")
def test_the_example_runs(example):
    report = []
    with without_gradients():
        doctest.DocTestRunner().run(example, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_ends_with_an_example(name):
    documentation = inspect.getdoc(PUBLIC[name])
    if name == "absorbed_latent_attention":  # it has the other one's numbers
        told = " ".join(documentation.split())
        assert "the result is that of `expanded_latent_attention`" in told
        return
    example = section(documentation, "Example")
    assert documentation.endswith(example)
    assert doctest.DocTestParser().get_examples(example)
    imports = rf">>> from d2l_attention import .*\b{name}\b"
    assert re.search(imports, example), "a reader can paste it"


@pytest.mark.parametrize("name", CLASSES)
def test_every_argument_of_a_constructor_has_an_entry(name):
    found = PUBLIC[name]
    if "__init__" not in vars(found) and issubclass(found, Exception):
        return  # no constructor of its own
    parameters = inspect.signature(found).parameters.values()
    arguments = [x.name for x in parameters if x.kind is not x.VAR_KEYWORD]
    lines = section(inspect.getdoc(found), "Args").splitlines()
    entries = [entry[1] for entry in map(ENTRY.match, lines) if entry]
    assert ", ".join(entries).split(", ") == (arguments or [""])
