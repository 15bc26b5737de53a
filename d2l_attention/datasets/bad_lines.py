"""Lines that are no pairs: a few are skipped, and many refuse a file."""

import warnings

from d2l_attention.datasets.lines import PAGE, DataError, some_of

SHOWN = 9  # lines that say what kind of file it is


def report_bad_lines(name, bad, num_good, max_bad_share, needed):
    """Warn of the unusable lines, or refuse the file if they are too many.

    Args:
        name: Str, names the file, or the two files.
        bad: Dict of number → text of the unusable lines; later ones may have
            an empty text.
        num_good: Int, number of pairs.
        max_bad_share: Float, share of unusable lines that is tolerated.
        needed: Str, what a line needs to be a pair.

    Raises:
        DataError: If there is no line, or if too many are unusable.
    """
    total = num_good + len(bad)
    if not total:
        raise DataError(f"{name} is empty.")
    message = (
        f"{name}: {len(bad)} of {total} lines are not pairs (line "
        f"{some_of(sorted(bad))})"
    )
    if len(bad) <= max_bad_share * total:
        if bad:
            warnings.warn(f"{message}; skipped.", stacklevel=4)
        return
    first = [line for _, line in sorted(bad.items()) if line][:SHOWN]
    shown = f"Line {min(bad)} begins with {first[0][:60]!r}."
    if any("\0" in line for line in first):
        shown = "They hold the character NUL, which no text has."
    remedy = "Mend them, or let --max-bad-share skip more."
    if 4 * num_good < len(bad) and "\t" not in first[0]:
        if kind := _kind_of(first):
            raise DataError(
                f"{name} looks like {kind}; {PAGE} make tabs of it. {shown}"
            )
        remedy = (
            "If each language has a file of its own, name both: --corpus "
            "train.en,train.fr."
        )
    raise DataError(
        f"{message}; at most {max_bad_share:.1%} are tolerated. A line needs "
        f"{needed}. {shown} {remedy}"
    )


def _kind_of(lines):
    """What the first lines of a file without tabs look like; None = text."""
    beginning = lines[0].lstrip()[:1]
    if beginning in ("{", "["):
        return "JSON"
    if beginning == "<":
        return "TMX or other XML"
    for mark, name in ((";", "semicolons"), (",", "commas")):
        if sum(mark in line for line in lines) > len(lines) / 2:
            return f"columns with {name} between"
    return None
