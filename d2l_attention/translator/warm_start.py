"""`--resume-from`: a run that starts with settings and model of another.

An interrupted run goes on by itself, from its checkpoint (`training_loop.py`).
"""

from pathlib import Path
import sys

from d2l_attention.translator.run_folder import Run
from d2l_attention.translator.settings import RunError, as_options

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
    "max_bad_share",
    "max_length",
    "num_pairs",
    "num_validation",
    "num_test",
    "seed",
)


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
    return as_options({**vars(_settings(source)), "resume_from": None})


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
