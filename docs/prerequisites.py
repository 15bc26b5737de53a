"""The drawing of *Start here*: which chapter comes before which.

    python docs/prerequisites.py

It reads the table of `start.md`, so that drawing and table agree. Chapters
in brackets help and are no condition; an arrow that others imply is left out.
Each box is a link. It is as wide as a phone.
"""

from pathlib import Path
import re

from course.sheet import NARROW, Sheet
import networkx as nx

HERE = Path(__file__).parent
# A chapter's short name, its column and its row, and perhaps the column along
# which arrows to it run, if not straight: one for all, or one for each start.
PLACES = {
    "01": ("Cues", 1.5, 0),
    "02": ("Regression", 1, 1),
    "03": ("Masks", 2, 1),
    "04": ("Scores", 1.5, 2),
    "05": ("Bahdanau", 1, 3),
    "06": ("Multi-head", 2, 3),
    "07": ("Positions", 2, 4),
    "08": ("Transformer", 1, 5),
    "09": ("Hard", 3, 1, 3),
    "10": ("RNNsearch", 0, 3, 0.5),
    "11": ("Pointers", 0, 3.8, 0.5),
    "12": ("Hierarchies", 0, 4.6, 0.5),
    "13": ("Sequences", 0, 6, 0.5),
    "14": ("Graphs", 3, 3, 2.5),
    "15": ("Causal", 1, 6),
    "16": ("Multi-query", 1, 7, 1.5),
    "17": ("Flash", 2, 5, 2.5),
    "18": ("Paged", 1, 9, 1.5),
    "19": ("Linformer", 3, 6, 2.25),
    "20": ("Performer", 3, 4, 2.5),
    "21": ("Longformer", 3, 7, 2.25),
    "22": ("Reformer", 3, 8, 2.25),
    "23": ("Efficiency", 3, 9, 3.5),
    "24": ("Context", 1, 10, 1.5),
    "25": ("Heatmaps", 0, 7, 0.5),
    "26": ("Scaling out", 0, 8, 0.5),
    "27": ("Relative", 1, 11, 1.5),
    "28": ("Windows", 1, 12, 1.5),
    "29": ("Latent", 1, 8),
    "30": ("Linear", 2, 11, {"15": 1.5, "20": 2.5}),
    "31": ("Sparsity", 2, 10, 1.5),
    "32": ("Today", 2, 12, 1.5),
    "33": ("Images", 0, 9, 0.5),
}
PARTS = {  # the last chapter of each, and its colour
    "08": ("From cues to the Transformer", "projection"),
    "14": ("Other ways to attend", "attention"),
    "24": ("Attention in large models", "memory"),
    "26": ("In practice", "feed_forward"),
    "33": ("Since the documents", "norm"),
}
WIDTH, HEIGHT, COLUMN, ROW, LINE = 76, 36, 88, 56, 26
STYLE = """.boxes {stroke-linejoin: round}
.boxes use {pointer-events: none}
.boxes a:is(:hover, :focus-visible) path {
stroke: #1a1a1a !important; stroke-width: 3px !important}
.boxes a {outline: none}"""


def read_table(text):
    """A graph of chapters, from the column *Before it*."""
    graph = nx.DiGraph()
    row = re.compile(r"\| (\d\d) \[(.*?)\]\((.*?)\) \|.*?\| ([^|(]*)")
    for number, title, address, before in row.findall(text):
        graph.add_node(number, gid=f"{number} {title}", url=address)
        for other in re.findall(r"\d\d", before):
            graph.add_edge(other, number)
    return graph


def draw(graph):
    """The sheet: chapters from top to bottom, and the parts below them."""
    legend = LINE * len(PARTS) + 14
    rows = 1 + max(row for _, _, row, *_ in PLACES.values())
    sheet = Sheet(ROW * rows + legend, NARROW)
    first, y = 1, legend - LINE
    kinds = {}
    for last, (part, kind) in PARTS.items():
        numbers = [f"{number:02}" for number in range(first, int(last) + 1)]
        kinds |= dict.fromkeys(numbers, kind)
        sheet.box(6, y, f"{numbers[0]}–{last}", kind, 52, 20)
        sheet.label(66, y + 10, part, align="left")
        first, y = int(last) + 1, y - LINE
    boxes = {}
    for chapter in sorted(graph):
        name, column, row, *_ = PLACES[chapter]
        boxes[chapter] = sheet.box(
            6 + COLUMN * column,
            legend + ROW * (rows - row) - HEIGHT - 8,
            f"{chapter}\n{name}",
            kinds[chapter],
            WIDTH,
            HEIGHT,
        )
        sheet.axes.patches[-1].set(**graph.nodes[chapter])
    for start, end in sorted(nx.transitive_reduction(graph).edges):
        lane = PLACES[end][3] if len(PLACES[end]) > 3 else None
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


if __name__ == "__main__":
    table = (HERE / "start.md").read_text(encoding="utf-8")
    drawn = svg(draw(read_table(table)))
    (HERE / "prerequisites.svg").write_text(drawn, encoding="utf-8")
