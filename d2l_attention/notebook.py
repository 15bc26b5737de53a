"""What the chapters' cells need: lines of the package, and limits of checks."""

import _thread
import ast
from contextlib import contextmanager
import inspect
import signal
import textwrap
import threading
import tracemalloc


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
        raise AssertionError(
            f"Your answer did not end within {seconds} seconds. Look for a "
            "loop that goes on when nothing changes any more, or whose "
            "condition never becomes false."
        ) from None
    finally:
        signal.signal(signal.SIGINT, before)


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
