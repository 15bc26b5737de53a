"""What the kernel of a submission runs first: it bounds what a cell may write.

A loop that prints would fill the memory of the machine long before its time is
over, and what ends the process then costs the student every exercise. And
warnings are printed like all else: nbgrader takes what stands in the stream of
errors for an error.
"""

import sys

from IPython import get_ipython

TEXT, SHOWN = 1_000_000, 20_000_000  # characters of a cell, and of its figures
MESSAGE = 2_000  # characters of an error's message, or of a line of its trace


class OutputLimitError(Exception):
    """A cell printed or showed more than it may."""


def bound(function, size_of, limit):
    """A function that writes, and refuses after so many characters."""
    function, written = getattr(function, "unbounded", function), 0

    def bounded(*inputs, **options):
        nonlocal written
        written += size_of(*inputs, **options)
        if written > limit:
            raise OutputLimitError(
                f"it wrote more than {limit:,} characters, which is the limit "
                "for one cell"
            )
        return function(*inputs, **options)

    bounded.unbounded = function
    return bounded


def size_of_shown(data, *_, **__):
    return sum(map(len, map(str, data.values())))


def bound_all(*_):
    """Begin anew for a cell; IPython gives its stream another `write`, too."""
    sys.stderr = sys.stdout
    sys.stdout.write = bound(sys.stdout.write, len, TEXT)
    for writer, name in (
        (shell.display_pub, "publish"),
        (shell.displayhook, "write_format_data"),
    ):
        bounded = bound(getattr(writer, name), size_of_shown, SHOWN)
        setattr(writer, name, bounded)


def shorten(text):
    return text if len(text) <= MESSAGE else f"{text[:MESSAGE]} …"


def shorten_errors(show):
    def shown(kind, error, lines):
        return show(kind, shorten(str(error)), [*map(shorten, lines)])

    return shown


shell = get_ipython()
shell.events.register("pre_run_cell", bound_all)
# The method that an IPython shell overrides to send what was raised.
shell._showtraceback = shorten_errors(shell._showtraceback)
