"""The drawing of *Start here*: which chapter comes before which.

    python docs/prerequisites.py

It reads the table of `start.md`, so that drawing and table agree. Chapters
in brackets help and are no condition; an arrow that others imply is left out.
"""

from pathlib import Path
import re

from course.sheet import Sheet
import networkx as nx

HERE = Path(__file__).parent
# A chapter's short name, and its place from left to right in its row.
PLACES = {
    "01": ("Cues", 2.5),
    "02": ("Regression", 2),
    "03": ("Masks", 3),
    "09": ("Hard", 5),
    "04": ("Scores", 2.5),
    "05": ("Bahdanau", 1.5),
    "06": ("Multi-head", 4.5),
    "10": ("RNNsearch", 0),
    "11": ("Pointers", 1),
    "12": ("Hierarchies", 2),
    "07": ("Positions", 3),
    "14": ("Graphs", 4),
    "17": ("Flash", 5),
    "20": ("Performer", 6),
    "08": ("Transformer", 2.5),
    "19": ("Linformer", 4),
    "21": ("Longformer", 5),
    "22": ("Reformer", 6),
    "13": ("Sequences", 0.5),
    "15": ("Causal", 1.5),
    "25": ("Heatmaps", 3),
    "23": ("Efficiency", 5),
    "16": ("Multi-query", 0.5),
    "18": ("Paged", 1.5),
    "24": ("Context", 2.5),
    "26": ("Scaling out", 4),
}
# Arrows that skip a row bend where they pass between its boxes: (row, place).
BENDS = {("05", "08"): [(4, 2.5)], ("20", "23"): [(5, 6.5)]}
FIRST_PART = {f"{number:02}" for number in range(1, 9)}
WIDTH, HEIGHT, COLUMN, ROW = 86, 40, 99, 72


def read_table(text):
    """A graph of chapters, from the column *Before it*."""
    graph = nx.DiGraph()
    for line in text.splitlines():
        if re.match(r"\| \d\d \[", line):
            cells = [cell.strip() for cell in line.strip("| ").split(" | ")]
            chapter, before = cells[0][:2], cells[2].split("(")[0]
            graph.add_node(chapter)
            for number in re.findall(r"\d\d", before):
                graph.add_edge(number, chapter)
    return graph


def draw(graph):
    """The sheet; a row for each generation of the graph."""
    rows = [sorted(row) for row in nx.topological_generations(graph)]
    sheet = Sheet(ROW * len(rows) + 4)

    def left_and_lower(row, place):
        return 20 + COLUMN * place, ROW * (len(rows) - row) - HEIGHT - 14

    boxes = {}
    for row, chapters in enumerate(rows):
        for chapter in chapters:
            name, place = PLACES[chapter]
            boxes[chapter] = sheet.box(
                *left_and_lower(row, place),
                f"{chapter}\n{name}",
                "norm" if chapter in FIRST_PART else "data",
                WIDTH,
                HEIGHT,
                size=11.5,
            )
    for start, end in sorted(nx.transitive_reduction(graph).edges):
        via = []
        for row, place in BENDS.get((start, end), ()):
            x, y = left_and_lower(row, place)
            via += [(x + WIDTH / 2, y + HEIGHT), (x + WIDTH / 2, y)]
        sheet.arrow(boxes[start].bottom, boxes[end].top, via=via)
    for patch in sheet.axes.patches:
        patch.set_clip_on(False)  # a smaller file
    return sheet


def svg(sheet):
    """The drawing as text, without indentation: below 60 kB."""
    return re.sub(r"\n +", "\n", sheet.svg())


if __name__ == "__main__":
    table = (HERE / "start.md").read_text(encoding="utf-8")
    drawn = svg(draw(read_table(table)))
    (HERE / "prerequisites.svg").write_text(drawn, encoding="utf-8")
