"""What students do to the cells of an assignment, and what is made of it."""

import copy

from course import editions, mending
import nbformat
import pytest


def cell(name, kind, source, **flags):
    entry = {"grade_id": name, "schema_version": 3, "task": False}
    entry |= {"grade": False, "solution": False, "locked": False} | flags
    make = editions.code if kind == "code" else editions.prose
    return make(source, nbgrader=entry)


SETUP, TEXT_1, CODE_1, CHECK_1, TEXT_2, WORDS_2, ROOM, TEXT_3, CODE_3, CHECK_3 \
    = range(1, 11)  # fmt: skip
STUB = "def f(x):\n    ...  # your code"
RIGHT = 'def f(x):\n    """Twice."""\n    return 2 * x'
TEXT = "### Exercise 1\n\nLet f double a number."
CHECK = "assert f(2) == 4\nassert f(3) == 6"


def release():
    return editions.notebook(
        [
            editions.prose("# Exercises"),
            cell("setup", "code", "import math", locked=True),
            cell("exercise-1-text", "prose", TEXT, locked=True),
            cell("exercise-1", "code", STUB, solution=True),
            cell("exercise-1-check", "code", CHECK, grade=True, locked=True),
            cell("exercise-2-text", "prose", "### Exercise 2", locked=True),
            cell("exercise-2", "prose", "*Yours:*", grade=True, solution=True),
            editions.code("# If your answer needs code, write it here."),
            cell("exercise-3-text", "prose", "### Exercise 3", locked=True),
            cell("exercise-3", "code", "g = ...", solution=True),
            cell("exercise-3-check", "code", "assert g", grade=True),
        ]
    )


def answered():
    """The release, as a student would hand it in who changes nothing else."""
    notebook = release()
    notebook.cells[CODE_1].source = RIGHT
    notebook.cells[WORDS_2].source = "Because."
    notebook.cells[CODE_3].source = "g = 1"
    return notebook


def delete(*places):
    def change(cells):
        for place in sorted(places, reverse=True):
            del cells[place]

    return change


def copied(place, source=None, to=None):
    def change(cells):
        again = copy.deepcopy(cells[place])
        again.source = again.source if source is None else source
        cells.insert(place + 1 if to is None else to, again)

    return change


def split(place, line):
    def change(cells):
        lines = cells[place].source.split("\n")
        cells[place].source = "\n".join(lines[:line])
        copied(place, "\n".join(lines[line:]))(cells)

    return change


def merged(into, *others):
    """Cells merged as JupyterLab does: one has its name and type left."""

    def change(cells):
        places = sorted([into, *others])
        cells[into].source = "\n\n".join(cells[x].source for x in places)
        delete(*others)(cells)

    return change


def moved(place, to):
    def change(cells):
        cells.insert(to, cells.pop(place))

    return change


def unnamed(*places):
    """Cells deleted, and what they held written into new ones."""

    def change(cells):
        for place in places:
            cells[place].metadata.pop("nbgrader")

    return change


def edited(place, source):
    def change(cells):
        cells[place].source = source

    return change


def both(first, second):
    def change(cells):
        first(cells)
        second(cells)

    return change


# What is done, what is said of it.
HARMLESS = {
    "nothing": (lambda cells: None, ""),
    "setup deleted": (delete(SETUP), "The cell of imports was missing"),
    "text deleted": (delete(TEXT_1), "The text of exercise 1 was missing"),
    "check deleted": (delete(CHECK_1), "The check of exercise 1 was missing"),
    "last deleted": (delete(CHECK_3), "The check of exercise 3 was missing"),
    "check emptied": (edited(CHECK_1, "pass"), "exercise 1 was changed"),
    "check copied": (copied(CHECK_1), "The check of exercise 1 was there 2"),
    "check split": (split(CHECK_1, 1), "The check of exercise 1 was there 2"),
    "text copied to the end": (copied(TEXT_1, to=11), "exercise 1 was there 2"),
    "answer copied": (copied(CODE_1), "answer of exercise 1 was in 2 cells"),
    "answer split": (split(CODE_1, 2), "answer of exercise 1 was in 2 cells"),
    "answer below its stub": (
        both(edited(CODE_1, STUB), copied(CODE_1, RIGHT)),
        "answer of exercise 1 was in 2 cells",
    ),
    "stub below its answer": (copied(CODE_1, STUB), "was in 2 cells"),
    "a second attempt": (
        both(edited(CODE_1, "def f(x:"), copied(CODE_1, RIGHT, to=CHECK_1 + 1)),
        "answer of exercise 1 was in 2 cells",
    ),
    "answer deleted and rewritten": (
        unnamed(CODE_1),
        "The answer of exercise 1 was missing. What stood in its place was",
    ),
    "words deleted and rewritten": (
        unnamed(WORDS_2),
        "The answer of exercise 2 was missing. What stood in its place was",
    ),
    "answer after its check": (
        moved(CODE_1, CHECK_1),
        "The check of exercise 1 stood too early",
    ),
    "exercises in another order": (
        both(moved(TEXT_3, 1), both(moved(CODE_3, 2), moved(CHECK_3, 3))),
        "The text of exercise 3 stood too early",
    ),
    "check merged into its answer": (
        merged(CODE_1, CHECK_1),
        "The check of exercise 1 was missing",
    ),
    "answer merged into its check": (
        merged(CHECK_1, CODE_1),
        "The answer of exercise 1 was missing. What stood in its place was",
    ),
    "answer merged into its text": (
        merged(TEXT_1, CODE_1),
        "The answer of exercise 1 was missing. What stood in its place was",
    ),
    "text merged into its answer": (
        merged(CODE_1, TEXT_1),
        "The text of exercise 1 was missing",
    ),
    "all names lost": (unnamed(*range(1, 7), *range(8, 11)), "was missing"),
    "metadata spoilt": (
        lambda cells: cells[CHECK_1].metadata.nbgrader.update(
            {"points": 99, "locked": False, "schema_version": 0}
        ),
        "",
    ),
    "a name of another assignment": (
        lambda cells: cells.insert(
            3, cell("exercise-9", "code", "1", solution=True)
        ),
        "",
    ),
    "a name that is no name": (
        lambda cells: cells[0].metadata.update(nbgrader="x"),
        "",
    ),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_a_right_submission_stays_right_whatever_became_of_its_cells(case):
    change, sentence = HARMLESS[case]
    handed_in = answered()
    change(handed_in.cells)
    before = copy.deepcopy(handed_in)
    mended, said = mending.mend(handed_in, release())
    assert handed_in == before
    nbformat.validate(mended)
    names = [mending.name_of(x) for x in mended.cells]
    given = {mending.name_of(x): x for x in release().cells}
    assert [x for x in names if x] == [x for x in given if x]
    for made in mended.cells:
        name = mending.name_of(made)
        if name:
            assert made.metadata == given[name].metadata
            assert made.cell_type == given[name].cell_type
            if mending.is_locked(given[name]):
                assert made.source == given[name].source
    by_name = dict(zip(names, mended.cells, strict=True))
    assert by_name["exercise-2"].source == "Because."
    run = {}
    for made in mended.cells:
        if made.cell_type == "code" and made.metadata.get("nbgrader"):
            exec(made.source, run)
    wrote = [made.source.count("return 2 * x") for made in mended.cells]
    assert sum(wrote) == 1
    assert bool(said) == bool(sentence)
    assert sentence in " ".join(said)


@pytest.mark.parametrize(
    ("change", "name", "stub"),
    [
        (delete(CODE_1), "exercise-1", STUB),
        (delete(WORDS_2), "exercise-2", "*Yours:*"),
        (both(delete(CODE_1), delete(TEXT_1)), "exercise-1", STUB),
        (both(delete(WORDS_2), delete(TEXT_2)), "exercise-2", "*Yours:*"),
    ],
)
def test_an_answer_that_is_gone_costs_its_exercise_only(change, name, stub):
    handed_in = answered()
    change(handed_in.cells)
    mended, said = mending.mend(handed_in, release())
    sources = {mending.name_of(x): x.source for x in mended.cells}
    wanted = {mending.name_of(x): x.source for x in answered().cells}
    assert sources == wanted | {name: stub}
    assert "was missing. Nothing was taken for it." in " ".join(said)


def test_cells_of_the_student_stay_where_they_helped():
    handed_in = answered()
    own = [editions.code(f"helper_{i} = {i}") for i in range(3)]
    handed_in.cells.insert(CHECK_1, own[0])  # between the answer and its check
    handed_in.cells.insert(1, own[1])
    again = copy.deepcopy(handed_in.cells[CHECK_1 + 2])  # a copy made use of
    again.source = own[2].source
    handed_in.cells.append(again)
    mended, _ = mending.mend(handed_in, release())
    sources = [x.source for x in mended.cells]
    assert sources.count(CHECK) == 1
    for x in own:
        assert sources.count(x.source) == 1
    assert sources.index("helper_1 = 1") == 1
    assert sources[sources.index("helper_0 = 0") + 1] == CHECK
    assert sources[-1] == "helper_2 = 2"


def test_a_picture_in_an_answer_is_kept():
    handed_in = answered()
    picture = {"a.png": {"image/png": "iVBORw0KGgo="}}
    handed_in.cells[WORDS_2].attachments = picture
    mended, _ = mending.mend(handed_in, release())
    by_name = {mending.name_of(x): x for x in mended.cells}
    assert by_name["exercise-2"].attachments == picture


# Answers that stand elsewhere

WORDS = "MY WORDS: because the weights are equal."


def new_text(to, text=WORDS):
    return lambda cells: cells.insert(to, editions.prose(text))


def new_code(to, text):
    return lambda cells: cells.insert(to, editions.code(text))


STUB_2 = edited(WORDS_2, "*Yours:*")
ELSEWHERE = {
    "below its stub": (both(STUB_2, new_text(ROOM)), "beside it"),
    "above its stub": (both(STUB_2, new_text(WORDS_2)), "beside it"),
    "above its question": (both(STUB_2, new_text(TEXT_2)), "beside it"),
    "in the cell for code": (both(STUB_2, edited(ROOM, WORDS)), "beside it"),
    "in its question": (
        both(STUB_2, edited(TEXT_2, f"### Exercise 2\n\n{WORDS}")),
        "beside it",
    ),
    "at the end": (
        lambda cells: both(STUB_2, new_text(len(cells)))(cells),
        "elsewhere",
    ),
    "cell emptied": (
        both(edited(WORDS_2, ""), new_text(ROOM)),
        "beside it",
    ),
    "cell deleted, words in the cell for code": (
        both(edited(ROOM, WORDS), delete(WORDS_2)),
        "beside it",
    ),
}


@pytest.mark.parametrize("case", ELSEWHERE)
def test_words_that_stand_elsewhere_are_kept_and_read(case):
    change, where = ELSEWHERE[case]
    handed_in = answered()
    change(handed_in.cells)
    mended, said = mending.mend(handed_in, release())
    by_name = {mending.name_of(x): x for x in mended.cells}
    assert WORDS in by_name["exercise-2"].source
    assert (
        "Exercise 2 has no answer in its cell, but other text stands "
        f"{where}; read it." in said
    )


@pytest.mark.parametrize(
    "change",
    [
        STUB_2,
        both(STUB_2, edited(0, "# Exercises\n\nName: Ada")),
        both(STUB_2, new_code(CHECK_1, "helper = 1")),
        both(STUB_2, copied(TEXT_2)),
    ],
)
def test_an_answer_in_words_that_is_nowhere_waits_for_nobody(change):
    handed_in = answered()
    change(handed_in.cells)
    mended, said = mending.mend(handed_in, release())
    by_name = {mending.name_of(x): x for x in mended.cells}
    assert by_name["exercise-2"].source == "*Yours:*"
    assert "read it" not in " ".join(said)


def run(notebook):
    """The names after a run in which a cell that fails stops no other."""
    names = {}
    for made in notebook.cells:
        if made.cell_type == "code":
            try:
                exec(made.source, names)
            except AssertionError:
                raise
            except Exception as error:
                names["failed"] = error
    return names


STUB_1 = edited(CODE_1, STUB)
TAKEN = "Exercise 1 has no answer in its cell; the cell that defines `f` was "
FOUND = {
    "above its stub": both(STUB_1, new_code(CODE_1, RIGHT)),
    "below its check": both(STUB_1, new_code(CHECK_1 + 1, RIGHT)),
    "at the top": both(STUB_1, new_code(1, RIGHT)),
    "in another answer": both(STUB_1, edited(CODE_3, f"{RIGHT}\ng = 1")),
    "in its check": both(STUB_1, edited(CHECK_1, f"{RIGHT}\n\n{CHECK}")),
    "in its question": both(STUB_1, edited(TEXT_1, f"{TEXT}\n\n{RIGHT}")),
    "after its check, the cell deleted": both(
        new_code(CHECK_1 + 1, RIGHT), delete(CODE_1)
    ),
    "in a copy of another answer": both(STUB_1, copied(CODE_3, RIGHT)),
}


@pytest.mark.parametrize("case", FOUND)
def test_code_that_stands_elsewhere_is_taken_if_it_is_one_cell(case):
    handed_in = answered()
    FOUND[case](handed_in.cells)
    mended, said = mending.mend(handed_in, release())
    by_name = {mending.name_of(x): x for x in mended.cells}
    assert RIGHT in by_name["exercise-1"].source
    assert "failed" not in run(mended)
    assert TAKEN + "taken for it." in said
    assert "Nothing was taken" not in " ".join(said)


@pytest.mark.parametrize(
    "change",
    [
        both(new_code(CHECK_1 + 1, RIGHT), new_code(CODE_1, f"{RIGHT} + 1")),
        new_text(CODE_1, f"```python\n{RIGHT}\n```"),
        new_code(CODE_1, f"{RIGHT}\n  )"),
    ],
)
def test_code_that_cannot_be_taken_is_named(change):
    handed_in = answered()
    both(STUB_1, change)(handed_in.cells)
    mended, said = mending.mend(handed_in, release())
    by_name = {mending.name_of(x): x for x in mended.cells}
    assert by_name["exercise-1"].source == STUB
    assert said == [
        "Exercise 1 has no answer in its cell, but `f` is written elsewhere. "
        "It was not taken for the answer; look at it."
    ]


# Copies of answers


def test_a_copy_in_the_place_of_a_missing_answer_is_the_answer_there():
    for first, second in ((CODE_1, CODE_3), (CODE_3, CODE_1)):
        handed_in = answered()
        cells = handed_in.cells
        again = copy.deepcopy(cells[first])
        again.source = cells[second].source
        cells[second] = again
        mended, _ = mending.mend(handed_in, release())
        sources = {mending.name_of(x): x.source for x in mended.cells}
        wanted = {mending.name_of(x): x.source for x in answered().cells}
        assert sources == wanted


@pytest.mark.parametrize("stub", [False, True])
def test_a_copy_of_words_in_the_place_of_others_is_not_added_to_them(stub):
    """Of two exercises in words the second is answered in a copy."""
    given = release()
    for name, kind, source, flags in (
        ("exercise-4-text", "prose", "### Exercise 4", {"locked": True}),
        ("exercise-4", "prose", "*Yours:*", {"grade": True, "solution": True}),
    ):
        given.cells.append(cell(name, kind, source, **flags))
    handed_in = copy.deepcopy(given)
    handed_in.cells[WORDS_2].source = "Because."
    again = copy.deepcopy(handed_in.cells[WORDS_2])
    again.source = WORDS
    handed_in.cells[-1:] = [*handed_in.cells[-1:] * stub, again]
    mended, said = mending.mend(handed_in, given)
    by_name = {mending.name_of(x): x.source for x in mended.cells}
    assert by_name["exercise-2"] == "Because."
    assert WORDS in by_name["exercise-4"]
    assert stub == ("read it" in " ".join(said))


def test_blank_answers_that_lost_their_names_are_not_taken_for_others():
    given = release()
    for name, kind, source, flags in (
        ("exercise-4-text", "prose", "### Exercise 4", {"locked": True}),
        ("exercise-4", "prose", "*Yours:*", {"grade": True, "solution": True}),
    ):
        given.cells.append(cell(name, kind, source, **flags))
    handed_in = copy.deepcopy(given)
    handed_in.cells[-1].source = WORDS
    for made in handed_in.cells:
        made.metadata.pop("nbgrader", None)
    mended, _ = mending.mend(handed_in, given)
    by_name = {mending.name_of(x): x.source for x in mended.cells}
    assert by_name["exercise-2"] == "*Yours:*"
    assert by_name["exercise-4"] == WORDS


SCRATCH = {
    "before": copied(CODE_1, "print(undefined)", to=CODE_1),
    "after": copied(CODE_1, "print(undefined)"),
    "no Python": copied(CODE_1, "f(2", to=CODE_1),
    "before, without names": both(
        new_code(CODE_1, "print(undefined)"),
        lambda cells: [x.metadata.pop("nbgrader", None) for x in cells],
    ),
}


@pytest.mark.parametrize("case", SCRATCH)
def test_a_scratch_cell_that_fails_takes_no_answer_with_it(case):
    handed_in = answered()
    SCRATCH[case](handed_in.cells)
    mended, _ = mending.mend(handed_in, release())
    assert run(mended)["f"](2) == 4
    by_name = {mending.name_of(x): x.source for x in mended.cells}
    assert by_name["exercise-1"] == RIGHT


def test_a_second_attempt_in_the_place_of_another_exercise_still_counts():
    handed_in = answered()
    handed_in.cells[CODE_1].source = "def f(x):\n    return 5"
    copied(CODE_1, RIGHT, to=CODE_3)(handed_in.cells)
    handed_in.cells[CODE_3 + 1].source = "g = ..."
    mended, _ = mending.mend(handed_in, release())
    sources = [x.source for x in mended.cells]
    assert sources.index(RIGHT) < sources.index(CHECK)


def test_of_two_attempts_the_last_counts():
    handed_in = answered()
    copied(CODE_1, "def f(x):\n    return 5", to=CODE_1)(handed_in.cells)
    mended, _ = mending.mend(handed_in, release())
    assert run(mended)["f"](2) == 4
    # The cell that a reader grades is that one, too.
    by_name = {mending.name_of(x): x.source for x in mended.cells}
    assert by_name["exercise-1"] == RIGHT


# A release that was made anew


def released():
    return summed(release())


def summed(notebook):
    """A notebook as nbgrader releases it, with a sum in each of its cells."""
    utils = pytest.importorskip("nbgrader.utils")
    for made in notebook.cells:
        if mending.name_of(made):
            entry = made.metadata.nbgrader
            entry.update({"points": 5} if entry.grade else {})
            entry.checksum = utils.compute_checksum(made)
    return notebook


def test_what_a_teacher_edited_is_not_said_to_be_changed_by_a_student():
    new = released()
    new.cells[CHECK_1].source += "\nassert f(5) == 10"
    new.cells[TEXT_1].source += " Let it double."
    new.cells[CODE_1].source = "def f(x, y=0):\n    ...  # your code"
    new.cells[WORDS_2].source = "*Write here:*"
    new.cells[TEXT_2].source += "\n\nWhy?"
    handed_in = released()  # of which nothing was answered
    mended, said = mending.mend(handed_in, new)
    assert [x.source for x in mended.cells if mending.name_of(x)] == [
        x.source for x in new.cells if mending.name_of(x)
    ]
    anew = "was released anew after this notebook was handed out. The new one"
    assert [x.split(f" {anew} ")[0] for x in said] == [
        "The text of exercise 1",
        "The answer of exercise 1",
        "The check of exercise 1",
        "The text of exercise 2",
        "The answer of exercise 2",
    ]
    handed_in.cells[CHECK_1].source = "pass"
    _, said = mending.mend(handed_in, new)
    assert "The check of exercise 1 was changed, and was put back." in said


def test_an_exercise_that_a_teacher_took_away_is_no_text_of_a_student():
    handed_in, new = released(), released()
    del new.cells[TEXT_3:]
    handed_in.cells[CODE_3].source = "g = 1"
    handed_in.cells[WORDS_2].source = "Because."
    mended, said = mending.mend(handed_in, new)
    sources = [x.source for x in mended.cells]
    assert "### Exercise 3" not in sources and "g = 1" in sources
    assert said == []


# What is said in one sentence


def test_names_that_a_program_dropped_are_one_sentence():
    handed_in = answered()
    for made in handed_in.cells:
        made.metadata.pop("nbgrader", None)
    _, said = mending.mend(handed_in, release())
    assert said == [mending.UNNAMED]
    delete(CODE_3)(handed_in.cells)
    _, said = mending.mend(handed_in, release())
    assert said == [
        mending.UNNAMED,
        "The answer of exercise 3 was missing. Nothing was taken for it.",
    ]


@pytest.mark.parametrize("names", ["kept", "dropped", "with sums"])
def test_another_assignment_is_one_sentence(names):
    handed_in = answered()
    handed_in.cells[0].source = "# Exercises of chapter 02\n\nRead them."
    for place in (TEXT_1, TEXT_2, TEXT_3, CHECK_1, CHECK_3):
        handed_in.cells[place].source = f"Something else {place}"
    if names == "dropped":
        unnamed(*range(1, 7), *range(8, 11))(handed_in.cells)
    if names == "with sums":
        handed_in = summed(handed_in)
    _, said = mending.mend(handed_in, release())
    assert said[0] == (
        "This seems to be another assignment: none of its questions is one "
        "of this assignment. It begins with '# Exercises of chapter 02'."
    )
    assert not [x for x in said if "put back" in x or "anew" in x]


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize("names", ["kept", "dropped"])
def test_lines_that_end_as_on_windows_are_the_same_lines(end, names):
    handed_in = answered()
    for made in handed_in.cells if names == "dropped" else ():
        made.metadata.pop("nbgrader", None)
    wanted, _ = mending.mend(handed_in, release())
    for made in handed_in.cells:
        made.source = made.source.replace("\n", end)
    before = copy.deepcopy(handed_in)
    found, said = mending.mend(handed_in, release())
    assert said == [mending.UNNAMED] * (names == "dropped")
    assert handed_in == before
    assert [x.source for x in found.cells] == [x.source for x in wanted.cells]


def test_a_check_that_was_changed_where_names_were_dropped_is_still_named():
    handed_in = answered()
    handed_in.cells[CHECK_1].source = "pass"
    unnamed(*range(1, 7), *range(8, 11))(handed_in.cells)
    _, said = mending.mend(handed_in, release())
    assert "The check of exercise 1 was missing, and was put back." in said
