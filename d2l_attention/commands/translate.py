"""Translate with a trained run; see `python -m d2l_attention translate --help`.

Without a text, each line of standard input is translated.
"""

import argparse
import sys

from d2l_attention.translator import draw, load_translator


def main(arguments):
    """Run the command `translate`.

    Args:
        arguments: List of str, what follows the name of the command.

    Returns:
        0, or 2 if a text could not be translated.
    """
    parser = argparse.ArgumentParser(
        prog="python -m d2l_attention translate",
        description="Translate with a trained run.",
    )
    parser.add_argument("run", help="the run folder")
    parser.add_argument("text", nargs="?", help="default: standard input")
    parser.add_argument("--beam", type=int, default=1, help="width (1: greedy)")
    parser.add_argument(
        "--heatmap", metavar="FILE", help="draw the alignment, .png or .html"
    )
    options = parser.parse_args(arguments)
    if options.beam < 1:
        parser.error(f"--beam must be at least 1. Received: {options.beam}")
    if options.heatmap:
        if not options.heatmap.endswith((".png", ".html")):
            parser.error(
                "--heatmap must end in .png or .html. Received: "
                f"{options.heatmap}"
            )
        if options.text is None:
            parser.error("--heatmap needs one text on the command line")
    try:
        translator = load_translator(options.run)
        if options.text is not None:
            (found,) = translator.translate([options.text], options.beam)
            print(found)
            if options.heatmap:
                draw(translator, options.text, found, options.heatmap)
            return 0
        return _translate_lines(translator, options.beam)
    except (OSError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2


def _translate_lines(translator, beam):
    """Print one line for each line of standard input; the exit status.

    A line that cannot be translated gives an empty line, a message on
    standard error, and status 2 at the end.
    """
    status = 0
    for number, line in enumerate(sys.stdin, 1):
        text, found = line.strip(), ""
        try:
            if text:
                (found,) = translator.translate([text], beam)
        except ValueError as error:
            print(f"Line {number}: {error}", file=sys.stderr)
            status = 2
        print(found, flush=True)
    return status
