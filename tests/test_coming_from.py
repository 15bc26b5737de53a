"""The page for readers of other code: its recipes run, its tables are true."""

from operator import attrgetter
import re
import sys

from contract import needs_padding_mask
import d2l_attention
from d2l_attention import heatmaps
from page_code import ROOT, blocks, run
import pytest

PAGE = "docs/coming-from.md"
TEXT = (ROOT / PAGE).read_text("utf-8")
RECIPES = blocks(PAGE)
ROW = re.compile(r"^\| (.*`.*) \| (.*) \| (\[.*) \| .* \|$", re.MULTILINE)


def test_each_library_has_a_recipe():
    sections = TEXT.split("\n## ")[1:]
    assert len(sections) == len(RECIPES) == 4
    assert all("```python" in section for section in sections)


@pytest.mark.every_backend
@pytest.mark.parametrize(
    "recipe",
    [
        *RECIPES[:2],
        pytest.param(RECIPES[2], marks=needs_padding_mask),
        *RECIPES[3:],
    ],
    ids=["d2l", "tf", "keras", "torch"],
)
def test_a_recipe_copies_weights_to_the_same_outputs(recipe):
    if "import torch\n" in recipe:
        pytest.importorskip("torch")
    assert "\nassert " in recipe
    run(recipe, {})


def test_a_row_names_what_there_is_and_a_chapter_about_it():
    rows = ROW.findall(TEXT)
    assert len(rows) == TEXT.count("](../notebooks/") > 30
    for _, ours, chapter in rows:
        number, path = re.fullmatch(
            r"\[(\d\d)\]\(\.\./(notebooks/.*)\)", chapter
        ).groups()
        assert f"/{number}_" in path
        words = {*re.findall(r"\w+", (ROOT / path).read_text("utf-8"))}
        for name in re.findall(r"`(\w+)", ours):
            thing = getattr(d2l_attention, name, None)
            thing = thing or getattr(heatmaps, name)
            # The chapter names it, or something else of its module.
            of_module = {
                other
                for other, x in vars(sys.modules[thing.__module__]).items()
                if getattr(x, "__module__", "") == thing.__module__
            }
            assert {name, *of_module} & words, f"{name}: {number}"


@pytest.mark.parametrize(
    ("section", "modules"),
    [
        ("keras.layers", ["keras.layers", "keras"]),
        ("torch", ["torch", "torch.nn.functional"]),
    ],
)
def test_what_a_row_names_of_a_library_is_there(section, modules):
    modules = [pytest.importorskip(module) for module in modules]
    _, _, rows = TEXT.partition(f"\n## {section}\n")
    rows, *_ = rows.partition("\n```python")
    names = re.findall(r"`([\w.]+)`", " ".join(x[0] for x in ROW.findall(rows)))
    assert len(names) >= 6
    for name in names:
        assert any(has(module, name) for module in modules), name


def has(module, name):
    try:
        return attrgetter(name)(module)
    except AttributeError:
        return None
