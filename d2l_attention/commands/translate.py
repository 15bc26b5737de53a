"""Translate with a trained run; see `python -m d2l_attention translate --help`.

Without a text, each line of standard input is translated.
"""

import argparse
from collections import Counter
import sys

from d2l_attention._quiet import hold_stderr
from d2l_attention.translator import draw, load_translator
import keras


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
        "--length-penalty",
        type=float,
        default=1.0,
        help="of a beam; 0 prefers short translations (1)",
    )
    parser.add_argument(
        "--heatmap", metavar="FILE", help="draw the alignment, .png or .html"
    )
    options = parser.parse_args(arguments)
    if options.beam < 1:
        parser.error(f"--beam must be at least 1. Received: {options.beam}")
    if options.length_penalty != 1.0 and options.beam == 1:
        parser.error("--length-penalty needs a beam, as in --beam 4")
    if options.heatmap:
        if not options.heatmap.endswith((".png", ".html")):
            parser.error(
                "--heatmap must end in .png or .html. Received: "
                f"{options.heatmap}"
            )
        if options.text is None:
            parser.error("--heatmap needs one text on the command line")
    search = {"beam": options.beam, "length_penalty": options.length_penalty}
    with hold_stderr():  # TensorFlow logs when it first looks for devices
        keras.distribution.list_devices()
    try:
        translator = load_translator(options.run)
        if options.text is not None:
            _tell_unknown(translator.unknown_tokens(options.text))
            (found,) = translator.translate([options.text], **search)
            print(found)
            if options.heatmap:
                draw(translator, options.text, found, options.heatmap)
            return 0
        return _translate_lines(translator, search)
    except (OSError, ValueError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2


def _translate_lines(translator, search):
    """Print one line for each line of standard input; the exit status.

    A line that cannot be translated gives an empty line, a message on
    standard error, and status 2 at the end.
    """
    status, number, unknown = 0, 0, Counter()
    for lines in _lines_as_they_come():
        texts = {}
        for i, line in enumerate(lines):
            number += 1
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                if text.strip():
                    unknown.update(translator.unknown_tokens(text))
                    texts[i] = text
            except UnicodeDecodeError:
                print(f"Line {number} is not UTF-8.", file=sys.stderr)
                status = 2
            except ValueError as error:
                print(f"Line {number}: {error}", file=sys.stderr)
                status = 2
        found = []
        if texts:
            found = translator.translate([*texts.values()], **search)
        found = dict(zip(texts, found, strict=True))
        print(*(found.get(i, "") for i in range(len(lines))), sep="\n")
        sys.stdout.flush()
    _tell_unknown(unknown)
    return status


def _lines_as_they_come():
    """Lists of lines: many of a file, one of a person who types."""
    rest = b""
    while some := sys.stdin.buffer.read1(1 << 16):
        *lines, rest = (rest + some).split(b"\n")
        if lines:
            yield lines
    if rest:
        yield [rest]


def _tell_unknown(tokens):
    """Name on standard error what the model has never seen."""
    counts = Counter(tokens)
    if counts:
        some = ", ".join(token for token, _ in counts.most_common(10))
        more = ", …" if len(counts) > 10 else "."
        print(f"Never seen, and read as [UNK]: {some}{more}", file=sys.stderr)
