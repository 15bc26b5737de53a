"""Seed each test, keep log lines out of the report, start Chromium once."""

from importlib.metadata import version
import os

from browsing import chromium
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
if "PYTEST_XDIST_WORKER" in os.environ:  # workers share the processor's cores
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config):
    """Let tests load models with Keras 3.10.

    It loads a model of one input as one of a list of inputs, and then warns of
    each call. Keras 3.11 does not.
    """
    if version("keras").startswith("3.10."):
        config.addinivalue_line(
            "filterwarnings",
            "ignore:The structure of `inputs` doesn't match:UserWarning",
        )


def pytest_collectstart(collector):
    """A module is about to be imported, and may draw numbers."""
    import contract  # after the log level

    contract.begin_to_draw(0)


def pytest_ignore_collect(collection_path, config):
    """Reading all chapters takes seconds, which README's run need not wait."""
    is_course = collection_path.name == "course"
    return (is_course and config.option.markexpr == "not ci") or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """What needs a browser, or is of the course's tools, is for `.ci/run`."""
    for item in items:
        if item.path.parent.name == "course" or "browser" in item.fixturenames:
            item.add_marker("ci")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """No test depends on luck, nor on which tests ran before it."""
    import contract
    import keras

    keras.utils.set_random_seed(0)
    contract.begin_to_draw(1000)


@pytest.fixture(scope="session")
def browser():
    with chromium() as browser:
        yield browser
