"""python -m d2l_attention COMMAND …"""

import argparse
from importlib import import_module
import os
import sys
import warnings

from d2l_attention._extras import MissingPackage

FOLDER = "d2l_attention.translator.commands"
COMMANDS = {
    "train": "train a translator, with one worker or several",
    "evaluate": "score a run with BLEU and chrF",
    "translate": "translate with a trained run",
    "demo": "show a page that translates with a run",
    "export": "write a run as a SavedModel for TensorFlow",
}


def main(arguments=None):
    """Run a command with its arguments; its exit status."""
    lines = [f"  {name:12}{does}" for name, does in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog="python -m d2l_attention",
        description="commands:\n" + "\n".join(lines),
        epilog="`python -m d2l_attention COMMAND --help` shows its options.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="…")
    chosen = parser.parse_args(arguments)
    try:
        command = import_module(
            f"d2l_attention.translator.commands.{chosen.command}"
        )
        return command.main(chosen.arguments)
    except MissingPackage as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        return 130


def _print_warning(message, *_, **__):
    """Without the line of code that warns."""
    print(f"Warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    # On Windows, a pipe is not UTF-8 by default.
    sys.stdout.reconfigure(encoding="utf-8")
    warnings.showwarning = _print_warning
    try:
        status = main()
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    if status and os.environ.get("TF_CONFIG"):
        # An ordinary exit would wait for the other workers.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)
