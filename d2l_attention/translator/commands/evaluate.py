"""Score a run; see `python -m d2l_attention evaluate --help`."""

import argparse
import json
from pathlib import Path
import sys

from d2l_attention._atomic import write_whole
from d2l_attention.datasets.corpus_warnings import find_warnings
from d2l_attention.datasets.parallel_text import named, read_pairs
from d2l_attention.datasets.tokens import (
    normalize,
    normalize_pairs,
    turkic_sides,
    without_end_marks,
)
from d2l_attention.translator.commands import (
    add_search_options,
    errors_in_a_line,
    find_devices,
    search_options,
)
from d2l_attention.translator.run_folder import Run, translations_csv
from d2l_attention.translator.scores import score
from d2l_attention.translator.settings import (
    HELP,
    RunError,
    at_least,
    one_or_two_files,
    two_columns,
)


@errors_in_a_line
def main(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m d2l_attention evaluate",
        description="Score a run, or the last checkpoint of one that has not "
        "finished. Prints BLEU and chrF with 95 % intervals, as JSON.",
    )
    parser.add_argument("run", help="the run folder")
    parser.add_argument(
        "file",
        nargs="?",
        type=one_or_two_files,
        help="pairs in two columns, or two files with aligned lines, as in "
        "test.en,test.fr (default: the test split of the run)",
    )
    parser.add_argument(
        "--columns",
        type=two_columns,
        help="columns of the file with source and target (1,2)",
    )
    parser.add_argument(
        "--reverse",
        action="store_true",
        help="let source and target of the file change places",
    )
    parser.add_argument(
        "--max-bad-share",
        type=at_least(0.0, float, below=1.0),
        default=0.01,
        help=f"{HELP['max_bad_share']} (%(default)s)",
    )
    add_search_options(parser)
    parser.add_argument(
        "--translations", metavar="FILE", help="write them too, as CSV"
    )
    options = parser.parse_args(arguments)
    search = search_options(parser, options)
    find_devices()
    if options.translations:
        folder = Path(options.translations).absolute().parent
        if not folder.is_dir():
            raise FileNotFoundError(f"There is no folder {folder}.")
    run = Run(options.run)
    translator, what = run.load()
    pairs = _pairs(translator, run, options)
    print(f"Translating {len(pairs):,} with {what}.", file=sys.stderr)
    translations, scores = score(translator, pairs, **search)
    if options.translations:
        table = translations_csv(pairs, translations)
        write_whole(options.translations, table)
    print(json.dumps(scores, indent=2))
    return 0


def _pairs(translator, run, options):
    """The pairs to translate; those that are too long are counted."""
    if options.file is None:
        return run.held_out_pairs()
    pairs = read_pairs(
        options.file,
        max_bad_share=options.max_bad_share,
        columns=options.columns,
        raw=True,
        reverse=options.reverse,
    )
    tokens = normalize_pairs(pairs, turkic_sides(pairs))
    for look in find_warnings(dict(zip(tokens, pairs, strict=True))):
        print(f"Warning: {named(options.file)}: {look}", file=sys.stderr)
    fit = []
    for pair in pairs:
        try:
            translator.tokens(pair[0])
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
        name = named(options.file)
        raise ValueError(f"{name} has no pair that is short enough.")
    _warn_of_trained(run, fit)
    return fit


def _warn_of_trained(run, pairs):
    """Count the pairs whose source the run has learned."""
    try:
        trained = run.trained_sources()
    except (OSError, ValueError, RunError) as error:
        print(
            f"Whether the run was trained on these pairs is not known: {error}",
            file=sys.stderr,
        )
        return
    number = sum(without_end_marks(normalize(x)) in trained for x, _ in pairs)
    if number:
        print(
            f"The run was trained on {number:,} of these {len(pairs):,} "
            "sources (case and end marks apart), so the scores are too high.",
            file=sys.stderr,
        )
