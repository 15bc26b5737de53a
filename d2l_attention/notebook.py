"""Show the package's own lines where a notebook explains them."""

import ast
import inspect
import textwrap


def show_source(*objects):
    """Print classes and functions of the package without their docstrings.

    Args:
        *objects: Classes, functions or methods.
    """
    print("\n\n".join(_without_docstrings(x) for x in objects))


def _without_docstrings(thing):
    """The source of a class or function, as one str."""
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
