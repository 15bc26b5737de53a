"""What a run resumes from: a file of settings, or the model of another run."""

import argparse
import dataclasses
import json
from pathlib import Path
import sys
import tomllib

from d2l_attention.translator.run_folder import Run
from d2l_attention.translator.settings import (
    TEXTS,
    RunError,
    Settings,
    add_arguments,
    changed_texts,
)

# What the parameters of a model fit; the vocabularies come with them.
OF_THE_MODEL = (
    "model",
    "dim",
    "num_layers",
    "num_heads",
    "ffn_dim",
    "normalize_first",
    "subwords",
    "vocab_size",
    "min_frequency",
)
OF_THE_SPLITS = (
    "test_corpus",
    "columns",
    "reverse",
    "spreadsheet",
    "max_bad_share",
    "max_length",
    "num_pairs",
    "num_validation",
    "num_test",
    "seed",
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
    options = _options({x: values[x] for x in names if x in values})
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


def run_options(run, resume_from):
    """The settings of the run to resume from, as options of `train`.

    Once the new run has settings of its own, it goes on with these, so the
    first one may be gone.
    """
    if Path(run).resolve() == Path(resume_from).resolve():
        raise RunError(
            "--resume-from names another folder than that of the new run. "
            f"Received twice: {run}. An interrupted run goes on without it."
        )
    source = Run(run)
    if not (source.path / "settings.json").exists():
        source = Run(resume_from)
    return _options({**vars(_settings(source)), "resume_from": None})


def load_initial_translator(settings, run, verbose=0):
    """The translator to resume from; None if the run has a checkpoint."""
    if settings.resume_from is None or (run.path / "checkpoint").exists():
        return None
    source = Run(settings.resume_from)
    there = _settings(source)
    differ = [
        f"{name}={getattr(settings, name)} here, {getattr(there, name)} there"
        for name in OF_THE_MODEL
        if getattr(settings, name) != getattr(there, name)
    ]
    if differ:
        raise RunError(
            f"The model is that of {settings.resume_from}, so these settings "
            f"are its own: {'; '.join(differ)}."
        )
    try:
        translator, what = source.load()
    except ValueError as error:
        raise RunError(str(error)) from error
    if verbose:
        print(f"Beginning with the weights of {settings.resume_from}: {what}.")
        _warn_of_other_splits(settings, there)
    return translator


def _warn_of_other_splits(settings, there):
    differ = [
        name
        for name in OF_THE_SPLITS
        if getattr(settings, name) != getattr(there, name)
    ]
    if differ and settings.corpus == there.corpus:
        print(
            f"The corpus is divided in another way ({', '.join(differ)}): "
            "the first run may have trained on sentences that are held back "
            "here, so the scores would be too high.",
            file=sys.stderr,
        )


def _settings(run):
    try:
        return run.load_settings()
    except ValueError as error:
        raise RunError(str(error)) from error


def _options(values):
    """Names and values as options; a value of None is left to its default."""
    options = []
    for name, value in values.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            options.append(f"--{option}" if value else f"--no-{option}")
        elif isinstance(value, list):
            options.append(f"--{option}={','.join(map(str, value))}")
        elif value is not None:
            options.append(f"--{option}={value}")
    return options
