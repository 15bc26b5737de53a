"""Translate with a finished run.

    python -m d2l_attention.translate RUN "some text" [--beam 4]
        [--heatmap FILE.png|FILE.html]

Without a text, lines of standard input are translated, a line each.
"""

import argparse
import sys

from d2l_attention.train.results import draw, load_translator
from d2l_attention.train.run_folder import RunError, RunFolder


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m d2l_attention.translate",
        description="Translate with a model that d2l_attention.train trained.",
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
        translator = load_translator(RunFolder(options.run))
        if options.text is not None:
            (found,) = translator.translate([options.text], options.beam)
            print(found)
            if options.heatmap:
                draw(translator, options.text, found, options.heatmap)
            return 0
        return _translate_lines(translator, options.beam)
    except (RunError, OSError, UnicodeError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2


def _translate_lines(translator, beam):
    """A line for each; an empty one, and status 2, where that cannot be."""
    status = 0
    for number, line in enumerate(sys.stdin, 1):
        text, found = line.strip(), ""
        try:
            if text:
                (found,) = translator.translate([text], beam)
        except RunError as error:
            print(f"Line {number}: {error}", file=sys.stderr)
            status = 2
        print(found, flush=True)
    return status


if __name__ == "__main__":
    # Pipes of Windows have another encoding than files of text.
    sys.stdin.reconfigure(encoding="utf-8-sig")
    sys.stdout.reconfigure(encoding="utf-8")
    sys.exit(main())
