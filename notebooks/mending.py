"""Put the cells of a release back into a submission, before it is graded.

A cell of a release has a name, nbgrader's `grade_id`. Students delete, copy,
split, merge and move such cells. nbgrader 0.9.6 stops at two cells of one name,
and where a check is gone it gives no points and no word. Its own option
`OverwriteCells.add_missing_cells` brings back graded cells alone, and stops if
the cell before was a text.
"""

import ast
import copy
import re
import warnings

import editions
from IPython.core.inputtransformer2 import TransformerManager


def mend(handed_in, release):
    """A submission with the cells of the release, in their order.

    A locked cell is as it was released. An answer is what the student wrote in
    all cells of its name, joined in order: what is defined last counts, as in
    a run from top to bottom. If there is none, what stands in its place is the
    answer: cells without a name, or what was merged into the cell above or
    below. Other cells of the student stay below the one that they followed.

    Args:
        handed_in: The notebook of a student; it is left as it is.
        release: The notebook that students were given.

    Returns:
        The mended notebook, and what was mended, as a list of sentences.
    """
    given = {name_of(cell): cell for cell in release.cells if name_of(cell)}
    stood, below = _by_name(copy.deepcopy(handed_in.cells), given)
    said, names, mended = _moved(stood, given), list(given), []
    for i, name in enumerate(names):
        cell, here = copy.deepcopy(given[name]), stood.get(name, [])
        if is_locked(cell):
            said += _locked(cell, here)
        else:
            beside = [
                (given[x], stood.get(x, []))
                for x in names[max(i - 1, 0) : i + 2]
                if is_locked(given[x])
            ]
            loose = below.get(names[i - 1] if i else None, [])
            said += _answered(cell, here, loose, beside)
        mended.append(cell)
    cells = below[None]
    for name, cell in zip(names, mended, strict=True):
        cells += [cell, *below.get(name, [])]
    made = editions.notebook(cells)
    made.metadata = copy.deepcopy(release.metadata)
    return made, said


def name_of(cell):
    """The name that nbgrader knows a cell by; None if it has none."""
    entry = cell.metadata.get("nbgrader")
    return entry.get("grade_id") if isinstance(entry, dict) else None


def is_locked(cell):
    """Whether a cell of the release is put back, whatever a student wrote."""
    return not cell.metadata.nbgrader.get("solution")


def called(cell):
    """What a cell of the release is called in a sentence."""
    name = name_of(cell)
    match = re.fullmatch(r"exercise-(\d+)(-check|-text)?", name)
    if match is None:
        return "The cell of imports" if name == "setup" else f"Cell '{name}'"
    part = {"-check": "check", "-text": "text", None: "answer"}[match[2]]
    return f"The {part} of exercise {match[1]}"


def _by_name(cells, given):
    """Cells as they stand: those of each name, and those below each name.

    A cell that lost its name is known by its text. A second copy of a locked
    cell is dropped, unless the student wrote something else into it.
    """
    named = {name_of(cell) for cell in cells}
    lost = {
        cell.source.strip(): name
        for name, cell in given.items()
        if name not in named
    }
    stood, above = {}, None
    below = {None: []}
    for cell in cells:
        name = name_of(cell)
        if name not in given:
            name = lost.pop(cell.source.strip(), None)
        cell.metadata.pop("nbgrader", None)
        again = name in stood and is_locked(given[name])
        if again and cell.source.strip() not in given[name].source:
            name = None
        if name is None:
            below[above].append(cell)
        elif name in stood:
            stood[name].append(cell)
        else:
            above, stood[name], below[name] = name, [cell], []
    return stood, below


def _moved(stood, given):
    order = [name for name in given if name in stood]
    for name, other in zip(order, stood, strict=True):
        if name != other:
            return [f"{called(given[other])} stood too early. It was put back."]
    return []


def _locked(cell, here):
    """What had become of a locked cell."""
    if not here:
        return [f"{called(cell)} was missing, and was put back."]
    if len(here) > 1:
        return [f"{called(cell)} was there {len(here)} times. One is left."]
    if here[0].source.strip() != cell.source.strip():
        return [f"{called(cell)} was changed, and was put back."]
    return []


def _answered(cell, here, loose, beside):
    """Write a student's answer into its cell; say what had become of it.

    Args:
        cell: The cell of the release.
        here: The cells of its name.
        loose: The cells without a name in its place. Those that are taken for
            the answer are taken away.
        beside: The locked cells above and below: each as it was released, and
            the list of those that stood there.
    """
    said, missing = [], not here
    if missing:
        here = [x for x in loose if x.cell_type == cell.cell_type]
        loose[:] = [x for x in loose if x.cell_type != cell.cell_type]
    elif len(here) > 1:
        said = [f"{called(cell)} was in {len(here)} cells, which are one now."]
    texts = [x.source for x in here] or [
        stands[0].source.replace(first.source, "")
        for first, stands in beside
        if stands and first.source in stands[0].source
    ]
    for first, stands in beside:
        if not stands:  # it may have been merged into the answer
            texts = [text.replace(first.source, "") for text in texts]
    nothing = ("", cell.source.strip())
    texts = [x.strip("\n") for x in texts if x.strip() not in nothing]
    if missing:
        found = "What stood in its place" if texts else "Nothing"
        said = [f"{called(cell)} was missing. {found} was taken for it."]
    if texts:
        cell.source = _joined(list(dict.fromkeys(texts)), cell.cell_type)
    for x in here:
        if "attachments" in x:
            cell.setdefault("attachments", {}).update(x.attachments)
    return said


def _joined(texts, kind):
    """Texts as one; if that is no Python, the last one that is."""
    text = "\n\n".join(texts)
    if kind == "code" and not _parses(text):
        return next(filter(_parses, reversed(texts)), text)
    return text


def _parses(code):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(TransformerManager().transform_cell(code))
    except (SyntaxError, ValueError):
        return False
    return True
