"""The package needs Keras and two others; what more a room needs, it says."""

import os
from pathlib import Path
import subprocess
import sys
import tomllib

from d2l_attention import _extras
import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
pytestmark = pytest.mark.ci


def run_without(missing, code, **environment):
    """What a new Python, in which packages are missing, says at last."""
    code = f"import sys\nsys.modules |= dict.fromkeys({missing!r})\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        cwd=ROOT,
    )
    return "" if done.returncode == 0 else done.stderr.splitlines()[-1]


def names(requirements):
    return [_extras.name_of(line) for line in requirements]


@pytest.mark.every_backend
def test_layers_models_and_heatmaps_need_three_packages():
    assert names(PROJECT["dependencies"]) == ["keras", "matplotlib", "numpy"]
    others = names(EXTRAS["translator"] + EXTRAS["demo"])
    # TensorFlow brings `requests` along, and imports it.
    others = set(others) - {*_extras.BACKENDS, "requests"}
    code = "import d2l_attention.heatmaps, d2l_attention.explorables"
    assert not run_without([*others, "IPython"], code)


def test_a_missing_extra_is_named_with_the_command():
    said = run_without(["regex", "tqdm"], "import d2l_attention.datasets")
    assert said == (
        "d2l_attention._extras.MissingPackage: d2l_attention.datasets needs "
        "packages of the "
        'extra [translator]. Run: python -m pip install "regex>=2024.4" '
        '"tqdm>=4.66"'
    )


@pytest.mark.parametrize(
    ("missing", "start", "end"),
    [
        (
            "sacrebleu",
            "d2l_attention.translator needs packages of the extra [translator]",
            'pip install "sacrebleu>=2.4"\n',
        ),
        ("tensorflow", "Keras needs tensorflow, which is not installed.", "\n"),
    ],
)
def test_a_command_says_in_a_line_what_is_missing(
    missing, start, end, tmp_path
):
    # Python imports this file before all others.
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nsys.modules[{missing!r}] = None"
    )
    done = subprocess.run(
        [sys.executable, "-m", "d2l_attention", "train", "runs/mine"],
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "KERAS_BACKEND": "tensorflow",
            "PYTHONPATH": str(tmp_path),
        },
        cwd=ROOT,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(start) and done.stderr.endswith(end)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("there", "mend"),
    [
        ([], "Run: python -m pip install tensorflow"),
        (
            ["torch"],
            "torch is there: set the environment variable KERAS_BACKEND=torch "
            "before Keras is imported.",
        ),
    ],
)
def test_a_missing_backend_is_named_with_what_to_do(there, mend, tmp_path):
    for name in there:
        (tmp_path / f"{name}.py").touch()
    missing = [name for name in _extras.BACKENDS if name not in there]
    code = f"sys.path.insert(0, {str(tmp_path)!r})\nimport d2l_attention"
    said = run_without(missing, code, KERAS_BACKEND="tensorflow")
    expected = "Keras needs tensorflow, which is not installed. " + mend
    assert said == f"d2l_attention._extras.MissingPackage: {expected}"


def test_the_corpus_can_be_read_without_tensorflow():
    code = """
from d2l_attention import _extras
found = _extras.find_spec
_extras.find_spec = lambda name: name != "tensorflow" and found(name)
from d2l_attention.datasets.corpus import read_corpus
assert read_corpus()
"""
    assert not run_without([], code)
