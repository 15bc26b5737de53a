"""Translate with a trained run; see `python -m d2l_attention translate --help`.

Without a text, each line of standard input is translated.
"""

import argparse
from collections import Counter
import sys

from d2l_attention.translator.commands import (
    add_search_options,
    errors_in_a_line,
    find_devices,
    search_options,
)
from d2l_attention.translator.run_folder import Run
from d2l_attention.translator.translator import draw


@errors_in_a_line
def main(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m d2l_attention translate",
        description="Translate with a trained run.",
    )
    parser.add_argument("run", help="the run folder")
    parser.add_argument("text", nargs="?", help="default: standard input")
    add_search_options(parser)
    parser.add_argument(
        "--heatmap", metavar="FILE", help="draw the alignment, .png or .html"
    )
    options = parser.parse_args(arguments)
    search = search_options(parser, options)
    if options.heatmap:
        if not options.heatmap.endswith((".png", ".html")):
            parser.error(
                "--heatmap must end in .png or .html. Received: "
                f"{options.heatmap}"
            )
        if options.text is None:
            parser.error("--heatmap needs one text on the command line")
    find_devices()
    translator, _ = Run(options.run).load()
    if options.text is None:
        return _translate_lines(translator, search)
    _tell_unknown(translator.unknown_tokens(options.text))
    (translation,) = translator.translate([options.text], **search)
    print(translation)
    if options.heatmap:
        draw(translator, options.text, translation, options.heatmap)
    return 0


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
                if "\r" in text.rstrip("\r"):
                    print(
                        f"Line {number} holds a carriage return (\\r), which "
                        "was read as a space.",
                        file=sys.stderr,
                    )
                if text.strip():
                    unknown.update(translator.unknown_tokens(text))
                    texts[i] = text
            except UnicodeDecodeError:
                print(f"Line {number} is not UTF-8.", file=sys.stderr)
                status = 2
            except ValueError as error:
                print(f"Line {number}: {error}", file=sys.stderr)
                status = 2
        translations = []
        if texts:
            translations = translator.translate([*texts.values()], **search)
        answers = dict(zip(texts, translations, strict=True))
        print(*(answers.get(i, "") for i in range(len(lines))), sep="\n")
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
