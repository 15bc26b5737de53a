"""Seed each test, keep log lines out of the report, start Chromium once."""

import os

from browsing import chromium
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """No test depends on luck, nor on which tests ran before it."""
    import keras  # after the log level

    keras.utils.set_random_seed(0)


@pytest.fixture(scope="session")
def browser():
    with chromium() as browser:
        yield browser
