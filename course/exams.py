"""Concept questions and rubrics, exported to Moodle, drawn into exams.

The data lie in `course/questions/NN_name.toml`:

    [[question]]
    asks = "…"             # Markdown, formulas between $
    right = "…"
    why = "…"
    [[question.wrong]]     # three of them
    answer = "…"
    believes = "…"         # the misconception behind it

    [[rubric]]
    exercise = 1           # a question of the chapter that is no code
    [[rubric.item]]
    points = 4
    gives = "…"
"""

import hashlib
import html
from pathlib import Path
import random
import re
import tomllib
from xml.etree import ElementTree

from markdown_it import MarkdownIt

FOLDER = Path(__file__).parent / "questions"
FORMULA = re.compile(r"\$([^$\n]+)\$")
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
LETTERS = "ABCD"
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>{title}</title>
<script src="tex-svg.js" async></script>
<style>
body {{ font: 12pt/1.5 serif; max-width: 42em; margin: 2em auto; }}
h2 {{ font-size: 1em; margin-top: 2em; }}
h2, h2 + p, li {{ break-inside: avoid; break-after: avoid; }}
ul {{ list-style: none; }} pre {{ background: #f4f4f4; padding: .5em; }}
td, th {{ border: 1px solid #999; padding: .2em .6em; }}
table {{ border-collapse: collapse; }}
</style>
{body}
</html>
"""
SLIDES = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Questions</title>
<meta name="viewport" content="width=device-width">
<script src="tex-svg.js" async></script>
<style>
html {{ scroll-snap-type: y proximity; color-scheme: light dark; }}
body {{ font: min(1.6rem, 2.8vh)/1.4 sans-serif; margin: 0; }}
section {{ box-sizing: border-box; min-height: 100vh; padding: 4vh 8vw;
  scroll-snap-align: start; break-after: page; }}
ul {{ list-style: none; padding: 0; }} li {{ margin: .6em 0; }}
@media (max-width: 40em) {{ body {{ font-size: 1.1rem; }} }}
h2 {{ font-size: 1rem; font-weight: normal; }}
pre, code {{ overflow-x: auto; }}
td, th {{ border: 1px solid; padding: .2em .6em; }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; }}
</style>
{body}
</html>
"""


def read(name):
    """The questions and rubrics of a chapter, such as `06_multi_head`."""
    path = FOLDER / f"{name}.toml"
    if not path.exists():
        return {"question": [], "rubric": []}
    content = tomllib.loads(path.read_text("utf-8"))
    return {"question": [], "rubric": []} | content


def rubrics(name):
    """Dict of exercise number → list of (points, what they are given for)."""
    return {
        rubric["exercise"]: [(x["points"], x["gives"]) for x in rubric["item"]]
        for rubric in read(name)["rubric"]
    }


def generator(seed, *purpose):
    """Random numbers for one purpose, from the text that a teacher keeps."""
    text = "\n".join([seed, *map(str, purpose)])
    return random.Random(hashlib.sha256(text.encode()).hexdigest())


def read_seed(path):
    """The text of a seed file.

    Raises:
        ValueError: If the file is missing or empty.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(
            f"There is no seed file {path}. Make one that holds a text which "
            "nobody else knows."
        )
    seed = path.read_text("utf-8").strip()
    if not seed:
        raise ValueError(f"The seed file {path} is empty. Write any text.")
    return seed


def to_html(text):
    r"""Markdown to HTML, with formulas as \(…\), as Moodle wants them."""
    formulas = []

    def keep(match):  # Markdown must not read a formula's underscores
        formulas.append(rf"\({html.escape(match[1])}\)")
        return f"\ue000{len(formulas) - 1}\ue000"

    parts = CODE.split(text)
    parts[::2] = [FORMULA.sub(keep, part) for part in parts[::2]]
    page = MarkdownIt().enable("table").render("".join(parts))
    return re.sub("\ue000(\\d+)\ue000", lambda m: formulas[int(m[1])], page)


def moodle(names):
    """A Moodle XML file of the questions of chapters, as bytes.

    Questions lie in one category for each chapter. Each wrong answer has its
    misconception as feedback.
    """
    quiz = ElementTree.Element("quiz")
    for name in names:
        category = _child(quiz, "question", type="category")
        _text(_child(category, "category"), f"$course$/top/attention/{name}")
        for number, question in enumerate(read(name)["question"], 1):
            _multiple_choice(quiz, f"{name} {number}", question)
    ElementTree.indent(quiz)
    return ElementTree.tostring(quiz, "utf-8", xml_declaration=True)


def _multiple_choice(quiz, title, question):
    node = _child(quiz, "question", type="multichoice")
    _text(_child(node, "name"), title)
    _text(
        _child(node, "questiontext", format="html"), to_html(question["asks"])
    )
    _text(
        _child(node, "generalfeedback", format="html"), to_html(question["why"])
    )
    _child(node, "defaultgrade").text = "1"
    _child(node, "single").text = "true"
    _child(node, "shuffleanswers").text = "true"
    _child(node, "answernumbering").text = "abc"
    options = [(100, question["right"], "")]
    options += [(0, w["answer"], w["believes"]) for w in question["wrong"]]
    for fraction, answer, believes in options:
        option = _child(node, "answer", fraction=str(fraction), format="html")
        _child(option, "text").text = to_html(answer)
        said = f"The belief behind it: {believes}" if believes else ""
        _text(_child(option, "feedback", format="html"), to_html(said))


def _child(node, tag, **attributes):
    return ElementTree.SubElement(node, tag, attributes)


def _text(node, text):
    _child(node, "text").text = text


def page(title, text):
    """A Markdown text as a page to print; `tex-svg.js` must lie beside it."""
    return PAGE.format(title=html.escape(title), body=to_html(text))


def draw(names, seed, title, number, without=()):
    """Draw questions, spread evenly over chapters.

    Args:
        names: Names of chapters with questions.
        seed: Str, the text that the teacher keeps.
        title: Str, such as "Midterm"; another title draws others.
        number: Int, how many questions.
        without: Questions that are not to be drawn.

    Returns:
        List of (name of the chapter, number in its file, question).

    Raises:
        ValueError: If there are not as many questions, or none is wanted.
    """
    if number < 1:
        raise ValueError(
            f"{title}: ask for at least one question. Received: {number}."
        )
    rng = generator(seed, "draw", title)
    used = [question["asks"] for _, _, question in without]
    piles = [
        [
            (name, i, question)
            for i, question in enumerate(read(name)["question"], 1)
            if question["asks"] not in used
        ]
        for name in names
    ]
    piles = [rng.sample(pile, len(pile)) for pile in piles if pile]
    if sum(map(len, piles)) < number:
        raise ValueError(
            f"{title}: there are {sum(map(len, piles))} questions in "
            f"{len(piles)} chapters, and {number} were asked for."
        )
    chosen = []
    while len(chosen) < number:
        for pile in rng.sample(piles, len(piles)):
            if pile and len(chosen) < number:
                chosen.append(pile.pop())
    return chosen


def exam(drawn, seed, title, version):
    """An exam as two Markdown texts: the questions, and their answers.

    Versions have the same questions, each in an order of its own.
    """
    rng = generator(seed, "order", title, version)
    asked = [f"# {title}, version {version}\n\nName:\n"]
    answers = [f"# {title}, version {version}: answers\n"]
    for i, (name, place, question) in enumerate(
        rng.sample(drawn, len(drawn)), 1
    ):
        options, letters = lettered(question, rng)
        asked.append(f"## Question {i}\n\n{question['asks']}\n")
        asked += [f"- {letter}. {text}" for letter, text in options]
        asked.append("")
        answers.append(
            f"{i}. **{letters[0]}** (chapter {name[:2]}, question "
            f"{place}). {question['why']}"
        )
    return "\n".join(asked), "\n".join(answers) + "\n"


def lettered(question, rng):
    """The four options in an order of chance, and the letter of each.

    Returns:
        List of (letter, option), and the letters of the right answer and of
        the wrong ones in the order of the file.
    """
    options = [question["right"], *(w["answer"] for w in question["wrong"])]
    order = rng.sample(range(4), 4)
    letters = [LETTERS[order.index(j)] for j in range(4)]
    return sorted(zip(letters, options, strict=True)), letters


def choose(name, number):
    """Questions of a chapter: that of a number, a str, or all for None.

    Returns:
        List of (name of the chapter, number in its file, question).

    Raises:
        ValueError: If the chapter has no such question.
    """
    there = {str(i): x for i, x in enumerate(read(name)["question"], 1)}
    if number not in (None, *there):
        raise ValueError(
            f"Chapter {name[:2]} has the questions 1 to {len(there)}. "
            f"Received: {name[:2]}.{number}."
        )
    numbers = there if number is None else [number]
    return [(name, int(x), there[x]) for x in numbers]


def slides(chosen):
    """A page of slides: each question, then its answer and the beliefs."""
    parts = []
    chosen = {(name, number): question for name, number, question in chosen}
    for (name, number), question in chosen.items():
        rng = generator("slides", name, number)
        options, letters = lettered(question, rng)
        asked = [f"## {name[:2]}, question {number}", question["asks"]]
        asked += [f"- **{letter}.** {text}" for letter, text in options]
        told = [
            f"## {name[:2]}, question {number}: the answer",
            f"**{letters[0]}.** {question['right']}",
            question["why"],
        ]
        told += [
            f"- **{letter}.** {wrong['believes']}"
            for letter, wrong in zip(
                letters[1:], question["wrong"], strict=True
            )
        ]
        texts = ("\n\n".join(lines) for lines in (asked, told))
        parts += [f"<section>{to_html(text)}</section>" for text in texts]
    return SLIDES.format(body="\n".join(parts))
