"""The editions for students and teachers, and the progress of a reader."""

import os
import random
import re
import subprocess
import sys
from xml.etree import ElementTree

from course import assignment, build, editions, exams, handouts, progress
from nbclient import NotebookClient
import nbformat
import pytest

SOURCES = build.sources([])
CHAPTERS = {source.stem: editions.read_chapter(source) for source in SOURCES}
IDS = list(CHAPTERS)
SHORT = "03_masked_softmax"  # takes a few seconds to run


def published(name):
    return nbformat.read(editions.NOTEBOOKS / f"{name}.ipynb", as_version=4)


def lines(text):
    """The lines of a text that say something."""
    return {x.strip() for x in text.splitlines() if len(x.strip()) > 12}


def texts(notebook):
    return "\n".join(cell.source for cell in notebook.cells)


def exercises_of(notebook):
    text = texts(notebook)
    return text[text.index("\n## Exercises") :]


@pytest.mark.parametrize("name", IDS)
def test_no_exercise_is_lost(name):
    chapter = CHAPTERS[name]
    numbers = [exercise.number for exercise in chapter.exercises]
    assert numbers == list(range(1, len(numbers) + 1))
    source = (build.FOLDER / "source" / f"{name}.md").read_text("utf-8")
    assert source.count("tags: [exercise") == sum(
        bool(exercise.code) for exercise in chapter.exercises
    )
    for exercise in chapter.exercises:
        assert exercise.asks
        assert bool(exercise.code) == bool(exercise.checks)


@pytest.mark.parametrize("name", IDS)
def test_students_get_no_solution_and_no_answer(name):
    chapter = CHAPTERS[name]
    made = editions.student(chapter, published(name))
    assert not any("solution" in cell.metadata for cell in made.cells)
    found = exercises_of(made)
    assert "<details>" not in found and "BEGIN" not in found
    whole = lines(texts(made))
    for exercise in chapter.exercises:
        given = exercise.stub + "".join(exercise.checks)
        secret = lines(exercise.solution) - lines(given)
        assert not secret & lines(found)
        assert not secret or not secret <= whole  # nor put together before
        for answer in exercise.answers:
            assert not lines(answer) & lines(found)
        assert f"*{exercise.points} points" in found


@pytest.mark.parametrize("name", IDS)
def test_students_get_the_rest_of_the_chapter_with_its_outputs(name):
    made = editions.student(CHAPTERS[name], published(name))
    nbformat.validate(made)
    ours, theirs = (
        [cell for cell in notebook.cells if cell.get("outputs")]
        for notebook in (made, published(name))
    )
    assert [x.outputs for x in ours] == [x.outputs for x in theirs]
    asked = [c for c in made.cells if "exercise" in c.metadata.get("tags", [])]
    coded = [x for x in CHAPTERS[name].exercises if x.code]
    assert [cell.source for cell in asked] == [x.stub for x in coded]


@pytest.mark.parametrize(
    "name", IDS if os.environ.get("COURSE_CHAPTERS") == "all" else [SHORT]
)
def test_the_edition_without_claims_runs_and_prints_the_same(name):
    built = published(name)
    made = editions.student(CHAPTERS[name], built)
    assert not any("claims" in x.metadata.get("tags", []) for x in made.cells)
    NotebookClient(
        made,
        timeout=600,
        coalesce_streams=True,
        skip_cells_with_tag="nbval-skip",
        resources={"metadata": {"path": str(editions.NOTEBOOKS)}},
    ).execute()
    now, then = (
        [
            "".join(output.get("text", "") for output in cell.outputs)
            for cell in notebook.cells
            if cell.cell_type == "code"
            and not {"claims", *editions.SKIPPED, "nbval-ignore-output"}
            & {*cell.metadata.get("tags", [])}
        ]
        for notebook in (made, built)
    )
    assert now == then and any(now)


@pytest.mark.parametrize("name", IDS)
def test_teachers_get_solutions_answers_rubrics_and_slips(name):
    chapter = CHAPTERS[name]
    made = editions.instructor(chapter, published(name))
    nbformat.validate(made)
    found = exercises_of(made)
    rubrics = exams.rubrics(name)
    for exercise in chapter.exercises:
        assert exercise.solution in found
        assert exercise.hidden in found
        assert all(answer in found for answer in exercise.answers)
        for _, answer, message in chapter.slips.get(exercise.number, []):
            assert answer in found and message in found
        for _, gives in rubrics.get(exercise.number, []):
            assert gives in found


def test_slips_are_the_wrong_answers():
    text = (editions.WRONG / "06_multi_head.py").read_text("utf-8")
    slips = CHAPTERS["06_multi_head"].slips
    right = text.count("| right\n")
    assert sum(map(len, slips.values())) == text.count("# %% exercise") - right
    why, answer, message = slips[2][0]
    assert why == "Every H-th row of W_o is taken for a head's."
    assert answer.startswith("def contributions")
    assert message == "do not sum to the output"


def test_a_check_before_its_exercise_is_refused(tmp_path):
    source = tmp_path / "01_x.md"
    source.write_text(
        "# 01. X\n\n+++\n\n## Exercises\n\n### Exercise 1\n\nAsk.\n\n"
        "```{code-cell}\n:tags: [check]\nassert f()\n```\n"
    )
    with pytest.raises(ValueError, match="01_x: a check stands before"):
        editions.read_chapter(source)


@pytest.mark.parametrize("tag", ["exercise", "hidden"])
def test_a_second_answer_or_hidden_check_is_refused(tmp_path, tag):
    source = tmp_path / "01_x.md"
    cell = "```{{code-cell}}\n:tags: [{}]\nf = g\n```\n\n"
    source.write_text(
        "# 01. X\n\n+++\n\n## Exercises\n\n### Exercise 1\n\nAsk.\n\n"
        + cell.format("exercise")
        + 2 * cell.format(tag)
    )
    with pytest.raises(ValueError, match="exercise 1 has two cells tagged"):
        editions.read_chapter(source)


def test_an_assignment_refused_leaves_nothing_behind(tmp_path):
    chapter = CHAPTERS["06_multi_head"]
    path = tmp_path / "source" / "06_exercises" / "06_exercises.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    with pytest.raises(ValueError, match="Nothing was written"):
        assignment.write(tmp_path, [chapter])
    assert [x.name for x in tmp_path.iterdir()] == ["source"]
    assert path.read_text() == "mine"


# What nbgrader is given


def cells_of(notebook, key):
    return {
        c.metadata.nbgrader.grade_id: c
        for c in notebook.cells
        if c.metadata.get("nbgrader", {}).get(key)
    }


@pytest.mark.parametrize("name", IDS)
def test_an_assignment_has_its_points_and_names_its_cells_once(name):
    chapter = CHAPTERS[name]
    made = assignment.assignment(chapter, "a seed")
    nbformat.validate(made)
    marked = [c for c in made.cells if "nbgrader" in c.metadata]
    names = [c.metadata.nbgrader.grade_id for c in marked]
    assert len(set(names)) == len(names)
    graded = cells_of(made, "grade").values()
    points = sum(c.metadata.nbgrader.points for c in graded)
    assert points == sum(exercise.points for exercise in chapter.exercises)
    assert set(cells_of(made, "locked")) >= set(cells_of(made, "grade")) - {
        f"exercise-{x.number}" for x in chapter.exercises if not x.code
    }


@pytest.mark.parametrize("name", IDS)
def test_an_exercise_in_words_has_room_for_code(name):
    """Half of them ask to train, to count or to plot. No points hang on it."""
    cells = assignment.assignment(CHAPTERS[name], "a seed").cells
    names = [c.metadata.get("nbgrader", {}).get("grade_id") for c in cells]
    for exercise in CHAPTERS[name].exercises:
        answer = names.index(f"exercise-{exercise.number}")
        below = cells[answer + 1]
        assert below.cell_type == "code"
        assert bool(exercise.code) == ("nbgrader" in below.metadata)


def hidden_cells(name, seed):
    made = assignment.assignment(CHAPTERS[name], seed)
    return "\n".join(c.source for c in made.cells if "HIDDEN" in c.source)


def test_another_seed_gives_other_hidden_checks():
    chapter = CHAPTERS["06_multi_head"]
    assert hidden_cells(chapter.name, "a") == hidden_cells(chapter.name, "a")
    ours, theirs = (
        re.findall(
            r"^ *rng = .*\((\d+)\)$", hidden_cells(chapter.name, x), re.M
        )
        for x in "ab"
    )
    coded = [x for x in chapter.exercises if x.code]
    assert len(set(ours)) == len(set(theirs)) == len(coded)
    assert not set(ours) & set(theirs)


def test_a_course_keeps_what_a_teacher_changed(tmp_path):
    chapter = CHAPTERS["06_multi_head"]
    assignment.write(tmp_path, [chapter])
    path = tmp_path / "source" / "06_exercises" / "06_exercises.ipynb"
    first, config = path.read_text("utf-8"), tmp_path / "nbgrader_config.py"
    config.write_text("# mine\n")
    assignment.write(tmp_path, [chapter])
    assert path.read_text("utf-8") == first
    assert config.read_text() == "# mine\n"
    path.write_text("mine")
    with pytest.raises(ValueError, match="is there, and different"):
        assignment.write(tmp_path, [chapter])
    assert path.read_text() == "mine"
    assignment.write(tmp_path, [chapter], force=True)
    assert path.read_text("utf-8") == first


def test_a_course_has_one_seed(tmp_path):
    """Another one would check some students unlike the others."""
    chapters = [CHAPTERS["06_multi_head"], CHAPTERS["03_masked_softmax"]]
    folder, mine = tmp_path / "course", tmp_path / "mine.txt"
    mine.write_text("a seed\n")
    assignment.write(folder, chapters[:1], mine)
    assert (folder / "seed.txt").read_text("utf-8").strip() == "a seed"
    assignment.write(folder, chapters[1:])
    for chapter in chapters:
        name = assignment.name_of(chapter)
        made = folder / "source" / name / f"{name}.ipynb"
        assert made.read_text("utf-8").strip() == nbformat.writes(
            assignment.assignment(chapter, "a seed")
        )
    assignment.write(folder, chapters, mine)  # the same seed once more
    other = tmp_path / "other.txt"
    for force in (False, True):
        other.write_text("next year\n")
        with pytest.raises(ValueError, match="other.txt holds another seed"):
            assignment.write(folder, chapters, other, force=force)
    other.write_text(" \n")
    with pytest.raises(ValueError, match="other.txt is empty"):
        assignment.write(folder, chapters, other)
    assert (folder / "seed.txt").read_text("utf-8").strip() == "a seed"


def test_an_assignment_may_be_a_part_of_a_chapter():
    (chapter,) = handouts.choose(["08.3", "08.4"], build.sources(["08"]))
    assert [exercise.number for exercise in chapter.exercises] == [3, 4]
    (whole,) = handouts.choose(["06"], build.sources(["06"]))
    assert len(whole.exercises) == 6


def test_the_page_on_writing_an_exercise_shows_one_that_can_be_graded(
    tmp_path, monkeypatch
):
    """Its source, rubric and wrong answers, from the page to the points."""
    page = build.FOLDER.parent / "docs" / "teaching" / "exercises.md"
    fenced = r"^(`{3,4})(markdown|toml|python)\n(.*?)^\1$"
    blocks = re.findall(fenced, page.read_text("utf-8"), re.M | re.S)
    kinds = {"markdown": ".md", "toml": ".toml", "python": ".py"}
    assert [kind for _, kind, _ in blocks] == list(kinds)
    for _, kind, text in blocks:
        (tmp_path / f"99_example{kinds[kind]}").write_text(text, "utf-8")
    monkeypatch.setattr(exams, "FOLDER", tmp_path)
    monkeypatch.setattr(editions, "WRONG", tmp_path)
    chapter = editions.read_chapter(tmp_path / "99_example.md")
    coded, words = chapter.exercises
    assert assignment.shortcomings(chapter) == []
    items = exams.rubrics(chapter.name)[words.number]
    assert sum(points for points, _ in items) == words.points
    for seed in ("a seed", "another", "a third"):
        made = assignment.assignment(chapter, seed)
        cells = cells_of(made, "grade_id")
        check, names = cells["exercise-1-check"].source, {}
        for name in ("setup", "exercise-1", "exercise-1-check"):
            exec(cells[name].source, names)
        with pytest.raises(AssertionError):
            exec(f"{coded.stub}\n{check}", names)
        for _, answer, message in chapter.slips[1]:
            with pytest.raises(AssertionError, match=message):
                exec(f"{answer}\n{check}", names)
            _, hidden = check.split("### BEGIN HIDDEN TESTS")
            with pytest.raises(AssertionError, match="^largest_weight: "):
                exec(f"{answer}\n{hidden}", names)


def test_what_an_assignment_lacks_is_said():
    exercise = editions.Exercise(1, "x", "●", code="f()", checks=["g()"])
    words = editions.Exercise(2, "y", "●")
    chapter = editions.Chapter("99_none", "None", "", [exercise, words])
    bare, loose = assignment.shortcomings(chapter)
    assert bare.startswith("99_none: exercises 1 have no hidden check.")
    assert loose.startswith("99_none: exercises 2 have no rubric")


# Questions

ASKED = [name for name in IDS if exams.read(name)["question"]]


@pytest.mark.parametrize("name", ASKED)
def test_a_chapter_has_ten_questions_whose_slips_are_named(name):
    asked = exams.read(name)["question"]
    assert len(asked) == 10
    assert len({question["asks"] for question in asked}) == 10
    longest = 0
    for question in asked:
        assert question["why"].strip()
        answers = [question["right"], *(w["answer"] for w in question["wrong"])]
        assert len(set(answers)) == len(answers) == 4
        assert all(w["believes"].strip() for w in question["wrong"])
        longest += max(answers, key=len) == question["right"]
    assert longest <= 5, "the right answer must not stand out"


@pytest.mark.parametrize("name", ASKED)
def test_a_rubric_gives_the_points_of_its_exercise(name):
    rubrics = exams.rubrics(name)
    words = {x.number: x for x in CHAPTERS[name].exercises if not x.code}
    assert rubrics.keys() == words.keys()
    for number, rows in rubrics.items():
        assert sum(points for points, _ in rows) == words[number].points


def test_moodle_gets_every_question_with_one_right_answer():
    root = ElementTree.fromstring(exams.moodle(ASKED))
    asked = root.findall("question[@type='multichoice']")
    assert len(asked) == 10 * len(ASKED)
    assert len(root.findall("question[@type='category']")) == len(ASKED)
    for question in asked:
        fractions = [x.get("fraction") for x in question.findall("answer")]
        assert fractions == ["100", "0", "0", "0"]
        assert "$" not in question.find("questiontext/text").text


def test_formulas_reach_the_page_as_they_are():
    found = exams.to_html("Is $a_1 < b_2$ or `$x_1$` *so*?")
    assert r"\(a_1 &lt; b_2\)" in found
    assert "<code>$x_1$</code>" in found and "<em>so</em>" in found


def draw(seed="seed", title="Midterm", number=12, **options):
    drawn = exams.draw(ASKED, seed, title, number, **options)
    return [question["asks"] for _, _, question in drawn]


def test_an_exam_is_drawn_by_its_seed():
    asked = draw()
    assert len(set(asked)) == 12
    assert draw() == asked
    assert set(draw(seed="other")) != set(asked)
    assert set(draw(title="Final")) != set(asked)
    everything = 10 * len(ASKED)
    first = exams.draw(ASKED, "seed", "Midterm", 12)
    rest = draw(number=everything - 12, without=first)
    assert not set(rest) & set(asked)
    with pytest.raises(ValueError, match="Midterm: there are .* and 999 were"):
        draw(number=999)


def test_versions_of_an_exam_ask_the_same_in_another_order():
    drawn = exams.draw(ASKED, "seed", "Midterm", 12)
    versions = [exams.exam(drawn, "seed", "Midterm", x) for x in "AB"]
    parts = [asked.split("## Question")[1:] for asked, _ in versions]
    stems = [
        [re.sub(r"\n- [A-D].*", "", x)[3:].strip() for x in p] for p in parts
    ]
    assert sorted(stems[0]) == sorted(stems[1]) and stems[0] != stems[1]
    rights = {question["right"] for _, _, question in drawn}
    for asked, answers in versions:
        key = re.findall(r"^\d+\. \*\*([A-D])\*\*", answers, re.MULTILINE)
        assert len(set(key)) > 1
        for letter, part in zip(key, asked.split("## Q")[1:], strict=True):
            option = part.split(f"\n- {letter}. ")[1].split("\n- ")[0].strip()
            assert option in rights


def test_teachers_get_exams_and_a_file_for_moodle(tmp_path):
    seed = tmp_path / "seed.txt"
    seed.write_text("mine")
    editions.save(handouts.questions_files(tmp_path, IDS, seed))
    assert {path.name for path in tmp_path.iterdir()} == {
        "seed.txt",
        "questions.xml",
        "tex-svg.js",
        *(
            f"{exam}_{version}{answers}.{kind}"
            for exam in ("midterm", "final")
            for version in "ab"
            for answers in ("", "_answers")
            for kind in ("md", "html")
        ),
    }
    drawn = [
        (tmp_path / f"{exam}_a.md").read_text("utf-8")
        for exam in ("midterm", "final")
    ]
    believed = [
        w["believes"]
        for n in ASKED
        for q in exams.read(n)["question"]
        for w in q["wrong"]
    ]
    assert not any(x in exam for x in believed for exam in drawn)
    asked = [set(re.findall(r"^\w.{40,}", x, re.MULTILINE)) for x in drawn]
    assert not asked[0] & asked[1]


def test_what_cannot_be_made_is_said_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", [])
    seed = tmp_path / "seed.txt"
    seed.write_text("mine")
    exam = ("exam", tmp_path / "e", "--seed", seed)
    for arguments, said in (
        (
            ("exam", tmp_path, "--seed", tmp_path / "no"),
            "There is no seed file",
        ),
        (("assignment", tmp_path / "c", "08.9"), "exercises 1, 2, 3, 4, 5, 6."),
        (("assignment", tmp_path / "c", "08."), "Received: 08."),
        (("assignment", tmp_path / "c", "../x"), "No chapter is '../x'"),
        ((*exam, "01", "99x"), "No chapter is '99x'"),
        (("student", seed, "01"), "seed.txt"),
        ((*exam, "--title", "../."), "needs a letter or a digit"),
        ((*exam, "--number", "0"), "at least one question. Received: 0."),
    ):
        with pytest.raises(SystemExit, match=re.escape(said)):
            make(tmp_path, *arguments)
    assert [path.name for path in tmp_path.iterdir()] == ["seed.txt"]


def test_the_command_line_ends_with_that_line_and_no_traceback(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "course.build", "student", tmp_path, "99x"],
        capture_output=True,
        text=True,
        cwd=build.FOLDER.parent,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("No chapter is '99x'")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ["2", "02", "02_kernel_regression"])
def test_a_chapter_is_named_by_its_number_or_in_full(name):
    (source,) = build.sources([name])
    assert source.stem == "02_kernel_regression"
    (chapter,) = handouts.choose([f"{name}.3"], [source])
    assert [exercise.number for exercise in chapter.exercises] == [3]
    assert {path.name[:3] for path in build.scripts([source])} == {"02_"}


@pytest.mark.parametrize("name", ["99", "0", "06_m", "_", "8.3", "002", ""])
def test_a_name_of_no_chapter_is_refused_beside_one_that_is(name):
    with pytest.raises(SystemExit, match=re.escape(f"No chapter is {name!r}")):
        build.sources(["01", name])


COMMANDS = ("check", "draw", *handouts.COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_refuses_a_name_of_no_chapter(
    command, tmp_path, monkeypatch
):
    seed = tmp_path / "seed.txt"
    seed.write_text("mine")
    out = [tmp_path / "out"] * (command in handouts.COMMANDS)
    options = ["--seed", seed] * (command == "exam")
    arguments = ["build.py", command, *out, "01", "9x", *options]
    monkeypatch.setattr(sys, "argv", list(map(str, arguments)))
    with pytest.raises(SystemExit, match="No chapter is '9x'"):
        build.main()
    assert not (tmp_path / "out").exists()


def test_a_whole_chapter_and_one_of_its_exercises_is_the_whole_chapter():
    (chapter,) = handouts.choose(["08.3", "08"], build.sources(["08"]))
    assert len(chapter.exercises) > 1


@pytest.mark.parametrize("command", handouts.COMMANDS)
def test_nothing_of_a_course_is_written_into_the_repository(
    command, tmp_path, monkeypatch, capsys
):
    """A commit would publish seeds, solutions and exams."""
    seed = tmp_path / "seed.txt"
    seed.write_text("mine")
    link = tmp_path / "link"
    link.symlink_to(build.FOLDER)
    clone = tmp_path / "clone"  # another one, perhaps of another name
    (clone / "course" / "source").mkdir(parents=True)
    (clone / "course" / "build.py").touch()
    inside = [
        build.FOLDER.parent / "mine",
        link / "mine",
        clone / "deep" / "mine",
        clone,
    ]
    seedless = command in ("student", "slides")
    options = [] if seedless else ["--seed", seed]
    refused = [[out, "01", *options] for out in inside]
    if options:
        refused.append([tmp_path / "out", "01", "--seed", inside[0]])
    for arguments in refused:
        arguments = ["build.py", command, *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", arguments)
        with pytest.raises(SystemExit):
            build.main()
        assert "lies in the repository" in capsys.readouterr().err
    assert not any(out.exists() for out in inside[:-1])
    assert not (tmp_path / "out").exists()


def test_an_assignment_is_named_with_what_comes_next(tmp_path, capsys):
    make(tmp_path, "assignment", tmp_path / "course", "--force", "06", "03")
    said = capsys.readouterr().out
    for name in ("06_exercises", "03_exercises"):
        assert f"{name}.ipynb is written" in said
        assert f"nbgrader generate_assignment {name} --create" in said


def test_a_tilde_is_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    arguments = ["build.py", "assignment", "~/course", "01"]
    monkeypatch.setattr(sys, "argv", arguments)
    build.main()
    assert [path.name for path in tmp_path.iterdir()] == ["course"]


def make(tmp_path, *arguments):
    """Carry out a command of a course as the command line does."""
    sys.argv = ["build.py", *map(str, arguments)]
    build.main()


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Midterm 2026/27", "midterm_2026_27"),
        ("../evil", "evil"),
        ("Prüfung: 1. Teil", "prüfung_1_teil"),
        ('a\\b "c" <d>', "a_b_c_d"),
    ],
)
def test_a_title_stays_in_the_text_and_names_its_files(
    title, name, tmp_path, monkeypatch
):
    monkeypatch.setattr(sys, "argv", [])
    seed = tmp_path / "seed.txt"
    seed.write_text("mine")
    out = tmp_path / "a" / "b"
    make(tmp_path, "exam", out, "01", "--number", 2, "--seed", seed,
         "--title", title)  # fmt: skip
    assert {path.name for path in out.iterdir()} == {
        "tex-svg.js",
        *(
            f"{name}_{version}{answers}.{kind}"
            for version in "ab"
            for answers in ("", "_answers")
            for kind in ("md", "html")
        ),
    }
    text = (out / f"{name}_a.md").read_text("utf-8")
    assert text.startswith(f"# {title}, version A\n")
    assert not list(tmp_path.glob("*.md")) + list(out.parent.glob("*.md"))


@pytest.mark.parametrize("command", ["student", "instructor", "exam"])
def test_what_is_there_and_different_is_not_overwritten(
    command, tmp_path, monkeypatch
):
    """Such as an exam of another title, or a notebook that was filled in."""
    monkeypatch.setattr(sys, "argv", [])
    seed = tmp_path / "seed.txt"
    seed.write_text("mine")
    seedless = command in ("student", "slides")
    options = [] if seedless else ["--seed", seed]
    if command == "exam":
        options += ["--title", "Midterm 1", "--number", 2]
    arguments = [command, tmp_path / "out", "01", *options]
    make(tmp_path, *arguments)
    make(tmp_path, *arguments)  # the same again is no loss
    first = {x: x.read_bytes() for x in (tmp_path / "out").iterdir()}
    changed = min(first)
    changed.write_text("mine")
    with pytest.raises(SystemExit, match=f"{changed.name} is there, and diff"):
        make(tmp_path, *arguments)
    now = {x: x.read_bytes() for x in (tmp_path / "out").iterdir()}
    assert now == first | {changed: b"mine"}
    make(tmp_path, *arguments, "--force")
    assert changed.read_bytes() == first[changed]
    if command == "exam":
        options[options.index("Midterm 1")] = "Midterm/1"
        with pytest.raises(SystemExit, match="Nothing was written"):
            make(tmp_path, command, tmp_path / "out", "01", *options)


# Progress


def test_progress_tells_solved_wrong_and_untouched_apart():
    chapter = CHAPTERS["06_multi_head"]
    notebook = editions.student(chapter, published(chapter.name))
    wrong = chapter.slips[2][0]
    for cell in notebook.cells:
        if cell.source == chapter.exercises[1].stub:
            cell.source = wrong[1]
        if cell.source == chapter.exercises[2].stub:
            cell.source = chapter.exercises[2].solution
    found = progress.progress(chapter, notebook)
    assert found.keys() == {2, 3, 4}
    assert wrong[2] in found[2]
    assert found[3] == "" and found[4] is None
    first, *others = progress.report(chapter, found)
    assert first == "06 Multi-head attention: 1 of 3 solved"
    assert len(others) == 2


def test_what_says_what_is_solved_is_no_answer():
    chapter = CHAPTERS["06_multi_head"]
    chapter.exercises, every = chapter.exercises[:4], chapter.exercises
    notebook = editions.student(chapter, published(chapter.name))
    chapter.exercises = every
    assert "show_solved()" in notebook.cells[-1].source
    assert progress.answers(notebook)[4] == every[3].stub


def test_an_answer_that_ends_or_never_ends_stops_no_other():
    stubs = (
        "def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION\n"
    )
    answers = {
        1: "import os\ndef f():\n    os._exit(0)",
        2: "def f():\n    while True:\n        pass",
        3: "def f():\n    return 1",
        4: "def f(:",
        5: "def f():\n    return 2",  # which a check without words refuses
    }
    exercises = [
        editions.Exercise(n, "x", "●", code=stubs, checks=["assert f() == 1"])
        for n in answers
    ]
    chapter = editions.Chapter("99_x", "X", "", exercises)
    cells = []
    for number, answer in answers.items():
        cells.append(editions.prose(f"### Exercise {number}: x ●"))
        cells.append(editions.code(answer, "exercise"))
        cells.append(editions.code("assert False", "check"))
    found = progress.progress(chapter, editions.notebook(cells), limit=6)
    assert found[1] == found[2] == "it ended its process, or took over 6 s"
    assert found[3] == ""
    assert "SyntaxError" in found[4]
    assert found[5] == "its check fails"


def test_progress_in_an_empty_folder_is_said_in_a_line(tmp_path):
    run = subprocess.run(
        [sys.executable, "-m", "course.progress", tmp_path],
        capture_output=True,
        text=True,
        cwd=build.FOLDER.parent,
    )
    assert run.returncode == 1
    assert run.stderr.startswith("No notebook of the course lies in")


def test_chances_come_from_the_seed_alone():
    random.seed(1)
    first = exams.generator("seed", 1).random()
    random.seed(2)
    assert exams.generator("seed", 1).random() == first
    assert exams.generator("seed", 2).random() != first


def test_the_plans_set_exercises_that_are_there():
    coded = {
        (chapter.number, exercise.number): bool(exercise.code)
        for chapter in CHAPTERS.values()
        for exercise in chapter.exercises
    }
    plans = (build.FOLDER.parent / "docs/teaching/plans.md").read_text("utf-8")
    set_at_all = re.findall(r"\b(\d\d)\.(\d)\b", plans)
    assert len(set_at_all) > 50
    assert {(name, int(number)) for name, number in set_at_all} <= coded.keys()
    for line in re.findall(r"^\| \d+ \|.*", plans, re.MULTILINE):
        *_, code, words = line.strip("| ").split(" | ")
        if line.count(" | ") == 4:  # the ten weeks
            for cell, kind in ((code, True), (words, False)):
                for name, number in re.findall(r"(\d\d)\.(\d)", cell):
                    assert coded[name, int(number)] is kind


def test_the_plans_and_the_pages_agree_what_is_done_at_home():
    folder = build.FOLDER.parent / "docs/teaching"
    home = {}
    each = re.compile(r"(?<![\d.])(\d)(?= \(| and \d| or \d|, \d)")
    for page in folder.glob("chapters/*.md"):
        _, _, text = page.read_text("utf-8").partition("## Exercises to set\n")
        for line in re.findall(r"^- .*", text, re.MULTILINE):
            where, _, listed = line[2:].partition(": ")
            for number in each.findall(listed):
                home[page.name[:2], number] = where
    plans = (folder / "plans.md").read_text("utf-8")
    checked = 0
    for line in re.findall(r"^\| \d+ \|.*", plans, re.MULTILINE):
        _, _, lab, *hand_in = [*line.strip("| ").split(" | "), "", ""]
        for cell, place in ((lab, "Lab"), (" ".join(hand_in), "Home")):
            for exercise in re.findall(r"(\d\d)\.(\d)", cell):
                assert home[exercise].startswith(place), (line, exercise)
                checked += 1
    assert checked > 50


def test_a_question_in_words_of_a_coded_exercise_has_a_place():
    for chapter in CHAPTERS.values():
        for exercise in chapter.exercises:
            asks = exercise.code and exercise.answers
            assert ("is for yourself" in exercise.question()) == bool(asks)


def test_questions_by_their_numbers_are_slides(tmp_path):
    out = tmp_path / "lecture"
    command = [sys.executable, "-m", "course.build", "slides", out]

    def run(*names):
        return subprocess.run(
            [*command, *names], capture_output=True, text=True
        )

    assert run("07.3", "06.1").returncode == 0
    page = (out / "questions.html").read_text("utf-8")
    assert page.index("07, question 3") < page.index("06, question 1")
    assert run("06.1", "07.3", "06.1", "--force").returncode == 0
    page = (out / "questions.html").read_text("utf-8")
    assert (out / "tex-svg.js").exists()
    assert page.count("<section>") == 4
    for name, number in (("06_multi_head", 1), ("07_positional_encoding", 3)):
        question = exams.read(name)["question"][number - 1]
        asked, told = page.split(f"<h2>{name[:2]}, question {number}")[1:]
        assert exams.to_html(question["asks"]).strip() in asked
        answers = [question["right"], *(w["answer"] for w in question["wrong"])]
        for answer in answers:
            assert exams.to_html(answer)[3:-5] in asked
        right = told.partition("</strong>")[2].partition("</p>")[0]
        assert right.strip() == exams.to_html(question["right"])[3:-5]
        letter = re.search(r"<strong>([A-D])\.", told)[1]
        listed = asked.partition(f"<strong>{letter}.</strong>")[2]
        assert listed.strip().startswith(right.strip())
        for wrong in question["wrong"]:
            assert exams.to_html(wrong["believes"])[3:-5] in told
    for wrong in ("06.11", "06.²", "06."):
        told = run(wrong)
        assert told.returncode == 1
        assert f"questions 1 to 10. Received: {wrong}" in told.stderr
    assert run("06", "--force").returncode == 0
    page = (out / "questions.html").read_text("utf-8")
    assert page.count("<section>") == 20
