"""What the chapters' cells need: tables, lines of the package, checks."""

import _thread
import ast
import builtins
from contextlib import contextmanager
import html
import inspect
import signal
import sys
import textwrap
import threading
import tracemalloc
import types

import numpy as np


@contextmanager
def time_limit(seconds):
    """End a check whose answer runs on and on, and say so.

    It interrupts Python as Jupyter's stop button does, on every system, so
    it ends a loop, and no single long call of NumPy. Only the main thread
    can be interrupted, where Jupyter runs cells.
    """
    expired = threading.Event()

    def interrupt():
        expired.set()
        _thread.interrupt_main()

    timer = threading.Timer(seconds, interrupt)
    # a shell's job in the background ignores interrupts
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # or it could still interrupt what comes next
    except KeyboardInterrupt:
        if not expired.is_set():  # the reader's own
            raise
        # A call of Keras that is cut off may stay open, and all calls after
        # it would train or not as it did.
        if "keras" in sys.modules:
            sys.modules["keras"].utils.clear_session(free_memory=False)
        raise AssertionError(
            f"Your answer did not end within {seconds} seconds. Look for a "
            "loop that goes on when nothing changes any more, or whose "
            "condition never becomes false."
        ) from None
    finally:
        signal.signal(signal.SIGINT, before)


class NotSolvedYet(AssertionError):
    """The check of an exercise that does not pass. Jupyter shows one line."""

    def _render_traceback_(self):
        return [str(self)]


_solved = {}  # number of an exercise → whether its check passed


def apart(check):
    """Call a function now, as if nobody had given Python's names to others.

    A reader may have written `sum = 0` or `from numpy import *`. What the
    function does not define or import is a name of its notebook, but never one
    that shadows what Python has built in. `globals()` are the notebook's.
    """
    notebook = check.__globals__
    names = {x: notebook[x] for x in notebook if not hasattr(builtins, x)}
    names |= {"__builtins__": builtins, "__name__": check.__module__}
    names["globals"] = lambda: notebook
    types.FunctionType(check.__code__, names)()


def checking(exercise):
    """Run the check of an exercise, which ends in one line, right or wrong.

    What else an answer raises is the reader's to see, whole.

    Args:
        exercise: Int, its number.

    Returns:
        A decorator for the function that checks. It runs the function at once,
        `apart`, and raises a `NotSolvedYet` if an assertion of it fails.
    """

    def run(check):
        _solved[exercise] = False
        try:
            apart(check)
        except AssertionError as error:
            raise NotSolvedYet(
                f"Exercise {exercise} is not solved yet: {error}"
            ) from None
        _solved[exercise] = True
        print(f"Exercise {exercise} is solved.")

    return run


def show_solved():
    """Print which exercises are solved, of those whose check was run."""
    if not _solved:
        print("No exercise has been checked yet.")
    for exercise, is_solved in sorted(_solved.items()):
        print(f"Exercise {exercise}: {'solved' if is_solved else 'not yet'}")


def peak_bytes(function, *inputs):
    """The most bytes that Python and NumPy hold at once during a call.

    Nothing is measured any more afterwards, even if the call fails: what a
    failed answer left would be counted for the next one. The inputs and the
    backend's tensors are not counted.
    """
    tracemalloc.start()
    try:
        function(*inputs)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


class _Table:
    """Rows of text, as HTML and for those who see no HTML."""

    def __init__(self, header, rows):
        self.header, self.rows = header, rows

    def _repr_html_(self):
        lines = [self._line("th", self.header)]
        lines += [self._line("td", row) for row in self.rows]
        return f'<table class="dataframe">{"".join(lines)}</table>'

    def _line(self, tag, row):
        cells = (f"<{tag}>{html.escape(cell)}</{tag}>" for cell in row)
        return f"<tr>{''.join(cells)}</tr>"

    def __repr__(self):
        columns = zip(self.header, *self.rows, strict=True)
        wide = [max(map(len, column)) for column in columns]
        return "\n".join(
            "  ".join(cell.rjust(n) for cell, n in zip(row, wide, strict=True))
            for row in (self.header, *self.rows)
        )


def show_table(columns, digits=2):
    """Columns side by side, as a small table.

    Args:
        columns: Dict of a heading → the cells below it: str or numbers, equally
            many in each column.
        digits: Int, how many digits stand after the point of a number that
            is not whole.

    Returns:
        An object that Jupyter shows as a table.

    Raises:
        ValueError: If the columns are not equally long.

    Example:

    >>> show_table({"heads": [1, 2], "weight": [0.8123, 0.5]})
    heads  weight
        1    0.81
        2    0.50
    """
    lengths = {name: len(cells) for name, cells in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(
            "All columns of a table are equally long. Received columns of "
            f"these lengths: {lengths}."
        )
    rows = zip(*columns.values(), strict=True)
    rows = [[_cell(value, digits) for value in row] for row in rows]
    return _Table([*columns], rows)


def _cell(value, digits):
    if isinstance(value, (str, int, np.integer)):
        return value if isinstance(value, str) else f"{value:,}"
    value = round(float(value), digits) + 0.0  # no minus before a zero
    return f"{value:.{digits}f}"


def show_source(*objects):
    """Print classes and functions of the package without their docstrings."""
    print("\n\n".join(_without_docstrings(x) for x in objects))


def _without_docstrings(thing):
    lines = textwrap.dedent(inspect.getsource(thing)).splitlines()
    kinds = (ast.ClassDef, ast.FunctionDef)
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, kinds) and ast.get_docstring(node) is not None:
            first = node.body[0]
            for number in range(first.lineno - 1, first.end_lineno):
                lines[number] = None
            if lines[first.end_lineno : first.end_lineno + 1] == [""]:
                lines[first.end_lineno] = None
    return "\n".join(line for line in lines if line is not None)
