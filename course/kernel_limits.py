"""What the kernel of a submission runs first: it bounds what a cell may write.

A loop that prints would fill the memory of the machine long before its time is
over, and what ends the process then costs the student every exercise.
"""

import sys
import threading

from IPython import get_ipython

TEXT, SHOWN = 1_000_000, 20_000_000  # characters of a cell, and of its figures


class OutputLimitError(Exception):
    """A cell printed or showed more than it may."""


def bound(function, size_of, limit):
    """A function that writes, and refuses after so many characters."""
    function, written = getattr(function, "unbounded", function), 0

    def bounded(*inputs, **options):
        nonlocal written
        written += size_of(*inputs, **options)
        if written <= limit:
            return function(*inputs, **options)
        if threading.current_thread() is threading.main_thread():
            raise OutputLimitError(
                f"it wrote more than {limit:,} characters, which is the limit "
                "for one cell"
            )
        return 0  # of a thread that reads what other programs print

    bounded.unbounded = function
    return bounded


def size_of_shown(data, *_, **__):
    return sum(map(len, map(str, data.values())))


def bound_all(*_):
    """Begin anew for a cell; IPython gives its streams another `write`, too."""
    for stream in (sys.stdout, sys.stderr):
        stream.write = bound(stream.write, len, TEXT)
    publisher = get_ipython().display_pub
    publisher.publish = bound(publisher.publish, size_of_shown, SHOWN)


get_ipython().events.register("pre_run_cell", bound_all)
