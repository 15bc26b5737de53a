"""The settings of a run from a `.toml` or `.json` file."""

import argparse
import dataclasses
import json
from pathlib import Path
import sys
import tomllib

from d2l_attention.translator.settings import (
    TEXTS,
    RunError,
    Settings,
    add_arguments,
    as_options,
    changed_texts,
)


def file_options(path):
    """The settings of a `.toml` or `.json` file, as options of `train`.

    The names are those of a run's `settings.json`; others are refused.
    """
    values, names = _read(path), [x.name for x in dataclasses.fields(Settings)]
    if unknown := sorted({*values} - {*names, *TEXTS.values()}):
        raise RunError(
            f"{path} holds what is no setting: {', '.join(unknown)}. "
            f"The settings are {', '.join(names)}."
        )
    parser = _Parser(prog=str(path))
    add_arguments(parser)
    options = as_options({x: values[x] for x in names if x in values})
    parser.parse_args(options)
    return options


def warn_of_other_text(path, identity):
    """Tell that a corpus is not the one of a file of settings any more.

    A file that was written by hand has no checksum, so there is nothing to
    tell.
    """
    before = {**identity, **_read(path)}
    for text in changed_texts(before, identity):
        print(
            f"Since {path} was written, {text} has changed, so this is "
            "another run.",
            file=sys.stderr,
        )


def _read(path):
    path, readers = Path(path), {".toml": tomllib.loads, ".json": json.loads}
    if path.suffix not in readers:
        raise RunError(f"Settings are a .toml or .json file. Received: {path}")
    try:
        values = readers[path.suffix](path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise RunError(f"Could not read {path}: {error}") from error
    if not isinstance(values, dict):
        raise RunError(f"{path} must hold names and values.")
    values = {name.replace("-", "_"): value for name, value in values.items()}
    for field in dataclasses.fields(Settings):
        value = values.get(field.name)
        is_switch = isinstance(field.default, bool)
        if is_switch and not isinstance(value, bool | None):
            raise RunError(
                f"{path}: {field.name} must be true or false. Received: "
                f"{value!r}"
            )
    return values


class _Parser(argparse.ArgumentParser):
    """Names the file in its errors, which is its `prog`."""

    def error(self, message):
        raise RunError(f"{self.prog}: {message}")
