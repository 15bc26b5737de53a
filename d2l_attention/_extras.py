"""What some rooms need beyond Keras, NumPy and matplotlib."""

from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec
import re

BACKENDS = ("tensorflow", "jax", "torch")


class MissingPackage(ModuleNotFoundError):
    """A sentence that says which packages are missing, and what to run."""


def import_keras():
    """Import Keras; if its backend is not there, say how to get one."""
    try:
        import keras  # noqa: F401
    except ModuleNotFoundError as error:
        missing = str(error.name).partition(".")[0]
        if missing not in (*BACKENDS, "jaxlib"):
            raise
        others = [x for x in BACKENDS if not missing.startswith(x)]
        present = [x for x in others if getattr(find_spec(x), "origin", None)]
        if present:
            mend = (
                f"{present[0]} is there: set the environment variable "
                f"KERAS_BACKEND={present[0]} before Keras is imported."
            )
        else:
            mend = f"Run: python -m pip install {missing.removesuffix('lib')}"
        raise MissingPackage(
            f"Keras needs {missing}, which is not installed. {mend}"
        ) from None


def name_of(requirement):
    """The package in a line such as `regex>=2024.4; extra == "translator"`."""
    return re.match(r"[\w-]+", requirement)[0]


def check_extra(room, extra, do_without=()):
    """Raise `MissingPackage` if packages of an extra are not installed.

    A room can `do_without` some of them.
    """
    try:
        lines = requires("d2l-attention") or []
    except PackageNotFoundError:  # a clone that was not installed
        return
    missing = [
        line.partition(";")[0].strip()
        for line in lines
        if re.search(rf"""extra == ['"]{extra}['"]""", line)
        and name_of(line) not in do_without
        and not find_spec(name_of(line))
    ]
    if missing:
        quoted = " ".join(f'"{x}"' for x in missing)
        raise MissingPackage(
            f"{room} needs packages of the extra [{extra}]. "
            f"Run: python -m pip install {quoted}"
        )
