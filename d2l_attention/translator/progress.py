"""How far a training is: a bar in a terminal, plain lines in a log."""

import sys

from tqdm import tqdm


class Progress:
    """A context; when it ends, nothing follows on the bar's line.

    Args:
        first: Int, steps that an earlier start has made.
        last: Int, all steps.
        quiet: Whether to show nothing.
    """

    def __init__(self, first, last, quiet=False):
        self.last, self.quiet = last, quiet
        self.bar = tqdm(
            total=last,
            initial=first,
            unit=" steps",
            file=sys.stdout,
            dynamic_ncols=True,
            disable=quiet or not sys.stdout.isatty(),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.bar.close()

    def log(self, step, loss, rate, speed):
        """Show a step, the mean loss, the learning rate, and the speed."""
        shown = f"loss {loss:.3f}, rate {rate:.2g}, {speed:,} tokens/s"
        if self.bar.disable:
            self.write(f"Step {step:,} of {self.last:,}: {shown}")
        self.bar.set_postfix_str(shown, refresh=False)
        self.bar.update(step - self.bar.n)

    def write(self, *lines):
        """Write lines, above the bar if there is one."""
        if not self.quiet:
            tqdm.write("\n".join(lines), file=sys.stdout)
            sys.stdout.flush()
