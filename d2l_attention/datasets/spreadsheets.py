"""The cells of lines with tabs, and the quotes that a spreadsheet adds.

A spreadsheet puts a cell into quotes that holds a quote, a tab or the end of
a line, some also one that holds a comma, and doubles the quotes within.
"""

import csv
import re
import warnings

_QUOTED = re.compile('"([^"]|"")*"')


def plain_rows(lines, path):
    """The rows of a text, whose quotes are its own.

    A warning counts the cells that a spreadsheet may have put into quotes,
    unless more cells hold quotes that no spreadsheet writes.

    Args:
        lines: Iterable of the number and the text of each line.
        path: Names the file in the warning.

    Yields:
        Number, text and list of cells of each row.
    """
    quoted, others, example, opened = 0, 0, "", ""
    for number, line in lines:
        cells = line.split("\t")
        yield number, line, cells
        if '"' not in line:
            continue
        for cell in cells:
            if _QUOTED.fullmatch(cell):
                quoted += 1
                example = example or f"{cell} in line {number}"
            elif '"' in cell:
                others += 1
        # A cell that is broken over lines is the last of a row, then the first.
        first, last = cells[0], cells[-1]
        if opened and first.endswith('"') and first.count('"') % 2:
            quoted, others = quoted + 1, others - 2  # its halves
            example, opened = example or opened, ""
        if last.startswith('"') and last.count('"') % 2:
            opened = f"{last} in line {number}"
    if quoted > others:
        warnings.warn(
            f"{path}: {quoted:,} cells stand in quotes, such as {example}. If "
            "a spreadsheet put them there, --spreadsheet takes them away.",
            stacklevel=2,
        )


def spreadsheet_rows(lines, path):
    """The rows of a text as a spreadsheet writes it, without its quotes.

    Args:
        lines: Iterable of the number and the text of each line.
        path: As in `plain_rows`.

    Yields:
        Number of its first line, text and list of cells of each row. A line
        that no spreadsheet writes has no cells; nor have those after it, up
        to the end of its quote.
    """
    of_row = []

    def remembered():
        for number, line in lines:
            of_row.append((number, line))
            yield line.replace("\r", " ") + "\n"

    rows = csv.reader(remembered(), delimiter="\t", strict=True)
    while True:
        of_row.clear()
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error:
            for number, line in of_row:
                yield number, line, []
        else:
            yield of_row[0][0], " ".join(line for _, line in of_row), cells
