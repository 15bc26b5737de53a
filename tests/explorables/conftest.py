"""Explorables in Chromium, without a network."""

from browsing import offline
import pytest


@pytest.fixture
def open_page(browser, tmp_path):
    """Opens HTML as a file; in the end nothing may have gone wrong."""
    with offline(browser, tmp_path) as open_page:
        opened = []

        def open_one(text, **options):
            opened.append(open_page(text, **options))
            return opened[-1].page

        yield open_one
        for found in opened:
            assert not found.asked and not found.errors
