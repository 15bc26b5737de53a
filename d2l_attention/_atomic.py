"""Write files whole, or not at all."""

import os
from pathlib import Path
import uuid


def write_whole(path, data):
    """Write bytes to a file beside its place, then move it there.

    A reader finds the old file or the new file, never a part of one. An
    OSError of its own kind says so if the file cannot be written.
    """
    path = Path(path)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with open(beside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:  # of the same kind, but naming the file
        reason = error.strerror or str(error)
        if path.exists():
            reason += "; the old file is unchanged"
        raise OSError(error.errno, reason, str(path)) from error
    finally:
        beside.unlink(missing_ok=True)


def is_unfinished(path):
    """Whether `write_whole` is writing this path, or died while it did."""
    return path.name.startswith(".") and path.name.endswith(".part")
