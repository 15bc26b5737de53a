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

from course import editions
from IPython.core.inputtransformer2 import TransformerManager

# Stands in an empty answer above a copy of what was found.
KEPT = "*(Nothing was written here. This stands elsewhere in the notebook:)*"

UNNAMED = (
    "The name of every cell was missing: some programs, such as Colab, drop "
    "them. The cells were known again by their text and their place."
)


def mend(handed_in, release):
    """A submission with the cells of the release, in their order.

    A locked cell is as it was released. An answer is what the student wrote in
    the cells of its name. If there is none, what stands in its place is the
    answer: cells without a name, or what was merged into the cell above or
    below. If that is nothing either, it is looked for elsewhere: code is taken
    if exactly one cell defines what the stub defines, and words are copied
    into the answer, so that a reader finds them. Other cells of the student
    stay below the one that they followed.

    Args:
        handed_in: The notebook of a student; it is left as it is.
        release: The notebook that students were given.

    Returns:
        The mended notebook, and what was mended, as a list of sentences.
    """
    given = {name_of(cell): cell for cell in release.cells if name_of(cell)}
    handed_in = editions.with_line_feeds(handed_in)
    cells, anew = _renewed(copy.deepcopy(handed_in.cells), given)
    stood, below = _by_name(cells, given)
    said, names, made = {}, list(given), {}
    for i, name in enumerate(names):
        cell, here = copy.deepcopy(given[name]), stood.get(name, [])
        if is_locked(cell):
            said[name], made[name] = _locked(cell, here), [cell]
        else:
            beside = [
                (given[x], stood.get(x, []))
                for x in names[max(i - 1, 0) : i + 2]
                if is_locked(given[x])
            ]
            loose = below.get(names[i - 1] if i else None, [])
            said[name], made[name] = _answered(cell, here, loose, beside)
    handed_out = {cell.source.strip() for cell in release.cells}
    said |= _from_elsewhere(given, stood, below, made, handed_out)
    cells = below[None]
    for name in names:
        cells += [*made[name], *below.get(name, [])]
    notebook = editions.notebook(cells)
    notebook.metadata = copy.deepcopy(release.metadata)
    sentences = _moved(stood, given)
    sentences += [x for name in names for x in anew[name] + said[name]]
    return notebook, _in_short(sentences, handed_in.cells, release)


def _in_short(said, cells, release):
    """One sentence instead of one for each cell, if they have one cause."""
    given = [cell for cell in release.cells if name_of(cell)]
    text = "\n".join(cell.source for cell in cells).strip()
    first, ours = text.split("\n")[0], release.cells[0].source.split("\n")[0]
    asked = [x.source.strip() for x in given if name_of(x).endswith("-text")]
    if text and asked and first != ours and not any(x in text for x in asked):
        usual = ("put back.", "The new one counts.")
        return [
            "This seems to be another assignment: none of its questions is one "
            f"of this assignment. It begins with '{first[:80]}'.",
            *(x for x in said if not x.endswith(usual)),
        ]
    if not {name_of(x) for x in cells} & {name_of(x) for x in given}:
        usual = "What stood in its place was taken for it."
        return [UNNAMED, *(x for x in said if not x.endswith(usual))]
    return said


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


def _exercise(name):
    """The number of the exercise that a cell belongs to, a str, or None."""
    match = re.fullmatch(r"exercise-(\d+)(-check|-text)?", name or "")
    return match and match[1]


def _renewed(cells, given):
    """Cells with those of an earlier release replaced by the present ones.

    A teacher may edit an assignment after it was handed out. What a student
    left as it was is then not what the student changed.

    Returns:
        The cells, and a dict of a name → sentences.
    """
    kept, said = [], {name: [] for name in given}
    for cell in cells:
        name = name_of(cell)
        if name is not None and _as_released(cell):
            if name not in given:
                continue
            if cell.source.strip() != given[name].source.strip():
                cell.source = given[name].source
                said[name] = [
                    f"{called(given[name])} was released anew after this "
                    "notebook was handed out. The new one counts."
                ]
        kept.append(cell)
    return kept, said


def _as_released(cell):
    """Whether a cell is as some release had it.

    nbgrader writes a sum of a cell into it, which an edit leaves behind.
    """
    checksum = cell.metadata.nbgrader.get("checksum")
    if checksum is None:
        return False
    from nbgrader.utils import compute_checksum  # not installed for readers

    try:
        return compute_checksum(cell) == checksum
    except (KeyError, TypeError, ValueError):  # metadata that was spoilt
        return False


def _by_name(cells, given):
    """Cells as they stand: those of each name, and those below each name.

    A cell that lost its name is known by its text, if that is the text of one
    cell only. A second copy of a locked cell is dropped, unless the student
    wrote something else into it. A copy of an answer that stands in the place
    of another one, which is missing or empty, has no name.
    """
    named = [name_of(cell) for cell in cells]
    texts = [cell.source.strip() for cell in given.values()]
    lost = {
        cell.source.strip(): name
        for name, cell in given.items()
        if name not in named and texts.count(cell.source.strip()) == 1
    }
    answered = {
        _exercise(name_of(cell))
        for cell in cells
        if name_of(cell) in given
        and not is_locked(given[name_of(cell)])
        and _is_answer(cell.source, given[name_of(cell)])
    }
    stood, above = {}, None
    below = {None: []}
    for cell in cells:
        name = name_of(cell)
        if name not in given:
            name = lost.pop(cell.source.strip(), None)
        cell.metadata.pop("nbgrader", None)
        if name and is_locked(given[name]):
            text = given[name].source
            if name in stood and cell.source.strip() not in text:
                name = None
        elif name and named.count(name) > 1:
            place = _exercise(above)
            if place not in (_exercise(name), *answered):
                place = given.get(f"exercise-{place}")
                if place and _suits(cell, place, given[name]):
                    name = None
        if name is None:
            below[above].append(cell)
        elif name in stood:
            stood[name].append(cell)
        else:
            above, stood[name], below[name] = name, [cell], []
    return stood, below


def _suits(cell, place, named):
    """Whether a cell may answer the place where it stands, not its name."""
    if place.cell_type == "markdown" or named.cell_type == "markdown":
        return place.cell_type == named.cell_type
    return not _defines(named.source) & _defines(cell.source)


def _is_answer(text, cell):
    """Whether a student wrote something for a cell of the release."""
    return text.strip() not in ("", cell.source.strip())


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

    Returns:
        Sentences, and a list of cells: the answer, among others of the student
        that stood there and are run on their own.
    """
    said, missing = [], not here
    if missing:
        here = [x for x in loose if x.cell_type == cell.cell_type]
        loose[:] = [x for x in loose if x.cell_type != cell.cell_type]
    texts = [x.source for x in here] or [
        stands[0].source.replace(first.source, "")
        for first, stands in beside
        if stands and first.source in stands[0].source
    ]
    for first, stands in beside:
        if not stands:  # it may have been merged into the answer
            texts = [text.replace(first.source, "") for text in texts]
    texts = [x.strip("\n") for x in texts if _is_answer(x, cell)]
    texts = list(dict.fromkeys(texts))
    if missing:
        found = "What stood in its place" if texts else "Nothing"
        said = [f"{called(cell)} was missing. {found} was taken for it."]
    parts, answer = [cell], 0
    if texts and cell.cell_type == "code":
        parts = _whole(texts)
        wanted = _defines(cell.source)
        right = [i for i, x in enumerate(parts) if wanted <= _defines(x)]
        answer = right[-1] if right else len(parts) - 1
        cell.source = parts[answer]
        parts = [editions.code(x) for x in parts]
        parts[answer] = cell
    elif texts:
        cell.source = "\n\n".join(texts)
    if not missing and len(here) > 1:
        now = "are one now" if len(parts) == 1 else "are run one by one"
        said = [f"{called(cell)} was in {len(here)} cells, which {now}."]
    for x in here:
        _attach(cell, x)
    return said, parts


def _attach(cell, other):
    """Give a cell the pictures of another one."""
    if "attachments" in other:
        cell.setdefault("attachments", {}).update(other.attachments)


def _whole(texts):
    """Code cells, with those joined that are Python only together.

    Others stay apart: one that fails must not stop the rest.
    """
    parts = []
    for text in texts:
        joined = "\n\n".join([*parts[-1:], text])
        cut = text[:1].isspace() or not all(map(_parses, [*parts[-1:], text]))
        if cut and _parses(joined):
            parts[-1:] = [joined]
        else:
            parts.append(text)
    whole = "\n\n".join(texts)
    return parts if all(map(_parses, parts)) or not _parses(whole) else [whole]


def _from_elsewhere(given, stood, below, made, handed_out):
    """Look for what answers cells that are still empty.

    Args:
        given: Dict of a name → the cell of the release.
        stood: Dict of a name → the student's cells of it.
        below: Dict of a name → the student's other cells below it.
        made: Dict of a name → the cells that are made of it. Answers are
            written into them.
        handed_out: Set of str, the texts of the release.

    Returns:
        Dict of a name → sentences.
    """
    empty = {
        name: next(x for x in made[name] if name_of(x))
        for name, cell in given.items()
        if not is_locked(cell)
        and not any(_is_answer(x.source, cell) for x in made[name])
    }
    said, taken = {}, []
    sources = {x: _source(given, stood, below, made, x) for x in empty}
    for name, cell in empty.items():
        begins = f"{_exercise_called(cell)} has no answer in its cell"
        if cell.cell_type == "code":
            names = " and ".join(
                f"`{x}`" for x in sorted(_defines(cell.source))
            )
            text, holders, mentioned = sources[name]
            if text:
                cell.source = text
                taken += holders
                said[name] = [
                    f"{begins}; the cell that defines {names} was taken for it."
                ]
            elif mentioned:
                said[name] = [
                    f"{begins}, but {names} is written elsewhere. It was not "
                    "taken for the answer; look at it."
                ]
            continue
        cells, where = _words(name, given, stood, below, handed_out)
        if cells:
            parts = [cell.source.strip(), KEPT, *map(_quoted, cells)]
            cell.source = "\n\n".join(parts)
            for x in cells:
                _attach(cell, x)
            said[name] = [f"{begins}, but other text stands {where}; read it."]
    for cells in [*below.values(), *made.values()]:
        cells[:] = [x for x in cells if not any(x is y for y in taken)]
    return said


def _exercise_called(cell):
    number = _exercise(name_of(cell))
    return f"Exercise {number}" if number else called(cell)


def _source(given, stood, below, made, name):
    """Code that answers an empty cell, wherever it stands.

    Returns:
        The code if exactly one text of the student can be it, or ""; the cells
        that hold it and nothing else of the release; and whether what the cell
        should define is written anywhere at all.
    """
    wanted = _defines(given[name].source)
    if not wanted:
        return "", [], False
    own = [x for cells in below.values() for x in cells]
    own += [x for y, cells in made.items() if y != name for x in cells]
    own = [x for x in own if not name_of(x) or not is_locked(x)]
    added = [
        editions.code(_added(x.source, given[y].source))
        for y, cells in stood.items()
        if is_locked(given[y])
        for x in cells
    ]
    own += added
    found = [
        x for x in own if x.cell_type == "code" and wanted <= _defines(x.source)
    ]
    texts = {x.source.strip("\n") for x in found}
    pattern = rf"\b(?:def|class) +(?:{'|'.join(map(re.escape, wanted))})\b"
    mentioned = any(re.search(pattern, x.source) for x in own)
    if len(texts) == 1:
        return texts.pop(), [x for x in found if not name_of(x)], True
    return "", [], bool(texts) or mentioned


def _added(text, given):
    """What a student wrote into a locked cell."""
    if given in text:
        return text.replace(given, "").strip("\n")
    lines = set(map(str.strip, given.splitlines()))
    lines = [x for x in text.splitlines() if x.strip() not in lines]
    return "\n".join(lines)


def _words(name, given, stood, below, handed_out):
    """Text of the student that may be the answer of an empty cell.

    Returns:
        A list of cells, and where they stand.
    """
    number, names = _exercise(name), list(given)
    own = [x for x in names if x == name or number and _exercise(x) == number]
    first = names.index(own[0])
    above = below.get(names[first - 1], []) if first else []
    found = [x for x in above if x.cell_type != "code"]
    for x in own:
        texts = stood.get(x, []) if is_locked(given[x]) else []
        texts = [_added(y.source, given[x].source) for y in texts]
        found += [editions.prose(text) for text in texts]
        found += below.get(x, [])
    where = "beside it"
    if not any(x.source.strip() not in {"", *handed_out} for x in found):
        where = "elsewhere"
        found = [
            x
            for place, cells in below.items()
            for x in cells
            if place is not None and x.cell_type != "code"
        ]
    return [
        x for x in found if x.source.strip() not in {"", *handed_out}
    ], where


def _quoted(cell):
    if cell.cell_type == "code":
        return f"~~~python\n{cell.source}\n~~~"
    return cell.source


def _defines(code):
    """The names that code defines at its top level."""
    names = set()
    try:
        body = _tree(code).body
    except (SyntaxError, ValueError):
        return names
    for node in body:
        if hasattr(node, "name"):  # a function or a class
            names.add(node.name)
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        names |= {x.id for x in targets if isinstance(x, ast.Name)}
    return names


def _tree(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(TransformerManager().transform_cell(code))


def _parses(code):
    try:
        _tree(code)
    except (SyntaxError, ValueError):
        return False
    return True
