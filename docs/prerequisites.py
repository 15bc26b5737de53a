"""The drawing of *Start here*: which chapter comes before which.

    python -m course.build lists

It is made from `course/chapters.toml`. Chapters in brackets help and are no
condition; an arrow that others imply is left out. Each box is a link. It is as
wide as a phone.
"""

from pathlib import Path
import re

from course import lists
from course.sheet import NARROW, Sheet
import networkx as nx

HERE = Path(__file__).parent
WIDTH, HEIGHT, COLUMN, ROW, LINE = 76, 36, 88, 56, 26
STYLE = """.boxes {stroke-linejoin: round}
.boxes use {pointer-events: none}
.boxes a:is(:hover, :focus-visible) path {
stroke: #1a1a1a !important; stroke-width: 3px !important}
.boxes a {outline: none}"""


def read_graph():
    """A graph of chapters, each with what the list has of it."""
    graph = nx.DiGraph()
    for chapter in lists.read_chapters():
        graph.add_node(chapter["number"], **chapter)
        conditions = chapter["before"].split("(")[0]
        for other in re.findall(r"\d\d", conditions):
            graph.add_edge(other, chapter["number"])
    return graph


def draw(graph):
    """The sheet: chapters from top to bottom, and the parts below them."""
    parts = lists.read_parts()
    legend = LINE * len(parts) + 14
    rows = 1 + max(row for _, (_, row) in graph.nodes(data="place"))
    sheet = Sheet(ROW * rows + legend, NARROW)
    colours = {}
    for i, part in enumerate(parts):
        numbers = [chapter["number"] for chapter in part["chapter"]]
        colours |= dict.fromkeys(numbers, part["colour"])
        y = legend - LINE * (i + 1)
        ends = f"{numbers[0]}–{numbers[-1]}"
        sheet.box(6, y, ends, part["colour"], 52, 20)
        sheet.label(66, y + 10, part["name"], align="left")
    boxes = {}
    for number, chapter in sorted(graph.nodes.items()):
        column, row = chapter["place"]
        boxes[number] = sheet.box(
            6 + COLUMN * column,
            legend + ROW * (rows - row) - HEIGHT - 8,
            f"{number}\n{chapter['box']}",
            colours[number],
            WIDTH,
            HEIGHT,
        )
        sheet.axes.patches[-1].set(
            gid=f"{number} {chapter['title']}",
            url=f"../notebooks/{chapter['source']}.ipynb",
        )
    for start, end in sorted(nx.transitive_reduction(graph).edges):
        lane = graph.nodes[end].get("lane")
        lane = lane[start] if isinstance(lane, dict) else lane
        connect(sheet, boxes[start], boxes[end], lane)
    for patch in sheet.axes.patches:
        patch.set_clip_on(False)  # a smaller file
    return sheet


def connect(sheet, start, end, lane=None):
    """An arrow, straight or along a lane: a column between the boxes."""
    if lane is None:
        return sheet.arrow(start.bottom, end.top)
    x = 6 + COLUMN * lane + WIDTH / 2

    def side(place, up):
        """Where a place is left or entered, on the way to the lane."""
        across = (x - place.x) / place.width
        inside = 0 < across < 1
        return place.at(min(max(across, 0), 1), up if inside else 0.5)

    first, last = side(start, 0), side(end, 1)
    via = [(x, first[1]), (x, last[1])]
    via = [point for point in via if point not in (first, last)]
    return sheet.arrow(first, last, via=via)


def svg(sheet):
    """The drawing as text; its boxes are links."""
    text = re.sub(r"\n +", "\n", sheet.svg())
    text = re.sub(r"<style.*?</style>", f"<style>{STYLE}</style>", text)
    text = re.sub(
        r'<g id="(\d\d [^"]*)">\n<a xlink:href="(\S+)".*?>(.*?)</a>\n</g>',
        r'<a href="\2"><title>\1</title>\3</a>',
        text,
        flags=re.DOTALL,
    )
    text = text.replace('<g id="figure_1">', '<g class="boxes">')
    text = re.sub(r'<g id="(axes|patch|text)_\d+">', "<g>", text)
    return re.sub(r'<!--.*-->\n|xlink:(?=href)|; stroke-line[^"]*', "", text)


def describe(graph):
    """The arrows of the drawing in words."""
    arrows = nx.transitive_reduction(graph)
    sentences = []
    for start in sorted(arrows):
        *ends, last = sorted(arrows.successors(start)) or [None]
        if last:
            ends = f"{', '.join(ends)} and {last}" if ends else last
            sentences.append(f"{start} leads to {ends}.")
    return " ".join(sentences)


def described(page, graph):
    """The page of the drawing with its arrows in words."""
    told = re.compile(r"(?<=chapters that build on them\. ).*(?=\]\(prereq)")
    page, found = told.subn(describe(graph), page)
    if found != 1:
        raise ValueError("start.md has no drawing to describe.")
    return page


def write():
    graph, page = read_graph(), HERE / "start.md"
    drawn = svg(draw(graph))
    (HERE / "prerequisites.svg").write_text(drawn, encoding="utf-8")
    text = described(page.read_text(encoding="utf-8"), graph)
    page.write_text(text, encoding="utf-8", newline="\n")
