"""What a run begins with: settings of a file, and the model of another run."""

import dataclasses
import json
from pathlib import Path
import sys
import tomllib

from d2l_attention.train.results import load_run
from d2l_attention.train.run_folder import RunError, RunFolder
from d2l_attention.train.settings import Settings, load_settings

# What the weights of a model fit; the vocabularies come with them.
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
    "max_length",
    "num_pairs",
    "num_validation",
    "num_test",
    "seed",
)
CHECKSUMS = ("corpus_sha256", "test_corpus_sha256")  # in a settings.json


def file_options(path):
    """The settings of a file, as options of the command `train`.

    Args:
        path: A `.toml` or `.json` file with the names of settings, as in the
            `settings.json` of a run.

    Returns:
        List of str, as on a command line.

    Raises:
        RunError: If the file cannot be read, or holds another name.
    """
    path = Path(path)
    read = tomllib.loads if path.suffix == ".toml" else json.loads
    try:
        found = read(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"Could not read {path}: {error}") from error
    if not isinstance(found, dict):
        raise RunError(f"{path} must hold names and values.")
    names = [field.name for field in dataclasses.fields(Settings)]
    found = {name.replace("-", "_"): value for name, value in found.items()}
    if unknown := sorted({*found} - {*names, *CHECKSUMS}):
        raise RunError(
            f"{path} holds what is no setting: {', '.join(unknown)}. "
            f"The settings are {', '.join(names)}."
        )
    return _options({x: found[x] for x in names if x in found})


def run_options(run, resume_from):
    """The settings of the run to begin with, as options of `train`.

    Once the new run has settings of its own, it goes on with these, so the
    first one may be gone.

    Args:
        run: The run folder of the new run.
        resume_from: The run folder to begin with.

    Raises:
        RunError: If that is no run folder, or the same one.
    """
    if Path(run).resolve() == Path(resume_from).resolve():
        raise RunError(
            "--resume-from names another folder than that of the new run. "
            f"Received twice: {run}. An interrupted run goes on without it."
        )
    folder = RunFolder(run)
    if not (folder.path / "settings.json").exists():
        folder = RunFolder(resume_from)
    found = dataclasses.asdict(_settings(folder))
    return _options({**found, "resume_from": None})


def load_beginning(settings, folder, verbose=0):
    """The translator to begin with, unless the run has a checkpoint.

    Args:
        settings: `Settings`.
        folder: `RunFolder` of the new run.
        verbose: 1 prints what was loaded, and warns if the splits differ.

    Returns:
        `Translator`, or None.

    Raises:
        RunError: If there is no such run, if its model is another, or if it
            has no checkpoint.
    """
    if settings.resume_from is None or folder.load_checkpoint() is not None:
        return None
    there = _settings(RunFolder(settings.resume_from))
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
        translator, what = load_run(settings.resume_from)
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
            f"Other splits of the same corpus ({', '.join(differ)} differ): "
            "the first run may have trained on sentences that are held back "
            "here, so the scores would be too high.",
            file=sys.stderr,
        )


def _settings(folder):
    try:
        return load_settings(folder)
    except ValueError as error:
        raise RunError(str(error)) from error


def _options(found):
    """Names and values as options; a value of None is left to its default."""
    options = []
    for name, value in found.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            options.append(f"--{option}" if value else f"--no-{option}")
        elif isinstance(value, list):
            options.append(f"--{option}={','.join(map(str, value))}")
        elif value is not None:
            options.append(f"--{option}={value}")
    return options
