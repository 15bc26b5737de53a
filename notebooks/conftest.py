"""nbval: what a second run of a notebook must reproduce."""

# Native log lines and warnings differ between machines; svg never repeats.
SKIPPED = ("stderr", "image/svg+xml")


def pytest_collectstart(collector):
    if hasattr(collector, "skip_compare"):  # nbval's collector, nothing else
        collector.skip_compare += SKIPPED
