"""What the README and the pages of the book say is true."""

import csv
import re

from d2l_attention.datasets import load_results
import numpy as np
from page_code import ROOT
import pytest

LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs/teaching").rglob("*.md")),
]


def test_the_graph_of_the_start_page_has_the_colours_of_the_parts():
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    parts = [
        re.findall(r"^notebooks/(\d\d)", part, re.M)
        for part in index.split("```{toctree}")
        if "\nnotebooks/" in part
    ]
    graph = (ROOT / "docs" / "prerequisites.svg").read_text("utf-8")
    links = re.findall(
        r'<a href="\.\./(notebooks/(\d\d)_\w+\.ipynb)"><title>\2 .*?'
        r"fill: (#\w+)",
        graph,
        re.DOTALL,
    )
    assert [number for _, number, _ in links] == sorted(sum(parts, []))
    assert all((ROOT / path).is_file() for path, *_ in links)
    colours = {number: colour for _, number, colour in links}
    shown = [{colours[number] for number in part} for part in parts]
    assert all(len(part) == 1 for part in shown)
    assert len(set.union(*shown)) == len(parts) == 5


def rows_below(title):
    """The cells of the first table below a heading of the page of figures."""
    page = (ROOT / "docs" / "figures.md").read_text("utf-8")
    _, _, behind = page.partition(f"\n## {title}\n")
    table = [x for x in behind.split("\n\n") if x.startswith("| ")][0]
    lines = table.splitlines()[2:]
    return [
        [x.strip() for x in line.strip("| ").split(" | ")] for line in lines
    ]


def test_the_table_of_linear_cost_is_its_file():
    measured = {
        (row["mechanism"], int(row["n"])): row
        for row in load_results("efficiency")
    }
    table = rows_below("Attention at linear cost")
    assert len(table) == 8
    for name, *cells, error in table:
        for n, cell in zip((1024, 8192, 16384), cells, strict=True):
            if cell == "–":
                assert (name, n) not in measured
                continue
            row = measured[name, n]
            seconds, megabytes = re.fullmatch(
                r"([\d.]+) s, ([\d,]+) MB", cell
            ).groups()
            assert float(seconds) == round(float(row["seconds"]), 3)
            assert int(megabytes.replace(",", "")) == round(
                float(row["megabytes"])
            )
        kept = measured[name, 8192]["error"]
        assert bool(kept) == (error not in ("–", "0"))
        if kept:
            assert float(error) == pytest.approx(float(kept), rel=0.2)


@pytest.mark.parametrize(
    ("title", "file", "names"),
    [
        (
            "Translation: 30,000 real pairs",
            "2026-11-25_fra_eng.csv",
            {
                "RNN without attention": "FixedContextSeq2Seq",
                "RNN with Bahdanau attention": "BahdanauSeq2Seq",
                "Transformer": "Transformer",
            },
        ),
        (
            "Translation: all 142,787 pairs, beside keras-hub",
            "2026-11-22_fra_eng_all.csv",
            {"this package": "Transformer", "keras-hub": "keras-hub"},
        ),
    ],
)
def test_a_table_of_translators_is_its_file(title, file, names):
    path = ROOT / "data" / "results" / file
    with path.open(encoding="utf-8", newline="") as lines:
        whole = {
            (row["model"], row.get("split", "test")): row
            for row in csv.DictReader(lines)
            if row.get("target_tokens", "all") == "all"
        }
    table = rows_below(title)
    assert [row[0] for row in table] == list(names)
    for label, parameters, bleu, chrf, last in table:
        row = whole[names[label], "test"]
        assert parameters == f"{int(row['parameters']):,}"
        for cell, metric in ((bleu, "bleu"), (chrf, "chrf")):
            numbers = [float(x) for x in re.findall(r"[\d.]+", cell)]
            kept = [
                float(row[f"{metric}{end}"]) for end in ("", "_low", "_high")
            ]
            assert numbers == pytest.approx(kept, abs=0.051)
        if row.get("split"):
            longer = float(whole[names[label], "long_test"]["bleu"])
            assert float(last) == pytest.approx(longer, abs=0.051)


def test_the_table_of_all_pairs_is_its_file():
    table = rows_below("Translation: all 142,787 pairs, in an hour")
    for row, cells in zip(load_results("all_pairs"), table, strict=True):
        _, parameters, bleu, chrf = cells
        assert parameters == f"{int(row['parameters']):,}"
        for cell, metric in ((bleu, "bleu"), (chrf, "chrf")):
            shown = [float(x) for x in re.findall(r"[\d.]+", cell)]
            kept = [
                float(row[f"{metric}{end}"]) for end in ("", "_low", "_high")
            ]
            assert shown == pytest.approx(kept, abs=0.051)


def test_the_table_of_the_recipe_is_its_file():
    found = {}
    for row in load_results("recipe"):
        name = row["recipe"], row["weights"], row["beam"]
        found.setdefault(name, []).append(float(row["bleu"]))
    table = rows_below("Translation: what each part of the recipe brings")
    columns = [(w, b) for w in ("last", "average") for b in ("1", "4")]
    for recipe, *cells in table:
        for cell, column in zip(cells, columns, strict=True):
            bleu = found.pop((recipe, *column))
            assert len(bleu) == 3
            shown = [float(x) for x in re.findall(r"[\d.]+", cell)]
            kept = [np.mean(bleu), min(bleu), max(bleu)]
            assert shown == pytest.approx(kept, abs=0.051)
    assert not found


def test_the_memory_of_a_kernel_is_what_the_file_says():
    rows = load_results("kernel_memory")
    kinds = {"assignment": [], "chapter": []}
    for row in rows:
        kinds[row["notebook"]].append(int(row["megabytes"]))
    assert [len(found) for found in kinds.values()] == [26, 26]
    page = (ROOT / "docs" / "teaching" / "grading.md").read_text("utf-8")
    shown = re.search(r"needs (\d+) to (\d+) MB.*and ([\d,]+) MB", page)
    low, high, most = (int(x.replace(",", "")) for x in shown.groups())
    assert (low, high) == (min(kinds["assignment"]), max(kinds["assignment"]))
    assert most == max(kinds["chapter"])


def test_the_ranges_of_the_readme_hold_the_figures_of_the_book():
    readme = (ROOT / "README.md").read_text("utf-8")
    shown = readme.partition("\n## Three figures\n")[2].partition("\n## ")[0]
    ranges = [
        (float(low), float(high))
        for low, high in re.findall(r"([\d.]+) to ([\d.]+) times", shown)
    ]
    ratios = {row[0]: row[-1] for row in rows_below("Speed and memory")}
    measured = [
        "flash attention⁴, forward, 4,096 tokens, s",
        "forward and backward, 4,096 tokens, s",
        "training the documents' Transformer¹, tokens/s",
        "greedy decoding³, sentences/s",
    ]
    for (low, high), name in zip(ranges, measured, strict=True):
        assert low <= float(ratios[name]) <= high
    assert re.findall(r"([\d.]+) times\.", shown) == ["1.03"]
    assert "1.03" in ratios.values()
    assert "0.05" in ratios.values() and "5 % of the memory" in shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_that_a_page_links_to_is_there(page):
    for target in LINK.findall(page.read_text("utf-8")):
        if not re.match(r"https?:|mailto:", target):
            assert (page.parent / target).exists(), target
