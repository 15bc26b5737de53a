"""Train a translator; see `python -m d2l_attention train --help`."""

import argparse
import json
import os
import sys

from d2l_attention.datasets import DataError
from d2l_attention.translator.run_folder import Run
from d2l_attention.translator.settings import (
    RunError,
    add_arguments,
    at_least,
    settings_of,
)
from d2l_attention.translator.settings_file import (
    file_options,
    warn_of_other_text,
)
from d2l_attention.translator.training_corpus import Corpus
from d2l_attention.translator.training_loop import ToldToLeave, train
from d2l_attention.translator.training_step import Trainer
from d2l_attention.translator.warm_start import (
    load_initial_translator,
    run_options,
)
from d2l_attention.translator.workers import (
    LEFT,
    LOST,
    LOST_PEERS,
    end_with_launcher,
    make_strategy,
    read_cluster,
    reason,
    run_workers,
    told_to_leave,
)
import tensorflow as tf

EPILOG = """\
The run folder holds settings.json, the vocabularies, history.csv,
learning_curves.png, a checkpoint, the weights of some epochs, and at the end
model.keras, translations.csv, scores.json (BLEU and chrF with 95 % intervals)
and alignment.png. The same command continues a run that was interrupted.
Inside a cluster, give every machine the same command and a TF_CONFIG of its
own; the run folder must be one that all of them can read.
"""


def main(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m d2l_attention train",
        description="Train a translator with attention.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("run", help="the run folder; made if there is none")
    counts = {
        "workers": (1, 1, "processes on this machine"),
        "checkpoint-every": (1, 200, "steps between two checkpoints"),
        "log-every": (1, 50, "steps between two lines of the log"),
        "samples": (0, 3, "sentences to translate and show after an epoch"),
    }
    for name, (smallest, default, does) in counts.items():
        parser.add_argument(
            f"--{name}",
            type=at_least(smallest),
            default=default,
            help=f"{does} (%(default)s)",
        )
    parser.add_argument(
        "--oversubscribe",
        action="store_true",
        help="start more workers than this machine has cores",
    )
    parser.add_argument(
        "--settings",
        metavar="FILE",
        help="settings in TOML or JSON; the command line wins",
    )
    add_arguments(parser)
    try:
        options = _parse(parser, arguments)
    except RunError as error:
        print(f"RunError: {error}", file=sys.stderr)
        return 2
    settings = settings_of(vars(options))
    run = Run(options.run)
    try:
        identity = _identity(settings)
        if options.settings:
            warn_of_other_text(options.settings, identity)
        run.check(identity)
        addresses, index = read_cluster()
        if options.workers == 1:
            return _work(settings, identity, run, options, addresses, index)
        if addresses:
            raise RunError(
                f"--workers={options.workers} starts workers on this machine, "
                f"and TF_CONFIG names {len(addresses)}. Give only one of them."
            )
        settings.share(options.workers)
        cores = os.cpu_count() or 1
        if options.workers > cores and not options.oversubscribe:
            raise RunError(
                f"--workers={options.workers} is more than the {cores} cores "
                "of this machine. Add --oversubscribe to start them all the "
                "same."
            )
        return run_workers(options.workers, arguments)
    except (RunError, DataError, OSError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(
            "Interrupted. The same command goes on from the last checkpoint, "
            "if there is one.",
            file=sys.stderr,
        )
        return 130
    finally:
        run.close()


def _parse(parser, arguments):
    """The options; what they leave open, a file and another run may say."""
    options, others = parser.parse_args(arguments), []
    if options.settings:
        others = file_options(options.settings)
        options = parser.parse_args([*others, *arguments])
    if options.resume_from:
        others = [*run_options(options.run, options.resume_from), *others]
        options = parser.parse_args([*others, *arguments])
    return options


def _identity(settings):
    try:
        return settings.identity()
    except FileNotFoundError as error:
        raise RunError(
            f"{error} If it has moved, --corpus or --test-corpus names its new "
            "place."
        ) from error


def _work(settings, identity, run, options, addresses, index):
    """Train as one worker; the exit status."""
    if threads := os.environ.get("D2L_ATTENTION_THREADS"):
        end_with_launcher()
        tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    try:
        strategy = make_strategy(addresses, index)
        verbose = int(index == 0)
        initial = load_initial_translator(settings, run, verbose)
        vectorizers = initial and initial.vectorizers
        corpus = Corpus(settings, run, vectorizers, verbose)
        trainer = Trainer(settings, corpus, strategy)
        if initial:
            trainer.begin_with(initial.model)
        if index == 0:
            run.open(identity)
            run.write_vocabularies(corpus.vectorizers)
        status = _train(trainer, run, options, index == 0)
        if len(addresses) > 1:  # a worker that left would end the chief
            strategy.reduce("SUM", 1, axis=None)
        return status
    except LOST as error:
        if len(addresses) < 2:
            raise
        print(
            f"Worker {index} lost the others and stops: {reason(error)}\n"
            "The same command goes on from the last checkpoint.",
            file=sys.stderr,
        )
        return LOST_PEERS


def _train(trainer, run, options, chief):
    """Train and write the results, or save where told to leave."""

    def leave():
        trainer.told_to_leave = True

    try:
        with told_to_leave(leave):
            train(
                trainer,
                run,
                chief=chief,
                checkpoint_every=options.checkpoint_every,
                log_every=options.log_every,
                samples=options.samples,
            )
    except ToldToLeave as left:
        if chief:
            print(left, file=sys.stderr)
        return LEFT
    if chief:
        print(json.dumps(run.write_results(trainer), indent=2))
    return 0
