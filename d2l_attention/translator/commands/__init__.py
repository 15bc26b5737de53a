"""The commands of `python -m d2l_attention`, one file each.

Here stands what two of them share.
"""

import functools
import sys

from d2l_attention._quiet import hold_stderr
from d2l_attention.translator.settings import RunError
import keras


def errors_in_a_line(main):
    """A command that tells what it cannot use in a line, and returns 2."""

    @functools.wraps(main)
    def command(arguments):
        try:
            return main(arguments)
        except (OSError, ValueError, RunError) as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            return 2

    return command


def add_search_options(parser):
    parser.add_argument("--beam", type=int, default=1, help="width (1: greedy)")
    parser.add_argument(
        "--length-penalty",
        type=float,
        default=1.0,
        help="of a beam; 0 prefers short translations (1)",
    )


def search_options(parser, options):
    """What `Translator.translate` takes of them; refuses what cannot be."""
    if options.beam < 1:
        parser.error(f"--beam must be at least 1. Received: {options.beam}")
    if options.length_penalty != 1.0 and options.beam == 1:
        parser.error("--length-penalty needs a beam, as in --beam 4")
    return {"beam": options.beam, "length_penalty": options.length_penalty}


def find_devices():
    """Let TensorFlow look for devices, which it logs, in silence."""
    with hold_stderr():
        keras.distribution.list_devices()
