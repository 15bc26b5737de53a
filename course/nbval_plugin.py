"""nbval: what a second run must reproduce, and which notebooks run first.

README.md's command loads it: `pytest -p course.nbval_plugin --nbval …`.
"""

from pathlib import Path

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"

# Native log lines and warnings differ between machines; svg never repeats.
SKIPPED = ("stderr", "image/svg+xml")

# Seconds to run on two cores, as the chapters say; the others take a minute.
SECONDS = {
    "03_masked_softmax": 30,
    "05_bahdanau": 90,
    "06_multi_head": 30,
    "08_transformer": 110,
    "10_rnnsearch": 90,
    "14_graph_attention": 30,
    "16_multi_query": 40,
    "19_linformer": 30,
    "22_reformer": 30,
    "26_scaling_out": 70,
}


def pytest_configure(config):
    # pytest-xdist would begin with the notebooks of most cells.
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False


def pytest_collection_modifyitems(items):
    """The longest first, so that no worker waits long for the last one."""

    def seconds(item):
        return SECONDS.get(item.path.stem, 60)

    here = [item for item in items if item.path.parent == NOTEBOOKS]
    others = [item for item in items if item.path.parent != NOTEBOOKS]
    items[:] = others + sorted(here, key=seconds, reverse=True)


def pytest_collectstart(collector):
    if hasattr(collector, "skip_compare"):  # nbval's collector, nothing else
        collector.skip_compare += SKIPPED
