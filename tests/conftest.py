"""Keep the backend's log lines out of the report; start Chromium once."""

import os

from browsing import chromium
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@pytest.fixture(scope="session")
def browser():
    with chromium() as browser:
        yield browser
