"""Score a run; see `python -m d2l_attention evaluate --help`."""

import argparse
import json
import sys

from d2l_attention._quiet import hold_stderr
from d2l_attention.datasets.files import read_pairs
from d2l_attention.train.results import (
    held_out_pairs,
    load_run,
    score,
    write_translations,
)
from d2l_attention.train.run_folder import RunError
from d2l_attention.train.settings import two_columns
import keras


def main(arguments):
    """Run the command `evaluate`.

    Args:
        arguments: List of str, what follows the name of the command.

    Returns:
        0, or 2 if the run or the file cannot be used.
    """
    parser = argparse.ArgumentParser(
        prog="python -m d2l_attention evaluate",
        description="Score a run, or the last checkpoint of one that has not "
        "finished. Prints BLEU and chrF with 95 % intervals, as JSON.",
    )
    parser.add_argument("run", help="the run folder")
    parser.add_argument(
        "file",
        nargs="?",
        help="pairs in two columns (default: the test split of the run)",
    )
    parser.add_argument(
        "--columns",
        type=two_columns,
        help="columns of the file with source and target (1,2)",
    )
    parser.add_argument("--beam", type=int, default=1, help="width (1: greedy)")
    parser.add_argument(
        "--length-penalty",
        type=float,
        default=1.0,
        help="of a beam; 0 prefers short translations (1)",
    )
    parser.add_argument(
        "--translations", metavar="FILE", help="write them too, as CSV"
    )
    options = parser.parse_args(arguments)
    if options.beam < 1:
        parser.error(f"--beam must be at least 1. Received: {options.beam}")
    if options.length_penalty != 1.0 and options.beam == 1:
        parser.error("--length-penalty needs a beam, as in --beam 4")
    with hold_stderr():  # TensorFlow logs when it first looks for devices
        keras.distribution.list_devices()
    try:
        translator, what = load_run(options.run)
        pairs = _pairs(translator, options)
        print(f"Translating {len(pairs):,} with {what}.", file=sys.stderr)
        found, scores = score(
            translator, pairs, options.beam, options.length_penalty
        )
        if options.translations:
            write_translations(options.translations, pairs, found)
    except (OSError, ValueError, RunError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(scores, indent=2))
    return 0


def _pairs(translator, options):
    """The pairs to translate; those that are too long are counted."""
    if options.file is None:
        return held_out_pairs(options.run)
    columns = options.columns and [int(x) for x in options.columns.split(",")]
    pairs, fit = read_pairs(options.file, columns=columns, raw=True), []
    for pair in pairs:
        try:
            translator.unknown_tokens(pair[0])
            fit.append(pair)
        except ValueError:
            continue
    if len(fit) < len(pairs):
        print(
            f"Left out: {len(pairs) - len(fit):,} of {len(pairs):,} pairs, "
            f"whose source has more than {translator.max_length} tokens.",
            file=sys.stderr,
        )
    if not fit:
        raise ValueError(f"{options.file} has no pair that is short enough.")
    return fit
